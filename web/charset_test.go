package web_test

import (
	"strings"
	"testing"
)

// TestATextInAGuessedCharset covers JSON that is not UTF-8, for which the letter declares no
// charset. The page and the API must say that the charset is a guess, and an edit must stay in it.
func TestATextInAGuessedCharset(t *testing.T) {
	t.Parallel()
	h := open(t, withTypes)
	id := string(h.receive("shop", 1, "{\"name\": \"L\xe4rm\"}")[0])
	for _, tab := range []string{"decoded", "json"} {
		h.get("/letters/"+id+"?tab="+tab).want(t, 200, "Lärm", "windows-1252, which is a guess")
	}
	h.get("/letters/"+id+"/edit").want(t, 200, "Lärm", "windows-1252 (guessed), as received")
	got := h.get("/api/v1/letters/"+id).want(t, 200, `"charset":"windows-1252"`, `"charset_guessed":true`, "Lärm").text
	if strings.Contains(got, "\ufffd") || strings.Contains(got, `\ufffd`) {
		t.Error("a character is lost")
	}
	edit := func(name string) answer {
		return h.postJSON("/api/v1/letters/"+id+"/revisions",
			`{"reason":"r","patch":[{"op":"replace","path":"/name","value":"`+name+`"}]}`)
	}
	edit("Łódź").want(t, 400, "windows-1252 has no character Ł (U+0141)")
	edit("Grün").want(t, 201)
	h.get("/api/v1/letters/"+id).want(t, 200, "Grün", `"charset":"windows-1252"`)
}
