package web

import "testing"

// TestStreams checks that one principal cannot use all event streams that dlo allows. When a stream
// ends, another one must be possible.
func TestStreams(t *testing.T) {
	t.Parallel()
	var s streams
	fill := func(name string) (n int) {
		for s.enter(name) {
			n++
		}
		return n
	}
	if n := fill("ana"); n != maxOwnStreams {
		t.Errorf("one principal has %d streams", n)
	}
	if n := fill("bob"); n != maxOwnStreams {
		t.Errorf("another principal has %d streams", n)
	}
	if n := fill(""); n != maxStreams-2*maxOwnStreams {
		t.Errorf("%d streams without a limit of their own", n)
	}
	s.leave("ana")
	if s.enter("bob") || !s.enter("ana") || s.enter("") {
		t.Error("a place that was given back is not free again for who may have it")
	}
}
