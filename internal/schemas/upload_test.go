package schemas_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/descriptor"
	"github.com/deadletteroffice/dlo/internal/payload"
	"github.com/deadletteroffice/dlo/internal/schemas"
)

func TestUpload(t *testing.T) {
	t.Parallel()
	h := open(t, schemas.Options{})
	ctx := context.Background()
	c, e, err := h.Upload(
		ctx, deadletter.Local, "", source(`package p; message M { string a = 1; }`), `protos/shop.proto`, true,
	)
	if err != nil || c.Set != "shop" || len(c.Added) != 1 || e != (deadletter.SchemaEffect{Types: 1, Files: 1}) {
		t.Errorf("%+v, %+v, %v", c, e, err)
	}
	h.want("")
	h.upload("shop", `package p; message M { string a = 1; }`)
	c, _ = h.upload("shop", `package p; message M { string a = 1; int32 b = 2; } message N {}`)
	if len(c.Changed) != 1 || c.Known != "" {
		t.Errorf("%+v", c)
	}
	if c, _ = h.upload(
		"shop", `package p; message M { string a = 1; int32 b = 2; } message N {}`,
	); c.Known != descriptor.KnownCurrent {
		t.Errorf("%+v", c)
	}
	h.want("shop: p.M p.N")
	if got := h.audit(); !slices.Equal(got, []string{"schema uploaded by local", "schema uploaded by local"}) {
		t.Errorf("%q", got)
	}
	h.restart()
	h.want("shop: p.M p.N")
	if sets := h.Registry().Sets(); len(sets) != 2 || sets[0].By != "local" || sets[0].Detail != "x.proto" ||
		sets[0].Source != deadletter.SchemaUpload || sets[0].At.IsZero() {
		t.Errorf("%+v", sets)
	}
	if c, _ = h.upload(
		"shop", `package p; message M { string a = 1; }`,
	); c.Known != descriptor.KnownOlder || len(c.Removed) != 1 {
		t.Errorf("%+v", c)
	}
	h.restart()
	h.want("shop: p.M")
}

func TestUploadRefuses(t *testing.T) {
	t.Parallel()
	h := open(t, schemas.Options{})
	for _, tt := range []struct {
		name, set, file string
		content         []byte
		by              deadletter.Principal
		want            error
		text            string
	}{
		{"noise", "a", "x.binpb", []byte("\x08\x01"), deadletter.Local, deadletter.ErrInvalid, "buf build"},
		{"nothing", "a", "x.binpb", nil, deadletter.Local, deadletter.ErrInvalid, "empty"},
		{
			"no types", "a", "x.proto", source(`enum E { NONE = 0; }`), deadletter.Local, deadletter.ErrInvalid,
			"no message type",
		},
		{"no name", "", "", source(`message M {}`), deadletter.Local, deadletter.ErrInvalid, "needs a name"},
		{
			"an odd name", "a\u202eb", "x.proto", source(`message M {}`), deadletter.Local, deadletter.ErrInvalid,
			"a letter or a digit",
		},
		{
			"a path", "../../x", "x.proto", source(`message M {}`), deadletter.Local, deadletter.ErrInvalid,
			"a letter or a digit",
		},
		{
			"a folder", "shop/x", "x.proto", source(`message M {}`), deadletter.Local, deadletter.ErrInvalid,
			"a letter or a digit",
		},
		{
			"a tag", `"><img src=x>`, "x.proto", source(`message M {}`), deadletter.Local, deadletter.ErrInvalid,
			"a letter or a digit",
		},
		{
			"an option", "-rf", "x.proto", source(`message M {}`), deadletter.Local, deadletter.ErrInvalid,
			"a letter or a digit",
		},
		{
			"a space behind it", "shop ", "x.proto", source(`message M {}`), deadletter.Local, deadletter.ErrInvalid,
			"a letter or a digit",
		},
		{
			"a file that is called oddly", "", "<b>.proto", source(`message M {}`), deadletter.Local,
			deadletter.ErrInvalid, "a letter or a digit",
		},
		{
			"a long name", strings.Repeat("a", 201), "x.proto", source(`message M {}`), deadletter.Local,
			deadletter.ErrInvalid, "200 bytes",
		},
		{
			"somebody",
			"a",
			"x.proto",
			source(`message M {}`),
			deadletter.Principal{Name: "eve"},
			deadletter.ErrForbidden,
			"may not change schemas and types",
		},
	} {
		_, _, err := h.Upload(context.Background(), tt.by, tt.set, tt.content, tt.file, false)
		if !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.text) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	h.want("")
	if got := h.audit(); got != nil {
		t.Errorf("%q", got)
	}
}

