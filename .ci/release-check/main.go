// Command release-check builds a release twice, from two clean clones in two folders, and compares
// the files byte for byte. It then installs each file that can run on this machine, starts dlo from
// it on a private RabbitMQ, and waits for a first letter. It prints what it could not start, and
// why. `make release-check` runs it. It needs root.
package main

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/deadletteroffice/dlo/internal/testenv"
)

// tag is the throw-away tag of the clones.
const tag = "v0.0.1-check"

// check is one run of the command.
type check struct {
	folder string
	dist   string // the files of the first build
	parsed string // the compose file in its complete form, as JSON
	node   *testenv.Node
	lines  []string // the report
}

func main() {
	folder, err := os.MkdirTemp("", "dlo-release-check-")
	if err == nil {
		err = os.Chmod(folder, 0o755) // dlo runs as another user
	}
	if err == nil {
		c := &check{folder: folder}
		err = c.run(context.Background())
		fmt.Println(strings.Join(c.lines, "\n"))
		err = errors.Join(err, os.RemoveAll(folder))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "release-check:", err)
		os.Exit(1)
	}
	fmt.Println("release-check passed")
}

func (c *check) run(ctx context.Context) error {
	if os.Getuid() != 0 {
		return errors.New("it needs root, for the roots of the packages")
	}
	first, second := filepath.Join(c.folder, "one"), filepath.Join(c.folder, "another", "folder")
	for _, clone := range []string{first, second} {
		began := time.Now()
		if err := build(clone); err != nil {
			return err
		}
		c.report("built in %.0f s in %s", time.Since(began).Seconds(), clone)
	}
	c.dist = filepath.Join(first, "dist")
	if err := c.compare(filepath.Join(second, "dist")); err != nil {
		return err
	}
	chart, err := c.one("*-chart.tgz")
	if err != nil {
		return err
	}
	compose, err := c.one("*-compose.yaml")
	if err != nil {
		return err
	}
	c.parsed = filepath.Join(c.folder, "compose.json")
	if err := command(filepath.Join(first, ".ci/release"), "go", "run", "./lint", chart, compose, c.parsed); err != nil {
		return err
	}
	c.report("the chart and the compose file are valid")
	const exposure = "20" // of 100
	if err := command(
		first, "systemd-analyze", "security", "--offline=true", "--threshold="+exposure, ".ci/release/dlo.service",
	); err != nil {
		return err
	}
	c.report("the exposure of the service is at most %s of 100", exposure)
	if err := command(filepath.Join(first, ".ci/release"), "go", "test", "."); err != nil {
		return err
	}
	c.report("dpkg and rpm: a build after a tag is newer than the tag, and older than the next")
	if c.node, err = testenv.Start(ctx, testenv.Options{}); err != nil {
		return err
	}
	defer c.node.Stop()
	var failed []error
	for name, start := range map[string]func(root string) (*exec.Cmd, error){
		"archive": c.archive, "deb": c.deb, "rpm": c.rpm, "image": c.image,
	} {
		began := time.Now()
		if err := c.firstLetter(name, start); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", name, err))
			continue
		}
		c.report("%s: installed, started, and the first letter arrived, in %.0f s", name, time.Since(began).Seconds())
	}
	began := time.Now()
	if err := c.compose(); err != nil {
		failed = append(failed, fmt.Errorf("compose: %w", err))
	} else {
		c.report(
			"compose: the processes of dlo, dashboard and shop ran as the file says, without Docker, and the letters "+
				"of the shop arrived, in %.0f s", time.Since(began).Seconds(),
		)
	}
	other := "arm64"
	if runtime.GOARCH == other {
		other = "amd64"
	}
	c.report("not started: the files for %s, because this machine is %s", other, runtime.GOARCH)
	c.report("not started: the service, the containers and the chart, which need systemd, Docker and Kubernetes")
	return errors.Join(failed...)
}

func (c *check) report(format string, args ...any) {
	c.lines = append(c.lines, fmt.Sprintf(format, args...))
}

// build makes a release in a new clone of this repository.
func build(clone string) error {
	return errors.Join(
		command(".", "git", "clone", "--quiet", "--no-tags", ".", clone),
		command(clone, "git", "tag", tag),
		command(clone, "make", "release"),
	)
}

