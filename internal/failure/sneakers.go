package failure

import (
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
	info := r.header(header)
	if list := listOf(info.text()); len(list) > 0 {
		info.value = list[0]
	}
	class, message, attempts := info.at("error_class"), info.at("error_message", "error"), info.member("num_attempts")
	if class.value == nil && message.value == nil && attempts.value == nil {
		return f, false
	}
	message.names = []string{header, "error_message", "error"} // both contain the message
	stack := info.member("backtrace")
	stack.value = backtrace(stack.value)
	r.setError(&f, class, message, stack)
	f.Queue, f.RoutingKey = r.inboxWithoutSuffix("-error"), validName(r.route.RoutingKey)
	f.Attempts, f.FailedAt = countOf(attempts.value), timeRFC3339(info.at("failed_at").text())
	return f, true
}

func backtrace(value any) string {
	if list, ok := value.([]any); ok {
		texts := make([]string, 0, len(list))
		for _, line := range list {
			texts = append(texts, textOf(line))
		}
		return strings.Join(texts, "\n")
	}
	text := textOf(value)
	if !strings.Contains(text, "\n") {
		text = strings.ReplaceAll(text, ", /", "\n/")
	}
	return text
}
