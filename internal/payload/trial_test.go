package payload

import (
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/descriptor"
)

// TestATrialIsDecoded checks that the body of a trial is decoded with dlo's own type, without any
// schema. This must happen only if the letter names the type, so that no other body is mistaken for
// a trial.
func TestATrialIsDecoded(t *testing.T) {
	t.Parallel()
	body, err := Trial("Hello", "main", "ann", time.Date(2026, 11, 20, 9, 0, 0, 5e6, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	for name, d := range map[string]*Decoder{"no registry": {}, "an empty one": {Types: descriptor.NewRegistry()}} {
		doc := d.Decode(body, Hints{ContentType: TrialContent}, nil)
		if doc.Type != deadletter.TrialType || doc.Reading() != deadletter.ReadByContentType || doc.Problem != "" {
			t.Errorf("%s: %+v", name, doc)
		}
		if got := Summary(doc, ""); !strings.Contains(got, `text: "Hello"`) ||
			!strings.Contains(got, `broker: "main"`) {
			t.Errorf("%s: %s", name, got)
		}
		if doc := d.Decode(body, Hints{}, nil); doc.Type != "" {
			t.Errorf("%s: a body that names no type is taken for %s", name, doc.Type)
		}
		if list := d.Types.Types(); len(list) > 0 {
			t.Errorf("%s: it is listed: %v", name, list)
		}
	}
	source, err := descriptor.NewRegistry().Source(deadletter.TrialType)
	if err != nil || !strings.Contains(source.Text, "string text = 1;") || source.Definitions[0].Set != "dlo" {
		t.Errorf("%+v, %v", source, err)
	}
}
