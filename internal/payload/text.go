package payload

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

const maxText = 64 << 10 // bytes of a text body that are shown; any page stays under 300 KB

// visible escapes characters that would be invisible or deceptive: control characters, format
// characters (bidirectional overrides, zero-width), line and paragraph separators, and bytes that
// are not UTF-8. The parameter "keep" lists characters that are not escaped.
func visible(s, keep string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r >= 0x7f }) {
		return s
	}
	var w strings.Builder
	w.Grow(len(s) + 16)
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&w, `\x%02x`, s[i])
		case isDeceptive(r) && !strings.ContainsRune(keep, r):
			w.WriteString(escaped(r))
		default:
			w.WriteString(s[i : i+n])
		}
		i += n
	}
	return w.String()
}

// isDeceptive reports whether a rune is invisible, or affects how its neighbours are shown.
func isDeceptive(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029' || r == '\u3164' ||
		r == '\u115f' || r == '\u1160' || r == '\uffa0'
}

func escaped(r rune) string {
	q := strconv.QuoteRuneToASCII(r)
	return q[1 : len(q)-1]
}

// quoted returns s in double quotes. It escapes quotes and backslashes in s.
func quoted(s string) string {
	if strings.ContainsAny(s, `"\`) {
		s = strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s)
	}
	return `"` + visible(s, "") + `"`
}

// cut returns the first bytes of s, at most n, and the number of bytes that it omits. It never cuts
// within a rune.
func cut(s string, n int) (string, int) {
	if len(s) <= n {
		return s, 0
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n], len(s) - n
}

// readText fills in the document of a body that is text.
func (r *reading) readText() {
	doc := r.doc
	doc.Kind = Text
	// The mask is applied to the whole text. If the text were cut first, the mask might miss a
	// value of which only a part is left.
	text := ""
	at := r.rootSpot().text(len(doc.Body))
	at.hidden = at.hidden || r.hideText || r.unreadableText()
	if !at.hidesNothing() {
		if err := r.budget.TakeMemory(2 * int64(len(doc.Body))); err != nil {
			doc.tooLarge(err.Error())
			return
		}
		text = string(doc.Body)
		text, doc.Masked = at.apply(text)
	} else {
		text = string(doc.Body[:min(len(doc.Body), maxText+utf8.UTFMax)])
	}
	shown, _ := cut(text, maxText)
	if left := max(len(doc.Body), len(text)) - len(shown); len(shown) < len(text) {
		doc.note(fmt.Sprintf("the first %s of the text are shown, %s are left out", deadletter.Bytes(len(shown)), deadletter.Bytes(left)))
	}
	doc.Text = visible(strings.ReplaceAll(shown, "\r\n", "\n"), "\n\t")
}
