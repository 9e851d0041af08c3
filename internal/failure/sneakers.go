package failure

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// sneakers reads the header "retry_info", a JSON object. The Maxretry handler of Sneakers and Kicks
// adds this header to messages that it publishes to <queue>-error, and keeps no other header. After
// repeated failures, the header is a list of such objects, and the newest object is the first. If
// there was no exception, the member "error" is the reason: "reject" or "timeout". The backtrace is
// a list of lines. In old versions, it is one text with commas.
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
	at := func(text string, names ...string) part { return part{header, text, names} }
	r.setError(
		&f, at(jsonText(info.Class), "error_class"),
		at(cmp.Or(jsonText(info.Message), jsonText(info.Error)), "error_message", "error"),
		at(backtrace(info.Backtrace), "backtrace"),
	)
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
