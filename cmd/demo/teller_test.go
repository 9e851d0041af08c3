package main

import (
	"strings"
	"testing"
)

func TestWorkersGetOneLineASecondAndTheWeightiestIsShown(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	tell := &teller{out: &out}
	tell.flush()
	tell.worker(rejected, "a: rejected")
	tell.worker(accepted, "b: accepted \x1b[2J")
	tell.worker(rejected, "c: rejected")
	tell.flush()
	tell.flush()
	tell.worker(rejected, "d: rejected")
	tell.flush()
	want := "  b: accepted \\x1b[2J, and 2 more this second\n  d: rejected\n"
	if out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}
