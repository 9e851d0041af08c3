package payload

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// TestAFrameKeepsItsLength reads bodies with a prefix like Confluent's, which may hold the length
// of what follows it. They are read, but an edit would leave the old length in place, so it must be
// refused with the reason. Damaged sections of AMQP 1.0 are not Confluent's.
func TestAFrameKeepsItsLength(t *testing.T) {
	t.Parallel()
	text := `{"id": 7, "tenant": "acme"}`
	framed := func(head, text string) []byte { return []byte(head + text) }
	for name, c := range map[string]struct {
		body   []byte
		layers string
		why    string
	}{
		"damaged amqp-sequence": {framed("\x00\x53\x76\xc0\x1b", text), "", "no type is known"},
		"Confluent":             {confluent(7, nil, []byte(text)), "Confluent (schema 7)", ""},
		"Confluent, or a length": {
			confluent(5<<8|uint32(len(text)), nil, []byte(text)), fmt.Sprintf("Confluent (schema %d)", 5<<8|len(text)),
			fmt.Sprintf("its length of %d", len(text)),
		},
		"id near the length, as a text":   {confluent(70_028, nil, []byte(text)), "Confluent (schema 70028)", ""},
		"id that is not near":             {confluent(300, nil, []byte(text)), "Confluent (schema 300)", ""},
		"large id":                        {confluent(100_234, nil, []byte(text)), "Confluent (schema 100234)", ""},
		"length of three bytes and flags": {framed("\x00\x00\x1b\x01\x02", text), "Confluent (schema 1769730)", "of 27"},
		"length and a version":            {framed("\x00\x00\x00\x1b\x01", text), "Confluent (schema 6913)", "of 27"},
		"length with the version":         {framed("\x00\x00\x00\x1c\x01", text), "Confluent (schema 7169)", "of 27"},
		"length with the head":            {framed("\x00\x00\x00\x00\x20", text), "Confluent (schema 32)", "of 27"},
		"length with itself":              {framed("\x00\x00\x00\x00\x1f", text), "Confluent (schema 31)", "of 27"},
		"length without the line break":   {framed("\x00\x00\x00\x00\x1b", text+"\n"), "Confluent (schema 27)", "of 28"},
		"length without a checksum":       {framed("\x00\x00\x00\x00\x13", text), "Confluent (schema 19)", "of 27"},
		"short length and flags":          {framed("\x00\x00\x1b\x00\x01", text), "Confluent (schema 1769473)", "of 27"},
		"length of a byte and flags":      {framed("\x00\x1b\x05\x06\x07", text), "Confluent (schema 453314055)", "of 27"},
		"length as a varint": {
			framed("\x00\x01\xd8\x04\x02", strings.Replace(text, "acme", strings.Repeat("a", 577), 1)),
			"Confluent (schema 30934018)", "of 600",
		},
		"length in the other order": {
			confluent(uint32(len(text))<<24, nil, []byte(text)), fmt.Sprintf("Confluent (schema %d)", len(text)<<24),
			fmt.Sprintf("its length of %d", len(text)),
		},
	} {
		if got := layers(decode(c.body, Hints{})); got != c.layers {
			t.Errorf("%s: layers %q, want %q", name, got, c.layers)
		}
		_, patch := editor().Patch(
			c.body, Hints{}, []byte(`[{"op":"replace","path":"/tenant","value":"acme and sons"}]`), nil,
		)
		_, editable := editor().Editable(c.body, Hints{}, nil)
		for _, err := range []error{patch, editable} {
			var refused *EditError
			if c.why == "" && err != nil ||
				c.why != "" && (!errors.As(err, &refused) || !strings.Contains(err.Error(), c.why) ||
					!strings.Contains(err.Error(), "replace it as a whole")) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// TestHeadersThatDescribeTheBody checks that an edit names the headers that no longer fit: a length
// that is that of the stored body, and checksums.
func TestHeadersThatDescribeTheBody(t *testing.T) {
	t.Parallel()
	h := Hints{Headers: deadletter.Table{
		"content-length": int64(12), "X-Body-Size": "12", "page-size": int64(100), "Content-MD5": "abc", "smd5": "x",
		"x-signature": "abc", "designature": "x", "x-tenant": "12",
	}}
	const want = "Headers that describe the stored body, and may need a change too: " +
		"`Content-MD5`, `X-Body-Size`, `content-length`, `x-signature`"
	body := []byte(`{"n": 12345}`)
	warned := func(e *Edited, err error) (n int) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range e.Checks {
			if !c.OK && c.Text == want {
				n++
			}
		}
		return n
	}
	patch := []byte(`[{"op":"replace","path":"/n","value":"a new text"}]`)
	for name, n := range map[string]int{
		"edit":    warned(editor().Edit(body, h, `{"n": "a new text"}`, nil)),
		"patch":   warned(editor().Patch(body, h, patch, nil)),
		"replace": warned(editor().Replace(body, h, []byte("x"), nil)),
		"text":    warned(editor().Edit([]byte("twelve bytes"), h, "more than twelve", nil)),
	} {
		if n != 1 {
			t.Errorf("%s: %d warnings", name, n)
		}
	}
	if n := warned(editor().Edit(body, h, string(body), nil)); n != 0 {
		t.Error("a warning although nothing changes")
	}
}
