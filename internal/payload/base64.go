package payload

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// Base64 says how data is encoded as base64.
type Base64 struct {
	URL       bool   // the text uses - and _ for 62 and 63; a text without any of +/-_ counts as the standard alphabet
	NoPadding bool   // the padding is missing although the length requires it
	Line      int    // characters in the first line, including padding; 0 = there is only one line
	Break     string // line end within the text: "\r\n", "\n" or "\r"
}

// base64Text is a text that may be base64.
type base64Text struct {
	Base64
	text          []byte // without the surrounding white space
	before, after []byte // the surrounding white space
	detail        string // for example "standard alphabet, in lines of 76, padded"
	why           string // why it is not base64; "" if it may be
}

func (t *base64Text) layer() Layer {
	return Layer{Name: "base64", Detail: t.detail, Before: t.before, After: t.after, Base64: &t.Base64}
}

const (
	shortestBase64 = 8 // in characters; shorter words often use only this alphabet
	asciiSpace     = " \t\r\n"
)

// base64Shape checks whether all of b uses one base64 alphabet. This is the standard or the URL
// alphabet (RFC 4648, 4 and 5), with or without padding, and in one or several lines (RFC 2045,
// 6.8). base64Shape allocates only its result.
func base64Shape(b []byte) base64Text {
	t := base64Text{text: bytes.Trim(b, asciiSpace)}
	if len(t.text) < shortestBase64 {
		return base64Text{why: "too short to tell"}
	}
	t.shape()
	if t.why != "" {
		return base64Text{why: t.why}
	}
	from := cap(b) - cap(t.text)
	t.before, t.after = b[:from], b[from+len(t.text):]
	return t
}

// shape finds the properties of the text.
func (t *base64Text) shape() {
	std, pad, digits, column, uneven := false, 0, 0, 0, false
	for i, c := range t.text {
		switch {
		case c == '\n' || c == '\r':
			if t.Break == "" {
				if t.Break = string(c); c == '\r' && i+1 < len(t.text) && t.text[i+1] == '\n' {
					t.Break = "\r\n"
				}
				t.Line = column
			}
			if column > 0 && column != t.Line {
				uneven = true
			}
			column = 0
			continue
		case c == '=':
			column++
			if pad++; pad > 2 {
				t.why = fmt.Sprintf("too much padding at %d", i)
				return
			}
			continue
		case pad > 0:
			t.why = fmt.Sprintf("padding in the middle at %d", i)
			return
		case c == '+' || c == '/':
			std = true
		case c == '-' || c == '_':
			t.URL = true
		case sextet(c) < 0:
			t.why = fmt.Sprintf("byte 0x%02x at %d is not of the alphabet", c, i)
			return
		}
		column++
		digits++
	}
	switch {
	case std && t.URL:
		t.why = "both alphabets are in it"
		return
	case digits%4 == 1, pad > 0 && (digits+pad)%4 != 0:
		t.why = "its length does not fit"
		return
	}
	t.detail = "standard alphabet"
	if t.URL {
		t.detail = "URL alphabet"
	}
	switch {
	case uneven || column > t.Line && t.Line > 0:
		t.detail += ", in uneven lines"
	case t.Line > 0:
		t.detail += fmt.Sprintf(", in lines of %d", t.Line)
	}
	if pad > 0 {
		t.detail += ", padded"
	} else if t.NoPadding = digits%4 != 0; t.NoPadding {
		t.detail += ", not padded"
	}
}

// base64 decodes a text that base64Shape has accepted, within the budget. If the budget is not
// enough, it returns nil and records the reason in the document.
func (r *reading) base64(text []byte) []byte {
	size := len(text)/4*3 + 3
	if err := r.budget.TakeMemory(int64(size)); err != nil {
		r.doc.tooLarge(err.Error())
		return nil
	}
	out := make([]byte, size)
	return out[:max(decodeBase64(out, text), 0)]
}

// decodeBase64 decodes text in either alphabet into dst, which must have len(text)/4*3+3 bytes. It
// returns the number of decoded bytes, or -1 if the text has a byte outside the alphabet. It skips
// line ends and stops at the padding. Like most decoders, it ignores surplus bits at the end.
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

// trimPartialRune removes an incomplete rune from the end of a text that was cut off.
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
