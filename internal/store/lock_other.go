//go:build !linux && !darwin

package store

import (
	"errors"
	"os"
)

// lockInode is not supported on this system.
func lockInode(*os.File) error { return errors.ErrUnsupported }

func unlockInode(*os.File) error { return errors.ErrUnsupported }
