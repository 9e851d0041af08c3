package view

import (
	"html"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// tokens splits indented JSON text into coloured pieces. The pieces take at most as many bytes of
// HTML as the parameter "budget". The second result is the number of bytes of the text that are not
// shown. tokens does not validate the text, and returns text that is not JSON unchanged.
func tokens(text string, budget int) (out []piece, omitted int) {
	add := func(look look, s string) bool {
		s = deadletter.VisibleLines(s)
		cost := len(html.EscapeString(s))
		if look != plain {
			cost += len(`<span class="s"></span>`)
		}
		if cost > budget {
			return false
		}
		budget -= cost
		out = appendPiece(out, look, s)
		return true
	}
	for at := 0; at < len(text); {
		look, end := plain, at+1
		switch c := text[at]; {
		case c == '"':
			for end < len(text) && text[end] != '"' {
				if text[end] == '\\' {
					end++
				}
				end++
			}
			end = min(end+1, len(text))
			look = strText
			if strings.HasPrefix(strings.TrimLeft(text[end:min(end+8, len(text))], " \n\t"), ":") {
				look = keyText
			}
		case c == '-' || c >= '0' && c <= '9':
			for end < len(text) && strings.IndexByte("0123456789+-.eE", text[end]) >= 0 {
				end++
			}
			look = numText
		default:
			for end < len(text) && strings.IndexByte("\"-0123456789", text[end]) < 0 {
				end++
			}
		}
		// A long piece is written in chunks of at most 4 KiB, so that it can end where the budget
		// ends.
		for at < end {
			next := min(end, at+4096)
			for next < end && text[next]&0xc0 == 0x80 {
				next++
			}
			if !add(look, text[at:next]) {
				return out, len(text) - at
			}
			at = next
		}
	}
	return out, 0
}

// textPieces returns as much of a text as fits into the budget. The budget is in bytes of HTML.
// textPieces also returns the number of bytes that are not shown.
func textPieces(text string, budget int) (out []piece, left int) {
	for at := 0; at < len(text); {
		next := min(len(text), at+4096)
		for next < len(text) && text[next]&0xc0 == 0x80 {
			next++
		}
		shown := deadletter.VisibleLines(text[at:next])
		if budget -= len(html.EscapeString(shown)); budget < 0 {
			return out, len(text) - at
		}
		out = appendPiece(out, plain, shown)
		at = next
	}
	return out, 0
}
