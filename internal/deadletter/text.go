package deadletter

import (
	"fmt"
	"unicode/utf8"
)

// IsText reports whether b is UTF-8 text that people can read. It may contain no control characters
// except tab, line ends, form feed and escape, which starts the colours in logs.
func IsText(b []byte) bool { return textEnd(b) == len(b) }

// NotText describes the first bytes of b that a text may not contain, for example a control
// character. If there are none, it returns "". It allocates memory only for its result.
func NotText(b []byte) string {
	switch end := textEnd(b); {
	case end == len(b):
		return ""
	case b[end] < utf8.RuneSelf:
		return fmt.Sprintf("byte 0x%02x at %d", b[end], end)
	default:
		return fmt.Sprintf("not UTF-8 at byte %d", end)
	}
}

// textEnd returns the number of bytes at the beginning of b that are a text.
func textEnd(b []byte) int {
	for i := 0; i < len(b); {
		c := b[i]
		if c < utf8.RuneSelf {
			if c < ' ' && c != '\t' && c != '\n' && c != '\r' && c != '\f' && c != 0x1b || c == 0x7f {
				return i
			}
			i++
			continue
		}
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return len(b)
}
