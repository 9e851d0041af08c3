//go:build !linux

package store_test

import "errors"

// bind is not known here.
func bind(string, string) error { return errors.ErrUnsupported }

func unbind(string) error { return errors.ErrUnsupported }
