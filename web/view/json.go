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
		var left int
		if out, budget, left = addText(out, look, text[at:end], budget); left > 0 {
			return out, left + len(text) - end
		}
		at = end
	}
	return out, 0
}

// addText appends as much of a text as fits into the budget, in bytes of HTML. It also returns the
// rest of the budget, and the number of bytes that are not shown. A long text is written in chunks
// of at most 4 KiB, so that it can end where the budget ends.
func addText(all []piece, look look, text string, budget int) (out []piece, rest, left int) {
	for at := 0; at < len(text); {
		next := min(len(text), at+4096)
		for next < len(text) && text[next]&0xc0 == 0x80 {
			next++
		}
		shown := deadletter.VisibleLines(text[at:next])
		cost := len(html.EscapeString(shown))
		if look != plain {
			cost += len(`<span class="s"></span>`)
		}
		if cost > budget {
			return all, budget, len(text) - at
		}
		all, budget, at = appendPiece(all, look, shown), budget-cost, next
	}
	return all, budget, 0
}

// textPieces returns as much of a text as fits into the budget. The budget is in bytes of HTML.
// textPieces also returns the number of bytes that are not shown.
func textPieces(text string, budget int) ([]piece, int) {
	out, _, left := addText(nil, plain, text, budget)
	return out, left
}
