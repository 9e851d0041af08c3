package classify

import "github.com/deadletteroffice/dlo/internal/deadletter"

// header returns the value of a header as the text that rules match. Tables, lists and masked
// values count as missing headers, as they do in search.
func (c *Classifier) header(headers deadletter.Table, name string) (string, bool) {
	value, ok := headers[name]
	if _, list := value.([]any); !ok || list {
		return "", false
	}
	texts := headerTexts(value)
	if len(texts) == 0 {
		return "", false
	}
	if c.o.Mask != nil {
		if _, masked := c.o.Mask(name, texts[0]); masked {
			return "", false
		}
	}
	return texts[0], true
}
