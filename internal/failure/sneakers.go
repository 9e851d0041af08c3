package failure

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// sneakers reads the header "retry_info". The Maxretry handler of Sneakers and Kicks adds it to
// messages that it publishes to <queue>-error. It is a JSON object. After repeated failures, it is
// a list whose first element is the newest. The handler keeps no other header. If there was no
// exception, the field "error" is the reason: "reject" or "timeout". The backtrace is a list of
// lines. In old versions, it is one text with commas.
func (r *reading) sneakers() (f deadletter.Failure, found bool) {
	const header = "retry_info"
	text := r.text(header)
	if text == "" {
		return f, false
	}
	var info struct {
		Error     any             `json:"error"`
		Class     any             `json:"error_class"`
		Message   any             `json:"error_message"`
		Attempts  any             `json:"num_attempts"`
		FailedAt  any             `json:"failed_at"`
		Backtrace json.RawMessage `json:"backtrace"`
	}
	var list []json.RawMessage
	raw := []byte(text)
	if headerJSON(text, &list) && len(list) > 0 {
		raw = list[0]
	}
	if !headerJSON(string(raw), &info) || info.Error == nil && info.Class == nil && info.Attempts == nil {
		return f, false
	}
	message := cmp.Or(jsonText(info.Message), jsonText(info.Error))
	r.setError(&f, part{header, jsonText(info.Class)}, part{header, message}, part{header, backtrace(info.Backtrace)})
	f.Queue, f.RoutingKey = r.inboxWithoutSuffix("-error"), validName(r.route.RoutingKey)
	f.Attempts, f.FailedAt = jsonCount(info.Attempts), timeRFC3339(jsonText(info.FailedAt))
	return f, true
}

func backtrace(raw json.RawMessage) string {
	var list []any
	if json.Unmarshal(raw, &list) == nil {
		texts := make([]string, 0, len(list))
		for _, line := range list {
			texts = append(texts, jsonText(line))
		}
		return strings.Join(texts, "\n")
	}
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return ""
	}
	if !strings.Contains(text, "\n") {
		text = strings.ReplaceAll(text, ", /", "\n/")
	}
	return text
}
