//go:build !linux

package store_test

import "errors"

// bind is not supported on this system.
func bind(string, string) error { return errors.ErrUnsupported }

func unbind(string) error { return errors.ErrUnsupported }
