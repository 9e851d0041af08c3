package corpus

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/deadletteroffice/dlo/internal/payload"
)

// TestNoise decodes bodies that are no protobuf: none may become a message, with all these types to
// choose from.
func TestNoise(t *testing.T) {
	c := load()
	d := &payload.Decoder{Types: c.registry}
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
	small := func(n int) []byte { // numbers below 32, as binary formats of other kinds have
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
		"numbers":          func() []byte { return fmt.Appendf(nil, "%016d", r.Int64N(1e16)) },
		"JSON":             func() []byte { return fmt.Appendf(nil, `{"id": %d, "name": "%x"}`, r.Int64(), bytes(5)) },
		"MessagePack": func() []byte {
			return append([]byte{0x83, 0xa2, 'i', 'd', 0xce}, append(bytes(4), 0xa1, 'n', 0xc0, 0xa1, 'm', 0x01)...)
		},
	}
	for name, make := range kinds {
		found := 0
		for range n {
			body := make()
			if doc := d.Decode(body, payload.Hints{}, nil); doc.Kind == payload.Protobuf {
				if found++; found <= 3 {
					t.Logf("%s: %x was taken for %s, %v", name, body, doc.Type, doc.Steps)
				}
			}
		}
		limit := 0
		if name == "small bytes" {
			limit = n / 1000
		}
		if found > limit {
			t.Errorf("%s: %d of %d were taken for messages", name, found, n)
		}
	}
}
