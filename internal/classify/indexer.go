package classify

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/payload"
)

// IndexStore is the part of the store that the indexer needs.
type IndexStore interface {
	// Reindex marks all letters to be indexed again, unless they were indexed under the given version.
	Reindex(ctx context.Context, version string) (int, error)
	NextUnindexed(ctx context.Context, n int) ([]deadletter.Letter, error)
	Index(ctx context.Context, list []deadletter.Indexed) error
}

// IndexerOptions are the settings of an Indexer.
type IndexerOptions struct {
	Decoder func() *payload.Decoder                // decoder with the current types
	Mask    func(name, text string) (string, bool) // masks the value of a header; nil = nothing is masked
	Hide    func(text string) (string, bool)       // masks a text; nil = nothing is masked
	Masks   []string                               // the masks as texts; if they change, all letters are indexed again
	Text    bool                                   // whether to index the words of bodies
	Fields  []string                               // paths in bodies that queries can search
	Busy    func() bool                            // reports whether more urgent work waits; nil = never
	Types   sync.Locker                            // each step holds it, so that types do not change; nil = they never do
	Log     *slog.Logger
}

// Indexer maintains the search index in the background. It indexes letters after they are decided,
// and again when the masks or the indexed fields change.
type Indexer struct {
	loop
	store IndexStore
	o     IndexerOptions
}

// NewIndexer returns an Indexer. Call Run to start it.
func NewIndexer(store IndexStore, o IndexerOptions) *Indexer {
	if o.Busy == nil {
		o.Busy = func() bool { return false }
	}
	o.Fields = deadletter.Spellings(o.Fields...)
	work := loop{
		wake:  make(chan struct{}, 1),
		busy:  o.Busy,
		yield: time.Second,
		fail:  func(err error) { o.Log.Error("indexing letters for search failed", "err", err) },
	}
	return &Indexer{loop: work, store: store, o: o}
}

// indexVersion must be increased whenever the code in this file changes what is written into the
// index.
const indexVersion = 3

// version returns a text that identifies the present settings of the index. The part before the
// colon identifies the masks, and the part after the colon identifies all other settings.
func (x *Indexer) version() string {
	// Encoding cannot fail for strings, numbers and booleans.
	masks, _ := json.Marshal(x.o.Masks)
	text, _ := json.Marshal([]any{indexVersion, x.o.Text, x.o.Fields})
	return fmt.Sprintf("%x:%x", sha256.Sum256(masks), sha256.Sum256(text))
}

// Run indexes letters until ctx ends. While there are none to index, it computes the checksums of
// letters that an older dlo has stored.
func (x *Indexer) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		n, err := x.store.Reindex(ctx, x.version())
		if err == nil {
			if n > 0 {
				x.o.Log.Info("search: what is indexed has changed, so letters are indexed again", "letters", n)
			}
			break
		}
		x.fail(err)
		x.rest(ctx)
	}
	x.run(ctx, func(ctx context.Context) (bool, error) {
		n, err := x.Step(ctx)
		return n > 0, err
	})
	return nil
}

// Step indexes one batch and returns how many letters it had.
func (x *Indexer) Step(ctx context.Context) (int, error) {
	if x.o.Types != nil { // what was read with older types must not be recorded after a reading with newer ones
		x.o.Types.Lock()
		defer x.o.Types.Unlock()
	}
	letters, err := x.store.NextUnindexed(ctx, batch)
	if err != nil || len(letters) == 0 {
		return 0, err
	}
	list := make([]deadletter.Indexed, 0, len(letters))
	for i := range letters {
		if ctx.Err() != nil {
			break
		}
		list = append(list, x.entry(&letters[i]))
	}
	return len(list), x.store.Index(context.WithoutCancel(ctx), list)
}

// entry returns the index entry of one letter.
func (x *Indexer) entry(l *deadletter.Letter) deadletter.Indexed {
	e := deadletter.Indexed{Letter: l.ID, AsOf: l.ChangedAt}
	add := func(name, value string) {
		if value != "" {
			e.Fields = append(e.Fields, deadletter.IndexedField{Name: name, Value: value})
		}
	}
	property := func(name, value string) {
		if value != "" && !x.masked(name, value) {
			add(name, value)
		}
	}
	p, _ := l.Current()
	add("id", string(l.ID[len(l.ID)-8:]))
	property("exchange", l.Exchange)
	property("key", l.RoutingKey)
	add("rule", l.Rule)
	add("read", strings.ReplaceAll(string(l.Reading), " ", "-"))
	add(deadletter.IndexSibling, l.SiblingKey())
	property("app", p.AppID)
	property("message_id", p.MessageID)
	property("correlation_id", p.CorrelationID)
	for name, value := range l.Arrived.Headers {
		if deadletter.BrokerOwned(name) || slices.Contains([]string{
			deadletter.HeaderID, deadletter.HeaderToken, deadletter.HeaderAttempt,
		}, name) {
			continue
		}
		for _, text := range headerTexts(value) {
			if !x.masked(name, text) {
				add("header."+name, text)
			}
		}
	}
	text := []string{x.hide(l.Error), x.hide(l.Summary)}
	if x.o.Text || len(x.o.Fields) > 0 {
		doc := x.o.Decoder().Letter(l)
		for _, path := range x.o.Fields {
			if value, masked, ok := doc.Value(path); ok && !masked {
				add("body."+path, value)
			}
		}
		if x.o.Text {
			text = append(text, payload.Words(doc))
		}
	}
	e.Text = strings.Join(text, " ")
	return e
}

func (x *Indexer) hide(text string) string {
	if x.o.Hide != nil {
		text, _ = x.o.Hide(text)
	}
	return text
}

func (x *Indexer) masked(name, text string) bool {
	if x.o.Mask == nil {
		return false
	}
	_, masked := x.o.Mask(name, text)
	return masked
}

// headerTexts returns the value of a header as the texts that queries find. For an array, it
// returns all elements. Tables and values that cannot be read have no text.
func headerTexts(value any) []string {
	switch v := value.(type) {
	case string:
		return []string{v}
	case []byte:
		return []string{string(v)}
	case bool:
		return []string{strconv.FormatBool(v)}
	case time.Time:
		return []string{v.UTC().Format(time.RFC3339)}
	case nil, deadletter.Table, deadletter.Unread:
		return nil
	case []any:
		var list []string
		for _, e := range v {
			if _, nested := e.([]any); !nested {
				list = append(list, headerTexts(e)...)
			}
		}
		return list
	}
	return []string{fmt.Sprint(value)}
}
