package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// folder is the directory in which the demo keeps the program dlo, its configuration, its store and
// its log. Only one demo at a time can use it.
type folder struct {
	path string
	lock *os.File
}

// takeFolder creates the folder anew, and so removes what an earlier demo left in it. It returns an
// error while another demo uses the folder.
func takeFolder(path string) (*folder, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	// beside the folder, because the folder itself is removed
	lock, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		lock.Close()
		at := ""
		if c, err := readControl(path); err == nil {
			at = " at " + c.Dashboard
		}
		return nil, fmt.Errorf("a demo of this source tree runs already%s; end it with Ctrl-C first", at)
	}
	f := &folder{path, lock}
	if err := errors.Join(os.RemoveAll(path), os.Mkdir(path, 0o700)); err != nil {
		lock.Close()
		return nil, err
	}
	return f, nil
}

// remove removes the folder. It also releases the lock, so that another demo can start.
func (f *folder) remove() error {
	err := errors.Join(os.RemoveAll(f.path), os.Remove(f.lock.Name()))
	f.lock.Close()
	return err
}
