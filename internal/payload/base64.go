package payload

import (
	"fmt"
	"unicode/utf8"
)

// base64Shape reports whether all of b is of one base64 alphabet. It returns the text without white space around it, a description ("standard
// alphabet, padded"), and why it is not base64, "" when it may be. It does not allocate but for its answers.
func base64Shape(b []byte) (text []byte, detail, why string) {
	text = trimSpace(b)
	if len(text) < 8 {
		return nil, "", "too short to tell"
	}
	std, url, pad, digits, lines := false, false, 0, 0, false
	for i, c := range text {
		switch {
		case c == '\n' || c == '\r':
			lines = true
			continue
		case c == '=':
			if pad++; pad > 2 {
				return nil, "", fmt.Sprintf("too much padding at %d", i)
			}
			continue
		case pad > 0:
			return nil, "", fmt.Sprintf("padding in the middle at %d", i)
		case c == '+' || c == '/':
			std = true
		case c == '-' || c == '_':
			url = true
		case sextet(c) < 0:
			return nil, "", fmt.Sprintf("byte 0x%02x at %d is not of the alphabet", c, i)
		}
		digits++
	}
	switch {
	case std && url:
		return nil, "", "both alphabets are in it"
	case digits%4 == 1, pad > 0 && (digits+pad)%4 != 0:
		return nil, "", "its length does not fit"
	}
	detail = "standard alphabet"
	if url {
		detail = "URL alphabet"
	}
	if lines {
		detail += ", in lines"
	}
	if pad > 0 {
		detail += ", padded"
	} else if digits%4 != 0 {
		detail += ", not padded"
	}
	return text, detail, ""
}

// base64 decodes text that has the shape under the budget; nil when that is passed, and then the document says so.
func (r *reading) base64(text []byte) []byte {
	size := len(text)/4*3 + 3
	if err := r.budget.takeMemory(int64(size)); err != nil {
		r.doc.tooLarge(err.Error())
		return nil
	}
	out := make([]byte, size)
	return out[:max(decodeBase64(out, text), 0)]
}

// decodeBase64 decodes text of either alphabet into dst, which must have len(text)/4*3+3 bytes, and returns how many; -1 for a foreign
// byte. Line ends are skipped; padding ends it. Surplus bits at the end are ignored, as most decoders do.
func decodeBase64(dst, text []byte) int {
	n, bits, have := 0, uint32(0), 0
	for _, c := range text {
		if c == '\n' || c == '\r' {
			continue
		}
		if c == '=' {
			break
		}
		v := sextet(c)
		if v < 0 {
			return -1
		}
		bits = bits<<6 | uint32(v)
		if have += 6; have >= 8 {
			have -= 8
			dst[n] = byte(bits >> have)
			n++
		}
	}
	return n
}

func sextet(c byte) int {
	switch {
	case 'A' <= c && c <= 'Z':
		return int(c - 'A')
	case 'a' <= c && c <= 'z':
		return int(c-'a') + 26
	case '0' <= c && c <= '9':
		return int(c-'0') + 52
	case c == '+' || c == '-':
		return 62
	case c == '/' || c == '_':
		return 63
	}
	return -1
}

// trimSpace trims ASCII white space without copying.
func trimSpace(b []byte) []byte {
	space := func(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }
	for len(b) > 0 && space(b[0]) {
		b = b[1:]
	}
	for len(b) > 0 && space(b[len(b)-1]) {
		b = b[:len(b)-1]
	}
	return b
}

// trimPartialRune takes the first bytes of a rune off the end of a prefix of a text.
func trimPartialRune(b []byte) []byte {
	for i := 1; i < utf8.UTFMax && i <= len(b); i++ {
		if c := b[len(b)-i]; utf8.RuneStart(c) {
			if c >= utf8.RuneSelf && !utf8.FullRune(b[len(b)-i:]) {
				return b[:len(b)-i]
			}
			break
		}
	}
	return b
}
