package payload

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const maxText = 64 << 10 // of a text body that is shown; a page with any body stays under 300 KB

// isText reports whether b is UTF-8 that people wrote or read: no control characters but tab, line ends, form feed and escape (colours of logs).
func isText(b []byte) bool { return whyNotText(b) == "" }

// whyNotText names the first thing that text has not, "" when b is text. It allocates only for its answer.
func whyNotText(b []byte) string {
	for i := 0; i < len(b); {
		c := b[i]
		if c < utf8.RuneSelf {
			if c < ' ' && c != '\t' && c != '\n' && c != '\r' && c != '\f' && c != 0x1b || c == 0x7f {
				return fmt.Sprintf("byte 0x%02x at %d", c, i)
			}
			i++
			continue
		}
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 {
			return fmt.Sprintf("not UTF-8 at byte %d", i)
		}
		i += n
	}
	return ""
}

// visible writes what would not be seen, or would deceive, as an escape: control characters, format characters (bidirectional overrides,
// zero-width), line and paragraph separators, and bytes that are not UTF-8. Keep lists characters that stay.
func visible(s, keep string) string {
	clean := true
	for i := 0; i < len(s); i++ {
		if s[i] < ' ' || s[i] >= 0x7f {
			clean = false
			break
		}
	}
	if clean {
		return s
	}
	var w strings.Builder
	w.Grow(len(s) + 16)
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&w, `\x%02x`, s[i])
		case deceives(r) && !strings.ContainsRune(keep, r):
			w.WriteString(escaped(r))
		default:
			w.WriteString(s[i : i+n])
		}
		i += n
	}
	return w.String()
}

// deceives reports whether a rune is invisible or changes how its neighbours are shown.
func deceives(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029' || r == '\u3164' || r == '\u115f' || r == '\u1160' || r == '\uffa0'
}

func escaped(r rune) string {
	q := strconv.QuoteRuneToASCII(r)
	return q[1 : len(q)-1]
}

// quoted is s in double quotes, with its own quotes and backslashes escaped.
func quoted(s string) string {
	if strings.ContainsAny(s, `"\`) {
		s = strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s)
	}
	return `"` + visible(s, "") + `"`
}

// cut returns at most n bytes of s, ending between two runes, and how many bytes are left out.
func cut(s string, n int) (string, int) {
	if len(s) <= n {
		return s, 0
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n], len(s) - n
}

// count writes a number with commas: 12,480.
func count[T int | int64](v T) string {
	s := strconv.FormatInt(int64(v), 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// plural: "1 item", "2 items".
func plural[T int | int64](v T, one, many string) string {
	if v == 1 {
		return "1 " + one
	}
	return count(v) + " " + many
}

// bytesText: "157 B", "4.0 KiB", "16 MiB".
func bytesText(n int) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d B", n)
	case n < 1<<20:
		return trimZero(float64(n)/(1<<10)) + " KiB"
	}
	return trimZero(float64(n)/(1<<20)) + " MiB"
}

func trimZero(f float64) string { return strings.TrimSuffix(strconv.FormatFloat(f, 'f', 1, 64), ".0") }

// readText fills a document whose body is text.
func (r *reading) readText() {
	doc := r.doc
	doc.Kind = Text
	// A mask must see the whole text, or it would miss a value that the cut divides.
	text := ""
	at := r.rootSpot()
	at.hidden = at.hidden || r.unreadableText()
	if !at.idle() {
		if err := r.budget.takeMemory(2 * int64(len(doc.Body))); err != nil {
			doc.tooLarge(err.Error())
			return
		}
		text = string(doc.Body)
		if text, doc.Masked = at.apply(text); doc.Masked {
			doc.hideAll = true
		}
	} else {
		text = string(doc.Body[:min(len(doc.Body), maxText+utf8.UTFMax)])
	}
	shown, _ := cut(text, maxText)
	if left := max(len(doc.Body), len(text)) - len(shown); len(shown) < len(text) {
		doc.note(fmt.Sprintf("the first %s of the text are shown, %s are left out", bytesText(len(shown)), bytesText(left)))
	}
	doc.Text = visible(strings.ReplaceAll(shown, "\r\n", "\n"), "\n\t")
}
