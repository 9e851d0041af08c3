package descriptor

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// slow returns a 1 MB file that takes the compiler minutes, because the work for options grows with
// the square of their number.
func slow() *compilation {
	options := strings.TrimSuffix(strings.Repeat("deprecated=true,", 60_000), ",")
	return &compilation{Files: []string{"m.proto"}, Text: map[string][]byte{"m.proto": []byte(`syntax = "proto2"; message M { optional string a = 1 [` + options + `]; }`)}}
}

func TestACompilerThatTakesTooLongIsEnded(t *testing.T) {
	t.Parallel()
	if out, err := slow().apart(t.Context(), 1); !errors.Is(err, ErrSchemaTooLarge) || !strings.Contains(err.Error(), "more than 1 s to compile; upload a descriptor set") {
		t.Errorf("%+v, %v", out, err)
	}
}

func TestACompilerEndsWithWhoAsked(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if out, err := slow().apart(ctx, 1000); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%+v, %v", out, err)
	}
}
