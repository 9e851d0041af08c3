package failure

import "encoding/json"

const (
	// maximum number of bytes of JSON in a header; all headers of a message fit into one frame, by
	// default 128 KiB
	maxJSON  = 256 << 10
	maxDepth = 64
)

// headerJSON decodes the JSON in a header. It returns false if the text is not JSON, or if the JSON
// is deeper or larger than any framework would write it.
func headerJSON(text string, into any) bool {
	if text == "" || len(text) > maxJSON {
		return false
	}
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return false
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return json.Unmarshal([]byte(text), into) == nil
}

// listOf returns the list in a text of JSON, or nil.
func listOf(text string) (list []any) {
	if !headerJSON(text, &list) {
		return nil
	}
	return list
}
