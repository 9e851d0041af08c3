//go:build !linux && !darwin

package store

import (
	"errors"
	"os"
)

// lockInode returns ErrUnsupported, because dlo cannot lock the file itself on this system.
func lockInode(*os.File) error { return errors.ErrUnsupported }

func unlockInode(*os.File) error { return errors.ErrUnsupported }
