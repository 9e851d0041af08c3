package classify

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/payload"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/internal/storetest"
)

// indexed maps a version of the index to the names of the fields that the method "entry" writes
// from this version on.
var indexed = map[int]string{
	3: "app body.orderId body.order_id body.tier correlation_id exchange header.x-tenant id key message_id read rule sibling",
}

// TestWhatALetterIsFoundBy checks which fields the method "entry" writes to the index. It must
// write every field that queries find through the index, and the letter of the test has all of
// them. If the method writes other fields than before, the index version must change.
func TestWhatALetterIsFoundBy(t *testing.T) {
	t.Parallel()
	l := storetest.Filled[deadletter.Letter]()
	l.ID = deadletter.NewID(1, 1)
	l.Arrived.Headers = deadletter.Table{"x-tenant": "acme"}
	l.Properties.ContentType, l.Body = "application/json", []byte(
		`{"tier": "gold", "order_id": "A-1", "orderId": "A-2"}`,
	)
	x := NewIndexer(nil, IndexerOptions{
		Decoder: func() *payload.Decoder { return &payload.Decoder{} },
		Fields:  []string{"tier", "order_id"},
	})
	var names []string
	for _, f := range x.entry(&l).Fields {
		names = append(names, f.Name)
	}
	slices.Sort(names)
	if got := strings.Join(names, " "); got != indexed[indexVersion] {
		t.Errorf(
			"a letter is found by\n%s\nand version %d of the index has\n%s\nIncrease indexVersion, and add its names here.",
			got, indexVersion, indexed[indexVersion],
		)
	}
	for _, f := range query.Fields {
		if f.Indexed() && !slices.ContainsFunc(
			names, func(name string) bool { return name == string(f) || strings.HasPrefix(name, string(f)+".") },
		) {
			t.Errorf("no letter is found by %s, which the index is asked for", f)
		}
	}
}

// TestNothingMaskedIsIndexed checks that no search finds a letter by a masked value.
func TestNothingMaskedIsIndexed(t *testing.T) {
	t.Parallel()
	masks := payload.Masks{
		Headers:  []string{"authorization"},
		JSON:     []deadletter.FieldPath{{"tier"}},
		Patterns: []*regexp.Regexp{regexp.MustCompile(`kanarie-[0-9]+`)},
	}
	l := storetest.Filled[deadletter.Letter]()
	l.ID = deadletter.NewID(1, 1)
	l.Arrived.Headers = deadletter.Table{"authorization": "kanarie", "x-card": "kanarie-1"}
	l.Properties.ContentType, l.Body = "application/json", []byte(
		`{"tier": "kanarie", "note": "kanarie-2", "city": "Utrecht"}`,
	)
	l.Error, l.Summary = "no card kanarie-3", "kanarie-4"
	x := NewIndexer(nil, IndexerOptions{
		Decoder: func() *payload.Decoder { return &payload.Decoder{Mask: masks.Body()} },
		Mask:    masks.Header, Hide: masks.Text, Text: true, Fields: []string{"tier", "note", "city"},
	})
	e := x.entry(&l)
	if text := fmt.Sprint(e); strings.Contains(text, "kanarie") || !strings.Contains(text, "Utrecht") {
		t.Errorf("the index has %s", text)
	}
}

// unindexed is a store with one letter to index. It checks that the types are locked all the time.
type unindexed struct {
	IndexStore
	types *sync.RWMutex
	open  bool // the types could change
}

func (u *unindexed) look() {
	if u.types.TryLock() {
		u.open = true
		u.types.Unlock()
	}
}

func (u *unindexed) NextUnindexed(context.Context, int) ([]deadletter.Letter, error) {
	u.look()
	return []deadletter.Letter{{Row: deadletter.Row{ID: deadletter.NewID(1, 1)}}}, nil
}

func (u *unindexed) Index(context.Context, []deadletter.Indexed) error {
	u.look()
	return nil
}

// TestTypesStayWhileLettersAreIndexed checks that types do not change between the reading of a
// letter and the writing of its index entry. The entry could otherwise replace one that was made
// with the new types, which may hide more.
func TestTypesStayWhileLettersAreIndexed(t *testing.T) {
	t.Parallel()
	c := &Classifier{}
	u := &unindexed{types: &c.types}
	x := NewIndexer(u, IndexerOptions{Types: c.Types()})
	if n, err := x.Step(t.Context()); n != 1 || err != nil || u.open {
		t.Errorf("%d letters, %v; types could change: %v", n, err, u.open)
	}
	if !c.types.TryLock() {
		t.Error("the types stay locked")
	}
}
