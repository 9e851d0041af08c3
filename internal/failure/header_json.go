package failure

import "encoding/json"

const (
	maxJSON  = 256 << 10 // bytes of JSON in a header. All headers of a message fit one frame, 128 KiB where nobody has changed it
	maxDepth = 64
)

// headerJSON reads JSON that is in a header; false when it is none, or deeper or larger than
// anybody would write.
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

// jsonText is a value that is text, "" otherwise.
func jsonText(v any) string {
	text, _ := v.(string)
	return text
}

// jsonCount is a value that is a count, 0 otherwise.
func jsonCount(v any) int {
	switch v := v.(type) {
	case float64:
		if v >= 0 && v < 1e6 {
			return int(v)
		}
	case string:
		return count(v)
	}
	return 0
}
