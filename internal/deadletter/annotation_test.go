package deadletter_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/google/go-cmp/cmp"
)

const bodyHash = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"

func TestReadAnnotation(t *testing.T) {
	t.Parallel()
	a, err := deadletter.ReadAnnotation([]byte(`{"message_id": "m", "dlo_token": "t", "body_sha256": "` +
		strings.ToUpper(
			bodyHash,
		) + `", "queue": "q", "exchange": "e", "routing_key": "k", "error_type": "E", "message": "what",
		"stack": "at x\n\tat y", "service": "s", "version": "1", "at": "2026-11-20T09:00:00+01:00", "broker": "main", "vhost": "/", "more": {"a": [1, 2]}, "Message": "another member"}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprintf("%x", a.Body); got != bodyHash {
		t.Error(got)
	}
	a.Body = nil
	want := deadletter.Annotation{
		MessageID: "m", Token: "t", Queue: "q", Exchange: "e", RoutingKey: "k", ErrorType: "E", Message: "what",
		Stack: "at x\n\tat y", Service: "s", Version: "1",
		At: time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC), Broker: "main", VHost: "/",
	}
	if diff := cmp.Diff(want, a); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAnnotationsThatAreRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, want string }{
		{"nothing", ``, "annotation: give a JSON object"},
		{"no JSON", `secret`, "annotation: give a JSON object"},
		{"null", `null`, "annotation: give a JSON object"},
		{"a list", `[{"message_id": "m", "message": "x"}]`, "annotation: give a JSON object"},
		{
			"two of them", `{"message_id": "m", "message": "x"}{}`,
			"annotation: there is something after the JSON object",
		},
		{
			"no key", `{"queue": "q", "message": "secret"}`,
			"message_id: nothing says which message it is about: give message_id, dlo_token or body_sha256",
		},
		{
			"an empty key", `{"message_id": "", "dlo_token": null, "message": "secret"}`,
			"message_id: nothing says which message it is about: give message_id, dlo_token or body_sha256",
		},
		{
			"no error", `{"message_id": "secret"}`,
			"message: nothing says what went wrong: give message, error_type or stack",
		},
		{
			"a blank error", `{"message_id": "secret", "message": " \n"}`,
			"message: nothing says what went wrong: give message, error_type or stack",
		},
		{
			"neither", `{}`,
			"message_id: nothing says which message it is about: give message_id, dlo_token or body_sha256; message: nothing says what went wrong: give message, error_type or stack",
		},
		{
			"wrong types", `{"message_id": 7, "message": {"secret": 1}, "stack": ["secret"], "at": 1}`,
			"message_id: a text is wanted; message: a text is wanted; stack: a text is wanted; at: a text is wanted",
		},
		{
			"no hash", `{"body_sha256": "secret", "message": "x"}`,
			"body_sha256: give the SHA-256 of the body, 64 hexadecimal digits",
		},
		{
			"a long hash", `{"body_sha256": "` + bodyHash + `00", "message": "x"}`,
			"body_sha256: it has at most 64 bytes",
		},
		{
			"no time", `{"message_id": "m", "message": "x", "at": "secret"}`,
			"at: give a time in RFC 3339, for example 2026-11-20T14:00:00Z",
		},
		{
			"before there were messages", `{"message_id": "m", "message": "x", "at": "0001-01-01T00:00:00Z"}`,
			"at: give a time in RFC 3339, for example 2026-11-20T14:00:00Z",
		},
		{
			"a long name", `{"message_id": "` + strings.Repeat("x", 256) + `", "message": "x"}`,
			"message_id: it has at most 255 bytes",
		},
		{
			"deep", `{"message_id": "m", "x": ` + strings.Repeat("[", 30_000) + strings.Repeat("]", 30_000) + `}`,
			"annotation: give a JSON object",
		},
		{
			"large", `{"message_id": "m", "message": "` + strings.Repeat("x", 64<<10) + `"}`,
			"annotation: an annotation has at most 65536 bytes",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := deadletter.ReadAnnotation([]byte(c.text))
			if !errors.Is(err, deadletter.ErrInvalid) || err.Error() != c.want {
				t.Errorf("%v\nwant %s", err, c.want)
			}
		})
	}
}

// TestLongAnnotationsAreCut checks that a text which is longer than its limit is cut and ends with
// an ellipsis.
func TestLongAnnotationsAreCut(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ä", 10_000)
	a, err := deadletter.ReadAnnotation([]byte(`{"message_id": "m", "message": "` + long + `", "stack": "` + long + `", "service": "` + long[:2000] + `"}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		text string
		most int
	}{{a.Message, 4 << 10}, {a.Stack, 16 << 10}, {a.Service, 200}} {
		if len(c.text) > c.most || len(c.text) < c.most-4 || !strings.HasSuffix(c.text, "…") ||
			!utf8.ValidString(c.text) {
			t.Errorf("%d bytes are kept of %d", len(c.text), c.most)
		}
	}
}

func FuzzReadAnnotation(f *testing.F) {
	f.Add([]byte(`{"message_id": "m", "message": "x"}`))
	f.Add([]byte(`{"body_sha256": "` + bodyHash + `", "stack": "\u0000\ud800", "at": "2026-11-20T08:00:00Z"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		a, err := deadletter.ReadAnnotation(text)
		switch {
		case err != nil && !errors.Is(err, deadletter.ErrInvalid):
			t.Error(err)
		case err == nil && (a.Token+a.MessageID == "" && a.Body == nil || a.ErrorType+a.Message+a.Stack == ""):
			t.Errorf("%+v", a)
		}
	})
}

func TestReporter(t *testing.T) {
	t.Parallel()
	for want, f := range map[string]deadletter.Failure{
		"":    {},
		"s":   {Service: "s"},
		"1":   {Version: "1"},
		"s 1": {Service: "s", Version: "1"},
	} {
		if got := f.Reporter(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
