package system

import (
	"context"
	"database/sql"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/classify"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/descriptor"
	"github.com/deadletteroffice/dlo/internal/payload"
	"github.com/deadletteroffice/dlo/internal/payload/payloadtest"
	"github.com/deadletteroffice/dlo/internal/rules"
	"github.com/deadletteroffice/dlo/internal/store"
	"github.com/deadletteroffice/dlo/internal/testenv"
)

var benchBacklog = flag.Int("backlog", 100_000, "letters of TestBenchClassify and of each store of TestBenchDisk")

// benchDecoder returns a decoder with 200 protobuf types, for letters made by payloadtest.Order.
func benchDecoder(t *testing.T) *payload.Decoder {
	t.Helper()
	r := descriptor.NewRegistry()
	if _, err := r.AddSet("shop", payloadtest.OrderSet(200)); err != nil {
		t.Fatal(err)
	}
	return &payload.Decoder{Types: r, NoJSON: true} // NoJSON is set as in dlo serve
}

// backlog is a store of letters that dlo has received and not yet classified.
type backlog struct {
	*store.Store
	path     string
	letters  int
	received int64
	d        *payload.Decoder
}

func newBacklog(t *testing.T, d *payload.Decoder, letters, lines int, contentType string) *backlog {
	t.Helper()
	b := &backlog{path: filepath.Join(t.TempDir(), "dlo.db"), letters: letters, d: d}
	var err error
	if b.Store, err = store.Open(t.Context(), b.path, store.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	random := rand.New(rand.NewPCG(1, 2))
	b.received = receiveInto(t, b.Store, letters, func(n int) deadletter.Arrival {
		p := deadletter.Properties{
			ContentType: contentType, DeliveryMode: 2, AppID: "shop", MessageID: fmt.Sprint(n), Timestamp: time.Now(),
			Headers: rejectedFrom(fmt.Sprintf("queue-%d", n%40)),
		}
		p.Headers["traceparent"] = fmt.Sprintf("00-%032x-%016x-01", random.Uint64(), random.Uint64())
		p.Headers["x-error-message"] = "endpoint answered 410"
		return deadletter.Arrival{Body: payloadtest.Order(random, n, lines), Properties: p}
	})
	return b
}

// classify runs the classifier of dlo on every letter and returns how long that took.
func (b *backlog) classify(t *testing.T) time.Duration {
	t.Helper()
	targets := &rules.Targets{}
	targets.Add("main", "/", []string{"*"}, nil)
	ctx, done := context.WithCancel(t.Context())
	defer done()
	c := classify.New(b.Store, classify.Options{
		Decoder: func() *payload.Decoder { return b.d },
		Rules:   rules.NewBook(&rules.Set{Default: rules.Rule{Name: "default", Retry: &rules.Retry{}}}),
		Targets: targets,
		Log:     slog.New(slog.DiscardHandler),
		Done: func() {
			if left, err := b.NextReceived(t.Context(), 1); err != nil || len(left) == 0 {
				done()
			}
		},
	})
	began := time.Now()
	if err := c.Run(ctx); err != nil {
		t.Fatal(err)
	}
	return time.Since(began)
}

func (b *backlog) index(t *testing.T, text bool, fields []string) time.Duration {
	t.Helper()
	x := classify.NewIndexer(b.Store, classify.IndexerOptions{
		Decoder: func() *payload.Decoder { return b.d }, Text: text, Fields: fields, Log: slog.New(slog.DiscardHandler),
	})
	return b.steps(t, x.Step)
}

func (b *backlog) steps(t *testing.T, step func(context.Context) (int, error)) time.Duration {
	t.Helper()
	began := time.Now()
	for {
		n, err := step(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			return time.Since(began)
		}
	}
}

// record stores the same prepared verdict for every letter, without a classifier. So it measures
// the store alone.
func (b *backlog) record(t *testing.T) time.Duration {
	t.Helper()
	return b.steps(t, func(ctx context.Context) (int, error) {
		letters, err := b.NextReceived(ctx, 200)
		if err != nil || len(letters) == 0 {
			return 0, err
		}
		verdicts := make([]deadletter.Classified, len(letters))
		for i, l := range letters {
			verdicts[i] = deadletter.Classified{
				Letter: l.ID,
				To:     deadletter.ClassifiedDead,
				Origin: deadletter.Origin{
					Broker: "main", VHost: "/", Queue: "queue-1", Exchange: "events", RoutingKey: "k",
				},
				Reason:       "rejected",
				Rule:         "default",
				Type:         payloadtest.OrderType,
				Reading:      deadletter.ReadByMatch,
				Summary:      strings.Repeat("x", 100),
				Error:        "endpoint answered 410",
				GroupKey:     [32]byte{1},
				GroupTitle:   "g",
				GroupVersion: 1,
				Severity:     deadletter.SeverityDigest,
			}
		}
		return len(letters), b.Classify(ctx, verdicts)
	})
}

// TestBenchClassify measures goal P10 of docs/performance.md: how fast received letters of known
// types are classified and stored. It also measures the share of the time that decoding and the
// store take.
func TestBenchClassify(t *testing.T) {
	testenv.Bench(t)
	const rounds, lines = 3, 2
	d := benchDecoder(t)
	lineOf := map[string][]float64{}
	names := []string{
		"verdicts, type named by the letter", "verdicts, type found by matching", "reading alone, named",
		"reading alone, matched", "store alone", "index, words and a field",
	}
	random := rand.New(rand.NewPCG(3, 4))
	bodies := make([][]byte, 1000)
	size := 0
	for i := range bodies {
		bodies[i] = payloadtest.Order(random, i, lines)
		size += len(bodies[i])
	}
	named := "application/protobuf; proto=" + payloadtest.OrderType
	read := func(contentType string) time.Duration {
		began := time.Now()
		for i := range *benchBacklog {
			if doc := d.Decode(
				bodies[i%len(bodies)], payload.Hints{ContentType: contentType}, nil,
			); doc.Type != payloadtest.OrderType || payload.Summary(doc, "") == "" {
				t.Fatal(doc.Type, doc.Problem)
			}
		}
		return time.Since(began)
	}
	for range rounds {
		for i, run := range []func() time.Duration{
			func() time.Duration { return newBacklog(t, d, *benchBacklog, lines, named).classify(t) },
			func() time.Duration { return newBacklog(t, d, *benchBacklog, lines, "").classify(t) },
			func() time.Duration { return read(named) },
			func() time.Duration { return read("") },
			func() time.Duration { return newBacklog(t, d, *benchBacklog, lines, named).record(t) },
			func() time.Duration {
				b := newBacklog(t, d, *benchBacklog, lines, named)
				b.classify(t)
				return b.index(t, true, []string{"customer.address.city"})
			},
		} {
			lineOf[names[i]] = append(lineOf[names[i]], float64(*benchBacklog)/run().Seconds())
		}
	}
	t.Logf(
		"P10 %d letters of %d bytes, one of %d types, 40 queues, %d rounds", *benchBacklog, size/len(bodies),
		len(d.Types.Types()), rounds,
	)
	for _, name := range names {
		rates := lineOf[name]
		t.Logf("P10 %-36s %8.0f /s (%.0f to %.0f)", name, median(rates), slices.Min(rates), slices.Max(rates))
	}
	for _, name := range names[:2] {
		var ratios []float64
		for i := range rounds {
			ratios = append(ratios, lineOf[name][i]/lineOf["store alone"][i])
		}
		t.Logf(
			"P10 %-36s %.2f of the store alone (%.2f to %.2f), per second: %s", name, median(ratios),
			slices.Min(ratios), slices.Max(ratios), against(median(lineOf[name]), ">= 10000"),
		)
	}
}

// TestBenchDisk measures goal P13 of docs/performance.md for protobuf letters: the disk space of a
// letter, compared with the bytes received. It also measures how much of the space the search index
// takes.
func TestBenchDisk(t *testing.T) {
	testenv.Bench(t)
	d := benchDecoder(t)
	for _, lines := range []int{2, 26} {
		for _, s := range []struct {
			name   string
			text   bool
			fields []string
		}{
			{"without search text", false, nil},
			{"with words", true, nil},
			{"with words and three fields", true, []string{"customer.name", "customer.address.city", "order_id"}},
		} {
			b := newBacklog(t, d, *benchBacklog, lines, "application/protobuf; proto="+payloadtest.OrderType)
			b.classify(t)
			b.index(t, s.text, s.fields)
			if err := b.Close(); err != nil { // closing the store also makes a checkpoint
				t.Fatal(err)
			}
			size := int64(0)
			for _, suffix := range []string{"", "-wal"} {
				if info, err := os.Stat(b.path + suffix); err == nil {
					size += info.Size()
				}
			}
			parts, err := b.parts()
			if err != nil {
				t.Fatal(err)
			}
			each := func(n int64) float64 { return float64(n) / float64(b.letters) }
			t.Logf(
				"P13 %d letters, %-28s %5.0f bytes a letter of %4.0f received: ratio %.2f, %s; %s", b.letters, s.name,
				each(size), each(b.received), float64(size)/float64(b.received),
				against(float64(size)/float64(b.received), "<= 1.0"), shares(parts),
			)
			os.Remove(b.path)
		}
	}
}

// part is the space that one table or index takes in the store's file.
type part struct {
	name          string
	bytes, unused float64 // bytes per letter
}

// parts lists the tables and indexes of the store, largest first. It counts the tables of the text
// index as one.
func (b *backlog) parts() ([]part, error) {
	db, err := sql.Open("sqlite", "file:"+b.path+"?mode=ro")
	if err != nil {
		return nil, err
	}
	defer db.Close()
	rows, err := db.Query(`SELECT CASE WHEN name LIKE 'words%' THEN 'words' ELSE name END, sum(pgsize), sum(unused)
		FROM dbstat GROUP BY 1 ORDER BY 2 DESC`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var list []part
	for rows.Next() {
		var p part
		if err := rows.Scan(&p.name, &p.bytes, &p.unused); err != nil {
			return nil, err
		}
		p.bytes, p.unused = p.bytes/float64(b.letters), p.unused/float64(b.letters)
		list = append(list, p)
	}
	return list, rows.Err()
}

// shares returns a text that lists the parts. It gives each part's size in bytes, divided by the
// number of letters in the store. It leaves out parts below 5 bytes per letter.
func shares(list []part) string {
	var text []string
	for _, p := range list {
		if p.bytes >= 5 {
			text = append(text, fmt.Sprintf("%s %.0f (%.0f empty)", p.name, p.bytes, p.unused))
		}
	}
	return strings.Join(text, ", ")
}
