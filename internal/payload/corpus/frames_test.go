package corpus

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/deadletteroffice/dlo/internal/payload"
	"github.com/deadletteroffice/dlo/internal/payload/payloadtest"
)

// TestNoFrames reads 5,000 bodies without a frame: messages, damaged messages, JSON, text and small
// bytes. Nothing may be removed from any of them.
func TestNoFrames(t *testing.T) {
	c := load()
	d := &payload.Decoder{Types: c.Registry}
	r := rand.New(rand.NewPCG(21, 22))
	for i := range 5_000 {
		md := c.All[r.IntN(len(c.All))]
		body, err := proto.Marshal(payloadtest.Instance(md, r))
		if err != nil || len(body) == 0 {
			continue
		}
		switch i % 5 {
		case 1:
			body = body[:r.IntN(len(body))]
		case 2:
			body, err = json.Marshal(map[string]any{"id": i, "body": body, "note": string(words(r))})
			if err != nil {
				t.Fatal(err)
			}
		case 3:
			body = fmt.Appendf(nil, "%s %s: %d", words(r), words(r), i)
		case 4:
			for k := range body {
				body[k] = byte(r.Uint32()) & 0x1f // other binary formats often have numbers below 32
			}
		}
		for _, named := range []string{"", string(md.FullName())} {
			doc := d.Decode(body, payload.Hints{Type: named}, nil)
			if len(doc.Layers) > 0 || strings.Contains(doc.Problem, "one after another") {
				t.Errorf("as %q, %s: %+v, %s", named, doc.Problem, doc.Layers, body)
			}
			if guess, _ := doc.Charset(); guess != "" {
				t.Errorf("%s was guessed for %x", guess, body)
			}
		}
	}
}
