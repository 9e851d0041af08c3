package corpus

import (
	"encoding/base64"
	"math/rand/v2"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/deadletteroffice/dlo/internal/payload"
	"github.com/deadletteroffice/dlo/internal/payload/payloadtest"
)

// TestDrift reads random messages with one field that their type does not have, raw and in base64,
// in a queue whose letters were all of that type. Each must be read as its type, with the new field
// named. Then it reads messages of one type in the queue of another, with all types registered:
// what comes to a queue for the first time may look like a new field of what was there.
func TestDrift(t *testing.T) {
	c := load()
	d := &payload.Decoder{Types: c.registry}
	r := rand.New(rand.NewPCG(7, 8))
	field := func(md protoreflect.MessageDescriptor) (b []byte) {
		number := protowire.Number(1) // the next one, or one soon after it
		for i := range md.Fields().Len() {
			number = max(number, md.Fields().Get(i).Number())
		}
		number += protowire.Number(1 + r.IntN(3))
		switch r.IntN(4) {
		case 0:
			return protowire.AppendVarint(protowire.AppendTag(b, number, protowire.VarintType), 1)
		case 1:
			return protowire.AppendVarint(protowire.AppendTag(b, number, protowire.VarintType), uint64(r.IntN(1<<20)))
		case 2:
			return protowire.AppendString(protowire.AppendTag(b, number, protowire.BytesType), "sixty6")
		}
		return protowire.AppendString(protowire.AppendTag(b, number, protowire.BytesType), "seventeen bytes..")
	}
	var n struct{ all, right, named, wrong, base64, foreign, taken int }
	logged := 0
	for _, md := range c.all {
		own := string(md.FullName())
		body, err := proto.MarshalOptions{AllowPartial: true}.Marshal(payloadtest.Instance(md, r))
		if err != nil {
			t.Fatal(err)
		}
		added := field(md)
		if len(body) < 16 || md.Fields().Len() < 3 || float64(len(added)) > 0.3*float64(len(body)+len(added)) {
			continue
		}
		n.all++
		drifted := append(body[:len(body):len(body)], added...)
		doc := d.Decode(drifted, payload.Hints{Only: own}, nil)
		switch {
		case doc.Type == own:
			n.right++
			if len(doc.Added) == 1 && strings.Contains(strings.Join(doc.Notes, ""), "fields that are not in the registered "+own) {
				n.named++
			} else {
				t.Logf("%s is read without the new field: %v %v", own, doc.Added, doc.Notes)
			}
		case doc.Type != "":
			n.wrong++
			fallthrough
		default:
			if logged++; logged <= 12 {
				t.Logf("%s, %d bytes: %q, %+v", own, len(drifted), doc.Type, doc.Steps[len(doc.Steps)-1])
			}
		}
		if packed := d.Decode([]byte(base64.StdEncoding.EncodeToString(drifted)), payload.Hints{Only: own}, nil); packed.Type == doc.Type {
			n.base64++
		}
		other := string(c.all[r.IntN(len(c.all))].FullName())
		if other != own {
			n.foreign++
			if doc := d.Decode(body, payload.Hints{Only: other}, nil); doc.Type == other {
				n.taken++
			}
		}
	}
	percent := func(a, b int) float64 { return 100 * float64(a) / float64(max(b, 1)) }
	t.Logf("%d bodies with a new field: read as their type %.2f %%, with the field named %.2f %%, as another %.2f %%; alike in base64 %.2f %%", n.all, percent(n.right, n.all), percent(n.named, n.all), percent(n.wrong, n.all), percent(n.base64, n.all))
	t.Logf("%d bodies of another type than the queue's: taken for its type %.2f %%", n.foreign, percent(n.taken, n.foreign))
	if percent(n.right, n.all) < 95 || n.named != n.right || n.wrong > 0 || n.base64 != n.all || percent(n.taken, n.foreign) > 1 {
		t.Error("below the goals: 95 % of the bodies with a new field, none as another registered type, base64 as raw, 1 % of what is foreign")
	}
}
