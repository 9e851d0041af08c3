package server

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/deadletteroffice/dlo/internal/config"
)

// socketOf returns the path of a Unix socket. If the listen address does not name a socket, the
// result "ok" is false.
func socketOf(listen string) (path string, ok bool) {
	if len(listen) > len(config.Unix) && listen[:len(config.Unix)] == config.Unix {
		return listen[len(config.Unix):], true
	}
	return "", false
}

// listenSocket listens on a Unix socket. It replaces a socket that another program left, and no
// other file. If people must sign in, everybody in the group of the socket can connect. Otherwise
// only the owner of the socket can.
func listenSocket(path string, signIn bool) (net.Listener, error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("listen: %w", err)
	case info.Mode()&fs.ModeSocket == 0:
		return nil, fmt.Errorf("listen unix:%s: the file is not a socket; choose another path", path)
	default:
		c, err := net.DialTimeout("unix", path, time.Second)
		if err == nil {
			c.Close()
			return nil, fmt.Errorf("listen unix:%s: another program listens there", path)
		}
		if !errors.Is(err, syscall.ECONNREFUSED) {
			return nil, fmt.Errorf("listen unix:%s: %w", path, err)
		}
	}
	l, err := makeSocket(path, signIn)
	if err != nil {
		return nil, fmt.Errorf("listen unix:%s: %w", path, err)
	}
	return l, nil
}

// makeSocket creates a socket in a directory that only its owner can enter. It sets the mode of the
// socket and then moves it to its place.
func makeSocket(path string, signIn bool) (net.Listener, error) {
	dir, err := os.MkdirTemp(filepath.Dir(path), ".dlo")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	made := filepath.Join(dir, "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: made, Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false)
	mode := fs.FileMode(0o600)
	if signIn {
		mode = 0o660
	}
	if err := errors.Join(os.Chmod(made, mode), os.Rename(made, path)); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}