// compare compares the files of two builds.
func (c *check) compare(other string) error {
	entries, err := os.ReadDir(c.dist)
	if err != nil {
		return err
	}
	there, err := os.ReadDir(other)
	if err != nil {
		return err
	}
	if len(entries) != len(there) {
		return fmt.Errorf("the builds have %d and %d files", len(entries), len(there))
	}
	var differ []error
	for _, e := range entries {
		a, err := os.ReadFile(filepath.Join(c.dist, e.Name()))
		if err != nil {
			return err
		}
		b, err := os.ReadFile(filepath.Join(other, e.Name()))
		if err != nil {
			return err
		}
		if sha256.Sum256(a) != sha256.Sum256(b) {
			differ = append(differ, fmt.Errorf("%s differs between two builds", e.Name()))
		}
		c.report("%8.1f MB  %s", float64(len(a))/1e6, e.Name())
	}
	return errors.Join(differ...)
}

// firstLetter starts dlo and sends a letter the whole way with `dlo try`.
func (c *check) firstLetter(name string, start func(root string) (*exec.Cmd, error)) error {
	root := filepath.Join(c.folder, name)
	if err := os.Mkdir(root, 0o755); err != nil {
		return err
	}
	dlo, err := start(root)
	if err != nil {
		return err
	}
	vhost := "check-" + name
	if err := c.node.CreateVHost(vhost); err != nil {
		return err
	}
	address, err := freeAddress()
	if err != nil {
		return err
	}
	var log bytes.Buffer
	dlo.Stdout, dlo.Stderr = &log, &log
	dlo.Env = append(dlo.Env,
		"DLO_AMQP_URL="+c.node.AMQPURL(vhost), "DLO_MANAGEMENT_URL="+c.node.ManagementURLOf("guest:guest"), "DLO_LISTEN="+address,
	)
	if err := dlo.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- dlo.Wait() }()
	arrived := make(chan error, 1)
	go func() { arrived <- await("http://" + address) }()
	select {
	case err = <-ended:
		return fmt.Errorf("dlo ended: %w\n%s", err, &log)
	case err = <-arrived:
	}
	_ = dlo.Process.Signal(syscall.SIGTERM)
	<-ended
	if err != nil {
		return fmt.Errorf("%w\n%s", err, &log)
	}
	return nil
}

// await sends a letter of a trial, and waits until the store has it.
func await(url string) error {
	last := errors.New("no answer")
	begun := false
	for range 240 {
		time.Sleep(500 * time.Millisecond)
		if !begun {
			if status, _, err := call(http.DefaultClient, http.MethodGet, url+"/readyz"); err != nil || status != http.StatusOK {
				last = fmt.Errorf("/readyz: %d, %w", status, err)
				continue
			}
			status, text, err := call(http.DefaultClient, http.MethodPost, url+"/api/v1/trial")
			if err != nil || status/100 != 2 {
				last = fmt.Errorf("POST /trial: %d %s, %w", status, text, err)
				continue
			}
			begun = true
		}
		_, text, err := call(http.DefaultClient, http.MethodGet, url+"/api/v1/letters")
		var list struct {
			Letters []struct {
				ID string `json:"id"`
			} `json:"letters"`
		}
		if err == nil {
			err = json.Unmarshal(text, &list)
		}
		if err == nil && len(list.Letters) > 0 {
			return nil
		}
		last = fmt.Errorf("there is no letter: %s, %w", text, err)
	}
	return last
}

func call(client *http.Client, method, url string) (int, []byte, error) {
	request, err := http.NewRequest(method, url, strings.NewReader("{}"))
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	return answer.StatusCode, text, err
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// archive unpacks the archive and starts its program.
func (c *check) archive(root string) (*exec.Cmd, error) {
	file, err := c.one("*-linux-" + runtime.GOARCH + ".tar.gz")
	if err != nil {
		return nil, err
	}
	if err := command(".", "tar", "-xzf", file, "-C", root, "--strip-components=1"); err != nil {
		return nil, err
	}
	cmd := exec.Command(filepath.Join(root, "dlo"), "serve")
	cmd.Dir = root
	return cmd, nil
}

// deb installs the package with dpkg in a minimal Debian.
func (c *check) deb(root string) (*exec.Cmd, error) {
	file, err := c.one("*_" + runtime.GOARCH + ".deb")
	if err != nil {
		return nil, err
	}
	if err := command(".", "debootstrap", "--variant=minbase", "bookworm", root); err != nil {
		return nil, err
	}
	if err := command(".", "dpkg", "--root="+root, "--install", file); err != nil {
		return nil, err
	}
	return inRoot(root, stateOf(root), "/usr/bin/dlo", "serve", "--config", "/etc/dlo/dlo.yaml")
}

// rpm installs the package with rpm in an empty root. The root has no shell for its scripts.
func (c *check) rpm(root string) (*exec.Cmd, error) {
	file, err := c.one("*." + map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH] + ".rpm")
	if err != nil {
		return nil, err
	}
	if err := command(".", "rpm", "--root="+root, "--install", "--nodeps", "--noscripts", file); err != nil {
		return nil, err
	}
	return inRoot(root, stateOf(root), "/usr/bin/dlo", "serve", "--config", "/etc/dlo/dlo.yaml")
}

