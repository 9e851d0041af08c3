package web

import (
	"maps"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// hide masks the properties and headers of a letter, at any depth, so that nothing after it can show them. The stored letter is not touched. It says whether anything was masked.
func (w *Web) hide(l *deadletter.Letter) bool {
	if w.Header == nil {
		return false
	}
	first, last := w.hideProperties(&l.Properties), w.hideProperties(&l.Arrived)
	return first || last
}

func (w *Web) hideProperties(p *deadletter.Properties) bool {
	masked := false
	for _, property := range []struct {
		name  string
		value *string
	}{
		{"content-type", &p.ContentType}, {"content-encoding", &p.ContentEncoding}, {"correlation-id", &p.CorrelationID}, {"reply-to", &p.ReplyTo}, {"expiration", &p.Expiration},
		{"message-id", &p.MessageID}, {"type", &p.Type}, {"user-id", &p.UserID}, {"app-id", &p.AppID},
	} {
		if text, hidden := w.Header(property.name, *property.value); hidden && *property.value != "" {
			*property.value, masked = text, true
		}
	}
	headers := maps.Clone(p.Headers)
	for name, value := range headers {
		if deadletter.BrokerOwned(name) {
			continue // names of queues and exchanges, which pages show anyway
		}
		shown, hidden := w.hideField(name, value)
		if hidden {
			headers[name], masked = shown, true
		}
	}
	p.Headers = headers
	return masked
}

func (w *Web) hideField(name string, value any) (any, bool) {
	switch v := value.(type) {
	case string:
		return w.Header(name, v)
	case []byte:
		text, hidden := w.Header(name, string(v))
		return text, hidden
	case []any:
		masked := false
		list := make([]any, len(v))
		for i, e := range v {
			shown, hidden := w.hideField(name, e)
			list[i], masked = shown, masked || hidden
		}
		return list, masked
	case deadletter.Table:
		masked := false
		table := make(deadletter.Table, len(v))
		for key, e := range v {
			shown, hidden := w.hideField(name, e)
			if !hidden {
				shown, hidden = w.hideField(key, e)
			}
			table[key], masked = shown, masked || hidden
		}
		return table, masked
	default:
		// A header that is masked by its name hides a value of any type.
		if text, hidden := w.Header(name, ""); hidden {
			return text, true
		}
		return value, false
	}
}