// receive stores a letter and classifies it with the given type. The type may be empty.
func (h *house) receive(n int64, body string, typ string, reading deadletter.Reading) {
	h.t.Helper()
	ctx := context.Background()
	a := deadletter.Arrival{
		Exchange:   "x",
		RoutingKey: "q",
		Tag:        1,
		Body:       []byte(body),
		Properties: deadletter.Properties{MessageID: fmt.Sprint(n)},
	}
	print, err := a.Print()
	if err != nil {
		h.t.Fatal(err)
	}
	a.Fingerprint = print
	w := deadletter.Window{
		Session:     1,
		Number:      n,
		Broker:      "main",
		VHost:       "/",
		Inbox:       "i",
		Uncertain:   deadletter.UncertainHold,
		Horizon:     time.Minute,
		HorizonRows: 1000,
		Arrivals:    []deadletter.Arrival{a},
	}
	r, err := h.store.Receive(ctx, w)
	if err != nil {
		h.t.Fatal(err)
	}
	if err := h.store.SettleWindow(ctx, r.Window); err != nil {
		h.t.Fatal(err)
	}
	letters, err := h.store.NextReceived(ctx, 10)
	if err != nil || len(letters) != 1 {
		h.t.Fatal(len(letters), err)
	}
	err = h.store.Classify(ctx, []deadletter.Classified{{
		Letter:       letters[0].ID,
		To:           deadletter.ClassifiedDead,
		Origin:       deadletter.Origin{Broker: "main", VHost: "/", Queue: "q"},
		Type:         typ,
		Reading:      reading,
		GroupKey:     [32]byte{1},
		GroupTitle:   "g",
		GroupVersion: 1,
	}})
	if err != nil {
		h.t.Fatal(err)
	}
}

