package deadletter

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Visible escapes every part of a text that could control a terminal or change the order of a page.
// These are control characters, ANSI sequences, bidirectional marks, zero-width characters and
// invalid UTF-8. Line breaks and tabs become \n and \t. The result is safe as plain text on one
// line.
func Visible(s string) string { return visible(s, false) }

// VisibleLines escapes every part of a text that could control a terminal, or that could make a
// page show its characters in another order. It keeps line breaks and tabs. It is used for bodies
// that are shown as text.
func VisibleLines(s string) string { return visible(s, true) }

// ShellWord returns a text as one word of a command for a POSIX shell.
func ShellWord(s string) string {
	const plain = "abcdefghijklmnopqrstuvwxyz0123456789-_./"
	if s != "" && strings.Trim(strings.ToLower(s), plain) == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

func visible(s string, lines bool) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return r == utf8.RuneError || mustEscape(r) }) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case lines && (r == '\n' || r == '\t'):
			b.WriteRune(r)
		case lines && r == '\r' && strings.HasPrefix(s[i:], "\r\n"):
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < 0x80 && !unicode.IsPrint(r):
			fmt.Fprintf(&b, `\x%02x`, r)
		case r > 0xffff && mustEscape(r):
			fmt.Fprintf(&b, `\U%08x`, r)
		case mustEscape(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
		i += size
	}
	return b.String()
}

// EscapeJSON returns JSON with the same values as the given JSON. The characters that Visible would
// escape become JSON escapes, except for line breaks.
func EscapeJSON(text string) string {
	if !strings.ContainsFunc(text, func(r rune) bool { return r >= 0x7f && mustEscape(r) }) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		switch {
		case r < 0x7f || !mustEscape(r):
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// mustEscape reports whether a character must be escaped. A character must be escaped if it is not
// printable, for example because it is of the category Cf, Zl or Zp. It must also be escaped if it
// counts as printable but is invisible, for example a variation selector or a blank Hangul filler.
func mustEscape(r rune) bool {
	return !unicode.IsPrint(r) || unicode.Is(unicode.Variation_Selector, r) || r == 0x115f || r == 0x1160 ||
		r == 0x3164 || r == 0xffa0
}

// Cut shortens a text to at most n bytes, without splitting a character. If it removes something,
// it adds an ellipsis, whose bytes also count.
func Cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	const ellipsis = "…"
	end := n - len(ellipsis)
	if end < 0 {
		return ""
	}
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + ellipsis
}
