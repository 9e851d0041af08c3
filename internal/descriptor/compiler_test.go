package descriptor

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

// slowSource returns a file of 1 MB that takes the compiler minutes, because a field in it has
// 60,000 options. The time for compiling options grows with the square of their number.
func slowSource() *compilation {
	options := strings.TrimSuffix(strings.Repeat("deprecated=true,", 60_000), ",")
	return &compilation{
		Files: []string{"m.proto"},
		Text: map[string][]byte{
			"m.proto": []byte(`syntax = "proto2"; message M { optional string a = 1 [` + options + `]; }`),
		},
	}
}

func TestACompilerThatTakesTooLongIsEnded(t *testing.T) {
	t.Parallel()
	if out, err := slowSource().runProcess(t.Context(), 1); !errors.Is(err, ErrSchemaTooLarge) ||
		!strings.Contains(err.Error(), "more than 1 s to compile; upload a descriptor set") {
		t.Errorf("%+v, %v", out, err)
	}
}

func TestACompilerEndsWithWhoAsked(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if out, err := slowSource().runProcess(ctx, 1000); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%+v, %v", out, err)
	}
}

// TestADirectoryWithASlowFileHoldsTheOthers covers .proto files of the watched directory that take
// the compiler minutes. The compiler must give up after compileCPU seconds of processor time. The
// files must then count as partly read, so that their previous version stays in use. The other sets
// of the directory must be read.
func TestADirectoryWithASlowFileHoldsTheOthers(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for a compiler that runs out of time")
	}
	t.Parallel()
	found, errs := ReadDir(t.Context(), fstest.MapFS{
		"m.proto":      {Data: slowSource().Text["m.proto"]},
		"orders.binpb": {Data: descriptorSet(t, true)},
	})
	if len(errs) != 1 || !errors.Is(errs[0], ErrSchemaTooLarge) {
		t.Errorf("%v", errs)
	}
	if len(found) != 2 || found[0].Name != "orders.binpb" || found[0].Schema == nil || found[0].Part ||
		found[1].Name != "protos" || found[1].Schema != nil || !found[1].Part {
		t.Errorf("%+v", found)
	}
}
