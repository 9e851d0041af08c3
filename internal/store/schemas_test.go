package store_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/internal/store"
)

// versions returns the versions in use in the order of the store. It returns each version as the
// text "name version content".
func versions(t *testing.T, s *store.Store, newest int) []string {
	t.Helper()
	var list []string
	err := s.SchemaVersions(context.Background(), newest, func(v deadletter.SchemaVersion) error {
		list = append(list, v.Name+" "+v.Version+" "+string(v.Content))
		if v.At.IsZero() || v.CurrentAt.IsZero() || v.Source != deadletter.SchemaUpload || v.By != "dana" ||
			v.Detail != "f.binpb" {
			t.Errorf("%+v", v)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func addVersion(
	t *testing.T, s *store.Store, name, version, content string, r deadletter.Reread,
) deadletter.SchemaVersion {
	t.Helper()
	v, err := s.AddSchemaVersion(context.Background(), deadletter.SchemaVersion{
		Name: name, Version: version, Source: deadletter.SchemaUpload, Detail: "f.binpb", By: "dana",
		Content: []byte(content),
	}, "set "+name, r)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestSchemaVersions(t *testing.T) {
	t.Parallel()
	s, c := open(t)
	ctx := context.Background()
	large := strings.Repeat("descriptor ", 100_000)
	first := addVersion(t, s, "a", "1", large, deadletter.Reread{})
	addVersion(t, s, "b", "1", "x", deadletter.Reread{})
	c.at = c.at.Add(time.Second)
	addVersion(t, s, "a", "2", "y", deadletter.Reread{})
	if got := versions(t, s, 10); !slices.Equal(got, []string{"a 1 " + large, "b 1 x", "a 2 y"}) {
		t.Errorf("%.80q", got)
	}
	// becomes current in the same millisecond as version 2 of set a
	if again := addVersion(
		t, s, "a", "1", large, deadletter.Reread{},
	); !again.At.Equal(first.At) || !again.CurrentAt.After(first.CurrentAt) {
		t.Errorf("%v, %v", again.At, again.CurrentAt)
	}
	if got := versions(t, s, 10); !slices.Equal(got, []string{"b 1 x", "a 2 y", "a 1 " + large}) {
		t.Errorf("%.80q", got)
	}
	if got := versions(t, s, 1); !slices.Equal(got, []string{"b 1 x", "a 1 " + large}) {
		t.Errorf("the newest: %.80q", got)
	}
	if err := s.RemoveSchema(ctx, "a", "dana", "set a", deadletter.Reread{}); err != nil {
		t.Fatal(err)
	}
	if err := s.RemoveSchema(ctx, "a", "dana", "set a", deadletter.Reread{}); !errors.Is(err, deadletter.ErrNotFound) {
		t.Error(err)
	}
	if got := versions(t, s, 10); !slices.Equal(got, []string{"b 1 x"}) {
		t.Errorf("%.80q", got)
	}
	if got, err := s.RemovedSchemas(
		ctx,
	); err != nil || len(got) != 2 || got[0].Name != "a" || got[0].Version != "1" || got[0].RemovedAt.IsZero() {
		t.Errorf("%+v, %v", got, err)
	}
	addVersion(t, s, "a", "2", "y", deadletter.Reread{})
	if got := versions(t, s, 10); !slices.Equal(got, []string{"b 1 x", "a 2 y"}) {
		t.Errorf("what is added again brings its older versions along: %.80q", got)
	}
	stop := errors.New("stop")
	if err := s.SchemaVersions(ctx, 10, func(deadletter.SchemaVersion) error { return stop }); !errors.Is(err, stop) {
		t.Error(err)
	}
}

func TestAChangeOfSchemasListsLettersAndIsAudited(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	ctx := context.Background()
	receive(t, s, window(t, 1, "sms", 3))
	classify(t, s, deadletter.ClassifiedDead, time.Time{}) // the letters get the type acme.T
	addVersion(t, s, "a", "1", "x", deadletter.Reread{Why: "set a 1", Types: []string{"acme.T"}})
	if got := nextUnread(t, s, 10); len(got) != 3 {
		t.Errorf("%d letters are read again", len(got))
	}
	if err := s.RemoveSchema(ctx, "a", "dana", "set a: 1 type", deadletter.Reread{
		Why:   "without set a",
		Types: []string{"acme.T"},
	}); err != nil {
		t.Fatal(err)
	}
	if r := rereading(t, s); !strings.Contains(r.Why, "without set a") {
		t.Errorf("%+v", r)
	}
	entries, _, err := s.Audit(ctx, query.Query{}, "", 10)
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, e := range entries {
		kinds = append(kinds, e.Kind+" by "+e.Actor+": "+e.Detail)
	}
	if !slices.Equal(kinds, []string{"schema removed by dana: set a: 1 type", "schema uploaded by dana: set a"}) {
		t.Errorf("%q", kinds)
	}
}

func TestLettersByTypeAndWithout(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	ctx := context.Background()
	receive(t, s, window(t, 1, "sms", 3))
	classify(t, s, deadletter.ClassifiedDead, time.Time{}) // the letters get the type acme.T
	receive(t, s, window(t, 2, "email", 2))
	letters, err := s.NextReceived(ctx, 10)
	if err != nil {
		t.Fatal(err)
	}
	var verdicts []deadletter.Classified
	for i, l := range letters {
		verdicts = append(verdicts, deadletter.Classified{
			Letter:       l.ID,
			To:           deadletter.ClassifiedDead,
			Reading:      []deadletter.Reading{deadletter.ReadUnknown, deadletter.ReadAsText}[i],
			GroupKey:     [32]byte{2},
			GroupTitle:   "g",
			GroupVersion: 1,
		})
	}
	if err := s.Classify(ctx, verdicts); err != nil {
		t.Fatal(err)
	}
	for _, types := range [][]string{nil, {"acme.T", "acme.U"}} {
		if got, err := s.TypeCounts(ctx, types); err != nil || len(got) != 1 || got["acme.T"] != 3 {
			t.Errorf("%v, %v", got, err)
		}
	}
	if got, err := s.TypeCounts(ctx, []string{}); err != nil || len(got) != 0 {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := s.Untyped(ctx, 10); err != nil || len(got) != 1 || got[0].ID != letters[0].ID ||
		len(got[0].Body) == 0 {
		t.Errorf("%+v, %v", got, err)
	}
}
