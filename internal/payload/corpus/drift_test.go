package corpus

import (
	"encoding/base64"
	"math/rand/v2"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/deadletteroffice/dlo/internal/payload"
	"github.com/deadletteroffice/dlo/internal/payload/corpus/trial"
	"github.com/deadletteroffice/dlo/internal/payload/payloadtest"
)

// TestDrift decodes random messages. Each of them has one field that its type lacks, and is decoded
// both raw and in base64. All earlier letters in the queue had that type. Each message must be
// decoded as its type, and the new field must be reported.
//
// TestDrift then decodes messages of one type in the queue of another type, with all types
// registered. It counts how often such a message is mistaken for a message of the queue's type with
// a new field.
func TestDrift(t *testing.T) {
	c := load()
	d := &payload.Decoder{Types: c.Registry}
	r := rand.New(rand.NewPCG(7, 8))
	var n struct{ all, right, named, wrong, base64, foreign, taken int }
	logged := 0
	for _, md := range c.All {
		own := string(md.FullName())
		body, err := proto.MarshalOptions{AllowPartial: true}.Marshal(payloadtest.Instance(md, r))
		if err != nil {
			t.Fatal(err)
		}
		added := trial.Field(md, r)
		if len(body) < 16 || md.Fields().Len() < 3 || float64(len(added)) > 0.3*float64(len(body)+len(added)) {
			continue
		}
		n.all++
		drifted := append(body[:len(body):len(body)], added...)
		doc := d.Decode(drifted, payload.Hints{Only: own}, nil)
		switch {
		case doc.Type == own:
			n.right++
			if len(doc.Added) == 1 && strings.Contains(
				strings.Join(doc.Notes, ""), "fields that are not in the registered "+own,
			) {
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
		if packed := d.Decode(
			[]byte(base64.StdEncoding.EncodeToString(drifted)), payload.Hints{Only: own}, nil,
		); packed.Type == doc.Type {
			n.base64++
		}
		other := string(c.All[r.IntN(len(c.All))].FullName())
		if other != own {
			n.foreign++
			if doc := d.Decode(body, payload.Hints{Only: other}, nil); doc.Type == other {
				n.taken++
			}
		}
	}
	t.Logf(
		"%d bodies with a new field: read as their type %.2f %%, with the field named %.2f %%, as another %.2f %%; alike in base64 %.2f %%",
		n.all, trial.Percent(n.right, n.all), trial.Percent(n.named, n.all), trial.Percent(n.wrong, n.all),
		trial.Percent(n.base64, n.all),
	)
	t.Logf(
		"%d bodies of another type than the queue's: taken for its type %.2f %%", n.foreign,
		trial.Percent(n.taken, n.foreign),
	)
	if trial.Percent(n.right, n.all) < 95 || n.named != n.right || n.wrong > 0 || n.base64 != n.all ||
		trial.Percent(n.taken, n.foreign) > 1 {
		t.Error(
			"below the goals: 95 % of the bodies with a new field, none as another registered type, base64 as raw, 1 % of what is foreign",
		)
	}
}
