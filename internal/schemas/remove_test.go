package schemas_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/schemas"
)

func TestRemove(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := open(t, schemas.Options{Directory: dir})
	ctx := context.Background()
	h.upload("a", `message A {}`)
	h.upload("a", `message A {} message B {}`)
	write(t, dir, "d.proto", source(`message D {}`))
	h.Refresh(ctx)
	h.want("a: A B; protos: D")
	if _, err := h.Remove(
		ctx, deadletter.Principal{Name: "eve"}, "a", false,
	); !errors.Is(err, deadletter.ErrForbidden) {
		t.Error(err)
	}
	if _, err := h.Remove(ctx, deadletter.Local, "gone", false); !errors.Is(err, deadletter.ErrNotFound) {
		t.Error(err)
	}
	if _, err := h.Remove(
		ctx, deadletter.Local, "protos", false,
	); !errors.Is(err, deadletter.ErrConflict) || !strings.Contains(err.Error(), "delete the file") {
		t.Error(err)
	}
	if _, _, err := h.Upload(
		ctx, deadletter.Local, "protos", source(`message A {}`), "", false,
	); !errors.Is(err, deadletter.ErrConflict) || !strings.Contains(err.Error(), "choose another name") {
		t.Error(err)
	}
	if _, err := h.Remove(ctx, deadletter.Local, "a", true); err != nil {
		t.Error(err)
	}
	h.want("a: A B; protos: D")
	if _, err := h.Remove(ctx, deadletter.Local, "a", false); err != nil {
		t.Error(err)
	}
	h.want("protos: D")
	h.restart()
	h.want("protos: D")
	if got := h.audit(); got[0] != "schema removed by local" {
		t.Errorf("%q", got)
	}
	h.upload("a", `message A {}`)
	if sets := h.Registry().Sets(); len(sets) != 2 {
		t.Errorf("what is uploaded again brings its other versions along: %+v", sets)
	}
}
