package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// folder is where the demo keeps its dlo, configuration, store and log. One demo at a time has it.
type folder struct {
	path string
	lock *os.File
}

// takeFolder makes the folder again; what an earlier demo left in it goes. It refuses while another
// demo has it.
func takeFolder(path string) (*folder, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o600) // beside the folder, which goes
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

// remove removes the folder and lets the next demo have its place.
func (f *folder) remove() error {
	err := errors.Join(os.RemoveAll(f.path), os.Remove(f.lock.Name()))
	f.lock.Close()
	return err
}
