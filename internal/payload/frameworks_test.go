package payload

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

const (
	dramatiqBody = `{"queue_name":"mail","actor_name":"send","args":["Ann"],"kwargs":{},"options":{"retries":3,"traceback":"Traceback (most recent call last):\n  File \"a.py\", line 1, in send\nMailError: no box of Ann\n"},"message_id":"m-1"}`
	phpBody      = `O:36:\"Symfony\\Component\\Messenger\\Envelope\":2:{s:44:\"\0Symfony\\Component\\Messenger\\Envelope\0stamps\";a:1:{s:51:\"Symfony\\Component\\Messenger\\Stamp\\ErrorDetailsStamp\";a:1:{i:0;O:51:\"Symfony\\Component\\Messenger\\Stamp\\ErrorDetailsStamp\":2:{s:67:\"\0Symfony\\Component\\Messenger\\Stamp\\ErrorDetailsStamp\0exceptionClass\";s:11:\"App\\Missing\";s:69:\"\0Symfony\\Component\\Messenger\\Stamp\\ErrorDetailsStamp\0exceptionMessage\";s:13:\"no box of Ann\";}}}s:45:\"\0Symfony\\Component\\Messenger\\Envelope\0message\";O:10:\"App\\Letter\":1:{s:2:\"to\";s:3:\"Ann\";}}`
)

// TestMasksOfWhatFrameworksSayInBodies checks that nothing masked in a body is in the failure that
// the body reports.
func TestMasksOfWhatFrameworksSayInBodies(t *testing.T) {
	t.Parallel()
	pattern := func(text string) Masks { return Masks{Patterns: []*regexp.Regexp{regexp.MustCompile(text)}} }
	path := func(names ...string) Masks { return Masks{JSON: []deadletter.FieldPath{names}} }
	for _, c := range []struct {
		name, body, secret string
		masks              Masks
		want               deadletter.Failure
	}{
		{
			"a pattern in a traceback", dramatiqBody, "Ann", pattern("Ann"), deadletter.Failure{
				By: "Dramatiq", MessageType: "send", ID: "m-1", Queue: "mail", Attempts: 3,
				Stack: "Traceback (most recent call last):\n  File \"a.py\", line 1, in send\nMailError: no box of ••••\n",
			},
		},
		{
			"a hidden traceback", dramatiqBody, "Ann", path("options", "traceback"),
			deadletter.Failure{By: "Dramatiq", MessageType: "send", ID: "m-1", Queue: "mail", Attempts: 3},
		},
		{"a hidden actor", dramatiqBody, "send", path("actor_name"), deadletter.Failure{}},
		{"a hidden pattern", `{"pattern":"paid","data":1}`, "paid", path("pattern"), deadletter.Failure{}},
		{
			"a value in a pattern that is an object", `{"pattern":{"to":"Ann"},"data":1}`, "Ann", path("pattern", "to"),
			deadletter.Failure{},
		},
		{"a hidden type of an event", `{"specversion":"1.0","id":"1","source":"s","type":"paid"}`, "paid", path("type"), deadletter.Failure{}},
		{
			"a pattern in the message of a stamp", phpBody, "Ann", pattern("Ann"),
			deadletter.Failure{By: "Symfony Messenger", Type: `App\Missing`, MessageType: `App\Letter`},
		},
		{
			"a pattern that begins before the message", phpBody, "no box", pattern(`exceptionMessage[^}]*`),
			deadletter.Failure{By: "Symfony Messenger", Type: `App\Missing`, MessageType: `App\Letter`},
		},
		{
			"a pattern elsewhere", phpBody, "zzz", pattern(`s:2:\\"to\\";s:3:\\"Ann`),
			deadletter.Failure{By: "Symfony Messenger", Type: `App\Missing`, Message: "no box of Ann", MessageType: `App\Letter`},
		},
	} {
		doc := (&Decoder{Mask: c.masks.Body()}).Decode([]byte(c.body), Hints{}, nil)
		if doc.Failure != c.want || strings.Contains(fmt.Sprint(doc.Failure), c.secret) {
			t.Errorf("%s: %+v", c.name, doc.Failure)
		}
	}
}

// TestDamagedEnvelopesOfPHP reads envelopes that are cut or whose lengths are wrong. Whatever
// cannot be read is left out.
func TestDamagedEnvelopesOfPHP(t *testing.T) {
	t.Parallel()
	for n := range strings.Index(phpBody, `\":1:{s:2:`) {
		if f := decode([]byte(phpBody[:n]), Hints{}).Failure; f.MessageType != "" {
			t.Fatalf("%d: %+v", n, f)
		}
	}
	for _, length := range []string{"999999999999", "-1", "12", "14", "", "x"} {
		body := strings.Replace(phpBody, "s:13:", "s:"+length+":", 1)
		if f := decode([]byte(body), Hints{}).Failure; f.Message != "" || f.MessageType != `App\Letter` {
			t.Errorf("%s: %+v", length, f)
		}
	}
}

// FuzzPHPEnvelope reads hostile bytes after the beginning of an envelope.
func FuzzPHPEnvelope(f *testing.F) {
	f.Add([]byte(phpBody))
	f.Add([]byte(phpUnescaper.Replace(phpBody)))
	f.Fuzz(func(t *testing.T, rest []byte) {
		for _, body := range [][]byte{rest, append([]byte(phpEnvelope), rest...)} {
			doc := decode(body, Hints{})
			if len(doc.Failure.MessageType) > 300 || len(doc.Failure.Message) > maxAttribute {
				t.Errorf("%+v", doc.Failure)
			}
		}
	})
}