// user is the user of the image. The packages are tried as this user too.
const user = 65532

// mounts says what a process sees in its root.
type mounts struct {
	written map[string]string // folder in the root -> folder of this machine that can be written there
	at      string            // working directory
}

// stateOf returns the mounts of a root in which only the folder of the store can be written, as
// under systemd and in a container.
func stateOf(root string) mounts {
	return mounts{map[string]string{"/var/lib/dlo": filepath.Join(root, "var/lib/dlo")}, "/var/lib/dlo"}
}

// inRoot runs a program as user 65532 in a root that is read-only but for its mounts.
func inRoot(root string, m mounts, args ...string) (*exec.Cmd, error) {
	options := []string{"--ro-bind", root, "/", "--proc", "/proc", "--dev", "/dev", "--die-with-parent", "--chdir", m.at}
	for inside, outside := range m.written {
		if err := errors.Join(os.MkdirAll(outside, 0o755), os.Chown(outside, user, user)); err != nil {
			return nil, err
		}
		options = append(options, "--bind", outside, inside)
	}
	cmd := exec.Command("bwrap", append(options, args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
	return cmd, errors.Join(
		os.MkdirAll(filepath.Join(root, "proc"), 0o755), os.MkdirAll(filepath.Join(root, "dev"), 0o755),
	)
}

// image starts dlo as its image says.
func (c *check) image(root string) (*exec.Cmd, error) {
	config, err := c.unpack("dlo-[0-9]*-image.tar", root, 1)
	if err != nil {
		return nil, err
	}
	cmd, err := inRoot(root, stateOf(root), append(config.Entrypoint, config.Cmd...)...)
	if cmd != nil {
		cmd.Env = config.Env
	}
	return cmd, err
}

// imageConfig is the configuration of an image.
type imageConfig struct {
	User, WorkingDir     string
	Env, Entrypoint, Cmd []string
	Healthcheck          struct{ Test []string }
}

// unpack unpacks the image of this machine's architecture, with nothing but the JSON in the layout.
func (c *check) unpack(form, root string, layers int) (*imageConfig, error) {
	file, err := c.one(form)
	if err != nil {
		return nil, err
	}
	blobs, err := readTar(file)
	if err != nil {
		return nil, err
	}
	type descriptor struct {
		Digest   string
		Platform struct{ Architecture string }
	}
	var index, images struct{ Manifests []descriptor }
	var manifest struct {
		Config descriptor
		Layers []descriptor
	}
	var config struct{ Config imageConfig }
	read := func(name string, into any) {
		err = errors.Join(err, json.Unmarshal(blobs["blobs/"+strings.Replace(name, ":", "/", 1)], into))
	}
	err = json.Unmarshal(blobs["index.json"], &index)
	if err != nil || len(index.Manifests) != 1 {
		return nil, fmt.Errorf("index.json has %d images, %w", len(index.Manifests), err)
	}
	read(index.Manifests[0].Digest, &images)
	for _, m := range images.Manifests {
		if m.Platform.Architecture == runtime.GOARCH {
			read(m.Digest, &manifest)
		}
	}
	read(manifest.Config.Digest, &config)
	if err != nil || len(manifest.Layers) != layers || config.Config.User != fmt.Sprintf("%d:%d", user, user) ||
		len(images.Manifests) != 2 {
		return nil, fmt.Errorf("the image is not as it should be: %+v %+v, %w", manifest, config, err)
	}
	for _, l := range manifest.Layers {
		layer := filepath.Join(c.folder, "layer.tar.gz")
		text := blobs["blobs/"+strings.Replace(l.Digest, ":", "/", 1)]
		if err := os.WriteFile(layer, text, 0o600); err != nil {
			return nil, err
		}
		if err := command(".", "tar", "-xzf", layer, "-C", root); err != nil {
			return nil, err
		}
	}
	return &config.Config, nil
}

func readTar(path string) (map[string][]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	files := map[string][]byte{}
	for r := tar.NewReader(f); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		if files[h.Name], err = io.ReadAll(r); err != nil {
			return nil, err
		}
	}
}

// one returns the path of the only file of the release with a name of this form.
func (c *check) one(form string) (string, error) {
	found, err := filepath.Glob(filepath.Join(c.dist, form))
	if err != nil || len(found) != 1 {
		return "", fmt.Errorf("dist has %d files %s, %w", len(found), form, err)
	}
	return found[0], nil
}

func command(folder, name string, args ...string) error {
	cmd := exec.Command(name, args...)
	cmd.Dir = folder
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return nil
}
