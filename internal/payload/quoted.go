package payload

import "strings"

// QuotedBy reports whether an error text contains the value. It only considers words and numbers
// that are long enough to be meaningful.
func (n *Node) QuotedBy(errorText string) bool {
	if n.Masked || n.Default || n.Unknown {
		return false
	}
	value := strings.Trim(n.Value, `"`)
	switch n.Kind {
	case String, Enum:
		return len(value) >= 4 && strings.Contains(errorText, value)
	case Number:
		return len(value) >= 4 && containsWord(errorText, value)
	}
	return false
}

// containsWord reports whether text contains word without a digit on either side.
func containsWord(text, word string) bool {
	for at := 0; ; {
		i := strings.Index(text[at:], word)
		if i < 0 {
			return false
		}
		from, to := at+i, at+i+len(word)
		if (from == 0 || !isDigit(text[from-1])) && (to == len(text) || !isDigit(text[to])) {
			return true
		}
		at = to
	}
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
