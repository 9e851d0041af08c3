package corpus

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/deadletteroffice/dlo/internal/payload"
)

// words returns a random text that looks like a name in a program. All of its characters are in the
// base64 alphabet.
func words(r *rand.Rand) (b []byte) {
	list := []string{
		"order", "placed", "Handler", "Factory", "queue", "Retry", "customer", "Event", "user", "Created", "V2", "01",
		"/", "service", "Email", "requested", "2026",
	}
	for range 4 + r.IntN(4) {
		b = append(b, list[r.IntN(len(list))]...)
	}
	return b[:len(b)/4*4]
}

// TestNoise decodes bodies that are not protobuf. None may be decoded as a message, although many
// types are registered.
func TestNoise(t *testing.T) {
	c := load()
	d := &payload.Decoder{Types: c.Registry}
	n := 3_000
	if soak {
		n = 200_000
	}
	r := rand.New(rand.NewPCG(3, 4))
	bytes := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		return b
	}
	small := func(n int) []byte { // numbers below 32, which other binary formats often contain
		b := bytes(n)
		for i := range b {
			b[i] &= 0x1f
		}
		return b
	}
	kinds := map[string]func() []byte{
		"random bytes":     func() []byte { return bytes(1 + r.IntN(64)) },
		"small bytes":      func() []byte { return small(1 + r.IntN(64)) },
		"base64 of random": func() []byte { return []byte(base64.StdEncoding.EncodeToString(bytes(6 + r.IntN(40)))) },
		"hex digests":      func() []byte { return []byte(hex.EncodeToString(bytes(8 + r.IntN(3)*8))) },
		"words":            func() []byte { return words(r) },
		"text": func() []byte { // begins with a line end, which is also the tag of field 1
			b := []byte("\n")
			for range 1 + r.IntN(4) {
				b = append(append(b, words(r)...), ' ')
			}
			return b
		},
		"numbers": func() []byte { return fmt.Appendf(nil, "%016d", r.Int64N(1e16)) },
		"JSON":    func() []byte { return fmt.Appendf(nil, `{"id": %d, "name": "%x"}`, r.Int64(), bytes(5)) },
		"MessagePack": func() []byte {
			return append([]byte{0x83, 0xa2, 'i', 'd', 0xce}, append(bytes(4), 0xa1, 'n', 0xc0, 0xa1, 'm', 0x01)...)
		},
	}
	for name, make := range kinds {
		found, peeled, unread := 0, 0, 0
		for range n {
			body := make()
			doc := d.Decode(body, payload.Hints{}, nil)
			if len(doc.Layers) > 0 {
				if peeled++; peeled <= 3 {
					t.Logf("%s: base64 was taken off %s", name, body)
				}
			}
			if name == "text" && doc.Kind != payload.Text {
				unread++
			}
			if doc.Kind == payload.Protobuf {
				if found++; found <= 3 {
					t.Logf("%s: %x was taken for %s, %v", name, body, doc.Type, doc.Steps)
				}
			}
		}
		limit := 0
		if name == "small bytes" {
			limit = n / 1000
		}
		if peeled > n/1000 {
			t.Errorf("%s: base64 was taken off %d of %d", name, peeled, n)
		}
		if unread > n/50 {
			t.Errorf("%s: %d of %d were taken for something else", name, unread, n)
		}
		if found > limit {
			t.Errorf("%s: %d of %d were taken for messages", name, found, n)
		}
	}
}
