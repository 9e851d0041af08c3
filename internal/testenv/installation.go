package testenv

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// installation is a RabbitMQ that tests can start. It is either the package on the machine, or a
// Debian system that `make brokers` has unpacked under .cache.
type installation struct {
	root string // "/", or the absolute path of the unpacked system
	// read from RabbitMQ's own folder, for example "3.10.8"; nothing is pinned, because Debian
	// suites move
	version string
}

// findInstallation returns the newest RabbitMQ in the root folder. If "root" is empty, it uses the
// machine's own root. A relative root is relative to the folder of the module, because tests run in
// the folder of their package. If there is no RabbitMQ, or if only root may run it, the error wraps
// ErrMissing.
func findInstallation(root string) (installation, error) {
	cure := "apt-get install rabbitmq-server"
	if root == "" {
		root = "/"
	}
	if !filepath.IsAbs(root) {
		module, err := moduleFolder()
		if err != nil {
			return installation{}, err
		}
		root = filepath.Join(module, root)
	}
	if root != "/" {
		cure = "make brokers (as root)"
	}
	folders, err := filepath.Glob(filepath.Join(root, "usr/lib/rabbitmq/lib/rabbitmq_server-*"))
	if err != nil {
		return installation{}, fmt.Errorf("look for RabbitMQ below %s: %w", root, err)
	}
	i := installation{root: root}
	for _, f := range folders {
		_, version, _ := strings.Cut(filepath.Base(f), "-")
		if executable(filepath.Join(f, "sbin/rabbitmq-server")) && newer(version, i.version) {
			i.version = version
		}
	}
	if i.version == "" {
		return installation{}, fmt.Errorf("%w: RabbitMQ below %s; to get it: %s", ErrMissing, root, cure)
	}
	if i.chrooted() && os.Geteuid() != 0 {
		return installation{}, fmt.Errorf(
			"%w for this user: RabbitMQ below %s runs in a chroot; to use it: become root", ErrMissing, root,
		)
	}
	return i, nil
}

func (i installation) chrooted() bool { return i.root != "/" }

// program returns the path of a RabbitMQ program inside the root. It never returns one of the
// programs in /usr/sbin. These are wrappers that change the user and drop the environment (Debian's
// packages of 3.10 to 4.3).
func (i installation) program(name string) string {
	return "/usr/lib/rabbitmq/lib/rabbitmq_server-" + i.version + "/sbin/" + name
}

// pathInside returns the path under which RabbitMQ's programs see the folder "dir".
func (i installation) pathInside(dir string) string {
	if i.chrooted() {
		return "/tmp/node"
	}
	return dir
}

// enter is a shell script that runs a program inside another root. Of the outer file system, the
// program sees only the folder "dir". The script uses its own mount namespace, so it changes no
// mount of the machine and nothing has to be unmounted. A file system in memory covers the root's
// /tmp, so that the unpacked root stays unchanged.
const enter = `set -e
root=$1 dir=$2
shift 2
mount --make-rprivate /
mount -t tmpfs tmpfs "$root/tmp"
mkdir "$root/tmp/node"
mount --bind "$dir" "$root/tmp/node"
mount -t proc proc "$root/proc"
mount --bind /dev "$root/dev"
exec chroot "$root" env -i "$@"`

// command returns a command that runs a program of the installation. The list "env" is the whole
// environment of the program. In a chroot, the program sees only the folder "dir" from outside. The
// command is a single process, because each step execs the next one.
func (i installation) command(dir string, env []string, program string, args ...string) *exec.Cmd {
	if !i.chrooted() {
		cmd := exec.Command(program, args...)
		cmd.Env = env
		return cmd
	}
	steps := []string{"-m", "sh", "-c", enter, "enter", i.root, dir}
	steps = append(append(append(steps, env...), program), args...)
	return exec.Command("unshare", steps...)
}

func executable(path string) bool {
	s, err := os.Stat(path)
	return err == nil && s.Mode().IsRegular() && s.Mode()&0o111 != 0
}

// newer reports whether version a is newer than version b. It compares the numbers between the
// dots. Every version is newer than "".
func newer(a, b string) bool {
	as, bs := strings.Split(a, "."), strings.Split(b, ".")
	for n := range min(len(as), len(bs)) {
		x, _ := strconv.Atoi(as[n])
		y, errY := strconv.Atoi(bs[n])
		if errY != nil || x != y {
			return errY != nil || x > y
		}
	}
	return len(as) > len(bs)
}

// moduleFolder returns the folder of the module. It is the nearest folder with a go.mod at or above
// the working directory.
func moduleFolder() (string, error) {
	wd, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the module's folder: %w", err)
	}
	for dir := wd; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("find the module's folder: no go.mod above %s", wd)
		}
	}
}
