package payload

import "strings"

// QuotedBy reports whether an error text contains the value of the node. It returns false for words
// and numbers that are too short to be meaningful.
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

// containsWord reports whether a text contains a word with no digit before or after it.
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