func TestAnUploadSaysWhatItReaches(t *testing.T) {
	t.Parallel()
	var h *house
	changed := 0
	h = open(t, schemas.Options{
		Decoder: func() *payload.Decoder {
			return &payload.Decoder{Types: h.Registry(), Bindings: []deadletter.Binding{{Queue: "q", Type: "p.M"}}}
		},
		Untyped: func(ctx context.Context, n int) ([]deadletter.Letter, error) { return h.store.Untyped(ctx, n) },
		Between: func(change func() error) error { changed++; return change() },
	})
	h.receive(1, "\x0a\x05hello", "", deadletter.ReadUnknown)
	h.receive(2, "\xff\xff", "", deadletter.ReadUnknown)
	h.receive(3, "\x0a\x05hello", "p.Outer", deadletter.ReadByProperty)
	const outer = ` message Outer { repeated M m = 1; }`
	ctx := context.Background()
	_, e, err := h.Upload(
		ctx, deadletter.Local, "a", source(`package p; message M { string a = 1; }`+outer), "a.proto", true,
	)
	if err != nil || e != (deadletter.SchemaEffect{
		Types: 2, Files: 1, Letters: 1, Sampled: 2, Readable: 1,
	}) || changed != 0 {
		t.Errorf("%+v, %v, changed %d", e, err, changed)
	}
	h.upload("a", `package p; message M { string a = 1; }`+outer)
	if r, err := h.store.RereadProgress(ctx); err != nil || !strings.HasPrefix(r.Why, "set a ") || changed != 1 {
		t.Errorf("%+v, %v, changed %d", r, err, changed)
	}
	for more := true; more; {
		if more, err = h.store.ListUnread(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if letters, err := h.store.NextUnread(ctx, 10); err != nil || len(letters) != 3 {
		t.Errorf("%d letters are read again, %v", len(letters), err)
	}
	// This upload changes the message M, and with it the content of the message Outer, which
	// contains M.
	_, e, err = h.Upload(
		ctx, deadletter.Local, "a", source(`package p; message M { string a = 1; string b = 2; }`+outer), "a.proto",
		true,
	)
	if err != nil || e.Letters != 1 {
		t.Errorf("%+v, %v", e, err)
	}
	if e, err := h.Remove(ctx, deadletter.Local, "a", true); err != nil || e.Letters != 1 || e.Types != 2 {
		t.Errorf("%+v, %v", e, err)
	}
}

// TestAChangeThatHidesForgetsWhatIsShown checks which changes of types remove the contents of
// letters from the lists and the search index before the letters are read again: those after which
// debug_redact or a rule for fields may hide more.
func TestAChangeThatHidesForgetsWhatIsShown(t *testing.T) {
	t.Parallel()
	fields := &payload.Mask{Fields: []deadletter.MaskedField{{Path: deadletter.FieldPath{"b"}}}}
	const outer = ` message Outer { M m = 1; }`
	for _, c := range []struct {
		mask      *payload.Mask
		was, is   string
		forgotten bool
	}{
		{nil, `message M { string a = 1; }`, `message M { string a = 1; string b = 2; }`, false},
		{nil, `message M { string a = 1; }`, `message M { string a = 1 [debug_redact = true]; }`, true},
		{
			nil, `message M { string a = 1 [debug_redact = true]; }`,
			`message M { string a = 1 [debug_redact = true]; } message Other { string a = 1; }`, false,
		},
		{
			nil, `message M { string a = 1 [debug_redact = true]; }`,
			`message M { string a = 1 [debug_redact = true]; } message Next { Outer a = 1; }`, true,
		},
		{fields, `message M { string a = 1; }`, `message M { string a = 1; string b = 2; }`, true},
	} {
		var h *house
		h = open(t, schemas.Options{Decoder: func() *payload.Decoder {
			return &payload.Decoder{Types: h.Registry(), Mask: c.mask}
		}})
		ctx := t.Context()
		list := func() {
			for more := true; more; {
				var err error
				if more, err = h.store.ListUnread(ctx); err != nil {
					t.Fatal(err)
				}
			}
		}
		h.upload("a", `package p; `+c.was+outer)
		list()
		h.receive(1, `{"a":"canary"}`, "", deadletter.ReadAsJSON)
		letters, err := h.store.NextUnindexed(ctx, 1)
		if err != nil || len(letters) != 1 {
			t.Fatal(letters, err)
		}
		if err := h.store.Index(ctx, []deadletter.Indexed{{Letter: letters[0].ID, Text: "canary"}}); err != nil {
			t.Fatal(err)
		}
		h.upload("a", `package p; `+c.is+outer)
		list()
		if n, err := h.store.Unindexed(ctx); (n == 1) != c.forgotten || err != nil {
			t.Errorf("%s after %s: %d letters are indexed again: %v", c.is, c.was, n, err)
		}
	}
}

// TestLettersWithAnAnyAreReadAgain adds a set with a type that an Any of another set may contain.
func TestLettersWithAnAnyAreReadAgain(t *testing.T) {
	t.Parallel()
	h := open(t, schemas.Options{})
	h.upload("bus", `package bus; import "google/protobuf/any.proto"; message Carrier { google.protobuf.Any load = 1; }`)
	h.receive(1, "\x0a\x00", "bus.Carrier", deadletter.ReadByProperty)
	h.receive(2, "\x0a\x00", "bus.Other", deadletter.ReadByProperty)
	h.upload("shop", `package shop; message Parcel { string id = 1; }`)
	ctx := context.Background()
	for more := true; more; {
		var err error
		if more, err = h.store.ListUnread(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if letters, err := h.store.NextUnread(ctx, 10); err != nil || len(letters) != 1 || letters[0].Type != "bus.Carrier" {
		t.Errorf("%d letters are read again, %v", len(letters), err)
	}
}
