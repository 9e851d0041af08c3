package classify_test

import (
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/classify"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// classifyWith classifies one batch of letters for which consumers have sent annotations. It
// returns the verdicts.
func classifyWith(
	t *testing.T, annotations map[deadletter.ID][]deadletter.Annotation, letters ...deadletter.Letter,
) []deadletter.Classified {
	t.Helper()
	store := &fake{letters: letters, annotations: annotations}
	if _, err := classify.New(store, options()).Step(t.Context()); err != nil {
		t.Fatal(err)
	}
	return store.verdicts
}

// TestTheErrorOfAnAnnotation checks that a consumer's annotation takes precedence over headers and
// is masked like them. It also checks that a death without a known reason waits for an annotation.
func TestTheErrorOfAnAnnotation(t *testing.T) {
	t.Parallel()
	header := deadletter.Table{"x-error-message": "of a header"}
	for _, c := range []struct {
		name    string
		a       deadletter.Annotation
		headers deadletter.Table
		want    string
	}{
		{"type and message", deadletter.Annotation{ErrorType: "E", Message: "went wrong"}, header, "E: went wrong"},
		{
			"the type stands in the message",
			deadletter.Annotation{ErrorType: "E", Message: "E: went wrong"},
			nil,
			"E: went wrong",
		},
		{"the message is the type", deadletter.Annotation{ErrorType: "E", Message: "E"}, nil, "E"},
		{"a message", deadletter.Annotation{Message: "went\nwrong"}, nil, `went\nwrong`},
		{"a type", deadletter.Annotation{ErrorType: "E"}, nil, "E"},
		{"a stack", deadletter.Annotation{Stack: "\n  E: went wrong\n\tat x"}, nil, "E: went wrong"},
		{"masked", deadletter.Annotation{ErrorType: "E", Message: "card 4111111111111111"}, nil, "E: card ••••"},
		{"hostile", deadletter.Annotation{Message: "\x1b[31m\x00\u202e<b>"}, nil, `\x1b[31m\x00\u202e<b>`},
		{"long", deadletter.Annotation{Message: strings.Repeat("x", 4096)}, nil, strings.Repeat("x", 497) + "…"},
		{"none fits", deadletter.Annotation{Message: "x", Queue: "other"}, header, "of a header"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := deadLetter("sms", "rejected", c.headers)
			l.Properties.MessageID, l.Arrived.MessageID = "m", "m"
			c.a.ID, c.a.MessageID = 7, "m"
			v := classifyWith(t, map[deadletter.ID][]deadletter.Annotation{l.ID: {c.a}}, l)[0]
			if v.Error != c.want || v.Unexplained.Body != nil || (v.Annotation == 7) != (c.name != "none fits") {
				t.Errorf("%q of annotation %d, want %q", v.Error, v.Annotation, c.want)
			}
		})
	}
}

func TestWhatNobodySaysWaitsForAWord(t *testing.T) {
	t.Parallel()
	silent, told, imported := deadLetter("sms", "rejected", nil), deadLetter(
		"sms", "rejected", deadletter.Table{"error": "x"},
	), deadLetter("sms", "rejected", nil)
	silent.Arrived.MessageID = "m"
	silent.Arrived.Headers["dlo-token"] = "t"
	imported.Imported = deadletter.StateDead
	list := classifyWith(t, nil, silent, told, imported)
	if k := list[0].Unexplained; k.MessageID != "m" || k.Token != "t" || len(k.Body) != 32 {
		t.Errorf("%+v", k)
	}
	if list[1].Unexplained.Body != nil || list[2].Unexplained.Body != nil {
		t.Error("a letter waits that has an error, or that died elsewhere")
	}
}

// TestAnAnnotationIsTakenOnce covers an annotation that describes one death, but fits two letters
// of a batch. Only one of these letters may get the annotation.
func TestAnAnnotationIsTakenOnce(t *testing.T) {
	t.Parallel()
	one, other := deadLetter("sms", "rejected", nil), deadLetter("sms", "rejected", nil)
	one.ID, other.ID = deadletter.NewID(1, 1), deadletter.NewID(2, 2)
	one.Arrived.MessageID, other.Arrived.MessageID = "m", "m"
	for queue, want := range map[string]int{"sms": 1, "": 2} {
		a := []deadletter.Annotation{{ID: 7, MessageID: "m", Queue: queue, Message: "x"}}
		n := 0
		for _, v := range classifyWith(t, map[deadletter.ID][]deadletter.Annotation{
			one.ID: a, other.ID: a,
		}, one, other) {
			if v.Annotation == 7 {
				n++
			}
		}
		if n != want {
			t.Errorf("queue %q: %d letters have it, want %d", queue, n, want)
		}
	}
}
