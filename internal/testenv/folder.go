package testenv

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const folderPattern = "dlo-node-*"

// folder is where one node keeps everything it writes: home/ with the cookie, mnesia/ with the data, log/, and its configuration.
type folder struct {
	path string
	lock *os.File // locked while we live: this tells a folder in use from one that a killed process left
}

// newFolder makes a folder below the system's temporary directory and removes those that killed processes left there.
func newFolder() (*folder, error) {
	removeAbandoned(os.TempDir())
	path, err := os.MkdirTemp("", folderPattern)
	if err != nil {
		return nil, fmt.Errorf("make a folder for a broker: %w", err)
	}
	f := &folder{path: path}
	if err := f.prepare(); err != nil {
		f.remove()
		return nil, fmt.Errorf("prepare %s for a broker: %w", path, err)
	}
	return f, nil
}

func (f *folder) prepare() (err error) {
	if f.lock, err = os.Create(filepath.Join(f.path, "lock")); err != nil {
		return err
	}
	if err := syscall.Flock(int(f.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return err
	}
	for _, sub := range []string{"home", "mnesia", "log"} {
		if err := os.Mkdir(filepath.Join(f.path, sub), 0o700); err != nil {
			return err
		}
	}
	// Any other mode or owner, and the Erlang VM refuses to start.
	if err := os.WriteFile(filepath.Join(f.path, "home/.erlang.cookie"), []byte(rand.Text()), 0o400); err != nil {
		return err
	}
	return f.write("enabled_plugins", "[rabbitmq_management,rabbitmq_shovel].\n")
}

func (f *folder) write(name, text string) error {
	return os.WriteFile(filepath.Join(f.path, name), []byte(text), 0o600)
}

// console opens the file for what a node prints before it has a log of its own. It starts empty at each start of the node.
func (f *folder) console() (*os.File, error) {
	c, err := os.Create(filepath.Join(f.path, "log/console"))
	if err != nil {
		return nil, fmt.Errorf("open the console of a broker: %w", err)
	}
	return c, nil
}

// lastWords returns the end of what the node printed and logged, for an error.
func (f *folder) lastWords() string {
	logs, _ := filepath.Glob(filepath.Join(f.path, "log/*.log"))
	var all strings.Builder
	for _, name := range append([]string{filepath.Join(f.path, "log/console")}, logs...) {
		text, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		fmt.Fprintf(&all, "\n--- %s\n%s", filepath.Base(name), text[max(0, len(text)-4000):])
	}
	return all.String()
}

// remove is safe to call twice.
func (f *folder) remove() {
	_ = os.RemoveAll(f.path) // the next newFolder tries again
	_ = f.lock.Close()
}

// removeAbandoned removes folders of ours in dir whose owner is gone. Young ones are left: their owner may be about to lock them.
func removeAbandoned(dir string) {
	old, _ := filepath.Glob(filepath.Join(dir, folderPattern))
	for _, path := range old {
		lock, err := os.Open(filepath.Join(path, "lock"))
		if err != nil {
			continue
		}
		s, err := lock.Stat()
		if err == nil && time.Since(s.ModTime()) > 10*time.Minute &&
			syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			_ = os.RemoveAll(path)
		}
		_ = lock.Close()
	}
}
