//go:build !linux

package store_test

import "errors"

// bind returns ErrUnsupported, because this system has no bind mounts.
func bind(string, string) error { return errors.ErrUnsupported }

func unbind(string) error { return errors.ErrUnsupported }
