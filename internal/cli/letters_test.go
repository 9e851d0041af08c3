package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/api"
)

// TestALetterInAGuessedCharset checks that the command line says that a charset is a guess, and why
// a character is shown as a replacement.
func TestALetterInAGuessedCharset(t *testing.T) {
	t.Parallel()
	body := func(d api.Decoded) string {
		d.JSON = json.RawMessage(`{"name": "Lärm"}`)
		text, err := textOf("body", api.Letter{Decoded: d})
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	for want, d := range map[string]api.Decoded{
		"(the body is text in windows-1252, which is a guess)": {Charset: "windows-1252", CharsetGuessed: true},
		"(the body is text in ISO-8859-1)":                     {Charset: "ISO-8859-1"},
		"(it has bytes that are not UTF-8)":                    {Problem: "it has bytes that are not UTF-8"},
	} {
		if got := body(d); !strings.HasSuffix(strings.TrimSpace(got), want) || !strings.Contains(got, "Lärm") {
			t.Errorf("%q", got)
		}
	}
}
