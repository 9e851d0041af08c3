package corpus

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/payload"
	"github.com/deadletteroffice/dlo/internal/payload/payloadtest"
)

// BenchmarkMatch ranks a body of 300 to 400 bytes against all types (goal: 100 us for 2,000 types).
// For comparison, it also decodes the body as each type.
func BenchmarkMatch(b *testing.B) {
	c := load()
	d := &payload.Decoder{Types: c.Registry}
	r := rand.New(rand.NewPCG(5, 6))
	var bodies [][]byte
	for len(bodies) < 50 {
		body, err := proto.Marshal(payloadtest.Instance(c.All[r.IntN(len(c.All))], r))
		if err == nil && 300 <= len(body) && len(body) <= 400 {
			bodies = append(bodies, body)
		}
	}
	b.Run(fmt.Sprintf("fast/%d", len(c.All)), func(b *testing.B) {
		d.Match(bodies[0], payload.Hints{}, nil)
		b.ReportAllocs()
		i := 0
		for b.Loop() {
			d.Match(bodies[i%len(bodies)], payload.Hints{}, nil)
			i++
		}
	})
	b.Run(fmt.Sprintf("decode all/%d", len(c.All)), func(b *testing.B) {
		i := 0
		for b.Loop() {
			for _, md := range c.All {
				_ = proto.Unmarshal(bodies[i%len(bodies)], dynamicpb.NewMessage(md))
			}
			i++
		}
	})
}

// BenchmarkRead decodes bodies of letters that name no type, once without a mask and once with a
// rule for a field. With the rule, all other types that may fit the body are checked for hidden
// fields.
func BenchmarkRead(b *testing.B) {
	c := load()
	r := rand.New(rand.NewPCG(5, 6))
	var bodies [][]byte
	for len(bodies) < 200 {
		body, err := proto.Marshal(payloadtest.Instance(c.All[r.IntN(len(c.All))], r))
		if err == nil && 16 <= len(body) && len(body) <= 400 {
			bodies = append(bodies, body)
		}
	}
	for name, mask := range map[string]*payload.Mask{
		"no mask":        nil,
		"a masked field": {Fields: []deadletter.MaskedField{{Path: deadletter.FieldPath{"email"}}}},
	} {
		b.Run(name, func(b *testing.B) {
			d := &payload.Decoder{Types: c.Registry, Mask: mask}
			d.Decode(bodies[0], payload.Hints{}, nil)
			i := 0
			for b.Loop() {
				d.Decode(bodies[i%len(bodies)], payload.Hints{}, nil)
				i++
			}
		})
	}
}
