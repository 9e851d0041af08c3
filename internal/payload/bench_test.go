package payload

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/deadletteroffice/dlo/internal/budget"
	"github.com/deadletteroffice/dlo/internal/descriptor"
	"github.com/deadletteroffice/dlo/internal/payload/payloadtest"
	"github.com/deadletteroffice/dlo/internal/testenv"
)

// BenchmarkDecode decodes the sample letter. This includes base64, protobuf, the tree, the JSON and
// the summary.
func BenchmarkDecode(b *testing.B) {
	body := encodeStd(sample(b))
	for name, mask := range map[string]*Mask{"plain": nil, "masked": pattern} {
		d := &Decoder{Types: schemas(), Mask: mask}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if doc := d.Decode(body, Hints{Type: email}, nil); Summary(doc, "") == "" {
					b.Fatal(doc.Problem)
				}
			}
		})
	}
}

// TestBenchDecode compares two times: how long dlo takes to read a letter, and how long the
// letter's decoders take without the rest of dlo. It measures both in turn, and reports the median,
// the minimum and the maximum.
func TestBenchDecode(t *testing.T) {
	testenv.Bench(t)
	const rounds, times = 5, 20_000
	r := descriptor.NewRegistry()
	if _, err := r.AddSet("shop", payloadtest.OrderSet(200)); err != nil {
		t.Fatal(err)
	}
	defs, _ := r.Lookup(payloadtest.OrderType)
	def := defs[0]
	random := rand.New(rand.NewPCG(3, 4))
	bodies := make([][]byte, 500)
	size := 0
	for i := range bodies {
		bodies[i] = payloadtest.Order(random, i, 2)
		size += len(bodies[i])
	}
	d := &Decoder{Types: r}
	plain := func(body []byte) *dynamicpb.Message {
		m := dynamicpb.NewMessage(def.Desc)
		if err := proto.Unmarshal(body, m); err != nil {
			t.Fatal(err)
		}
		return m
	}
	read := func(h Hints) func([]byte) {
		return func(body []byte) {
			if doc := d.Decode(
				body, h, nil,
			); doc.Type != payloadtest.OrderType || len(doc.Fields) == 0 || doc.JSON == "" {
				t.Fatal(doc.Problem)
			}
		}
	}
	lines := []struct {
		name string
		run  func(body []byte)
	}{
		{"dynamicpb", func(body []byte) { plain(body) }},
		{"dynamicpb and protojson", func(body []byte) {
			if _, err := protojson.Marshal(plain(body)); err != nil {
				t.Fatal(err)
			}
		}},
		{"scan", func(body []byte) {
			if err := (&descriptor.Scan{Budget: budget.NewBudget(), Types: def.Types}).Run(body, def.Desc); err != nil {
				t.Fatal(err)
			}
		}},
		{"scan and unmarshal", func(body []byte) {
			if err := (&descriptor.Scan{Budget: budget.NewBudget(), Types: def.Types}).Run(body, def.Desc); err != nil {
				t.Fatal(err)
			}
			if err := unmarshal(body, dynamicpb.NewMessage(def.Desc), def.Types); err != nil {
				t.Fatal(err)
			}
		}},
		{"Decode, type named", read(Hints{Type: payloadtest.OrderType})},
		{"Decode, type found by matching", read(Hints{ContentType: "application/protobuf"})},
	}
	took := make([][]float64, len(lines)) // the time for a message in microseconds
	for range rounds {
		for i, l := range lines {
			began := time.Now()
			for n := range times {
				l.run(bodies[n%len(bodies)])
			}
			took[i] = append(took[i], float64(time.Since(began).Microseconds())/times)
		}
	}
	middle := func(list []float64) (m, least, most float64) {
		sorted := slices.Sorted(slices.Values(list))
		return sorted[len(sorted)/2], sorted[0], sorted[len(sorted)-1]
	}
	t.Logf("messages of %d bytes, %d types, %d rounds of %d", size/len(bodies), len(r.Types()), rounds, times)
	for i, l := range lines {
		var overPlain, overJSON []float64
		for k := range rounds {
			overPlain, overJSON = append(overPlain, took[i][k]/took[0][k]), append(overJSON, took[i][k]/took[1][k])
		}
		us, least, most := middle(took[i])
		a, _, _ := middle(overPlain)
		b, _, _ := middle(overJSON)
		t.Logf(
			"%-32s %6.2f us (%.2f to %.2f), %7.0f /s; %.2f of dynamicpb, %.2f of dynamicpb and protojson", l.name, us,
			least, most, 1e6/us, a, b,
		)
	}
}
