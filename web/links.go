package web

import (
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/deadletteroffice/dlo/internal/config"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/payload"
	"github.com/deadletteroffice/dlo/web/view"
)

const (
	aroundDeath  = 5 * time.Minute // {from} is this long before the death, and {to} is this long after it
	maxLinkValue = 500             // bytes; a longer value counts as missing
)

// linksOf returns the configured links for a letter. It leaves out a link if the letter lacks a
// value that the URL of the link needs. Masked values must already be removed from the letter.
func (w *Web) linksOf(masked *deadletter.Letter) (list []view.Link) {
	for _, l := range w.Links {
		if to, ok := fillURL(l.Parts, func(name string) string { return linkValue(masked, name) }); ok {
			list = append(list, view.Link{Name: l.Name, URL: to})
		}
	}
	return list
}

// fillURL puts values into the URL of a link. It escapes each value, so that the value cannot
// change any other part of the URL. It returns false if a value is missing, or if the URL would
// lead to a parent path.
func fillURL(parts []config.LinkPart, value func(name string) string) (string, bool) {
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(p.Text)
		if p.Value == "" {
			continue
		}
		v := value(p.Value)
		if v == "" || len(v) > maxLinkValue || !utf8.ValidString(v) || strings.Contains(v, payload.Masked) {
			return "", false
		}
		b.WriteString(strings.ReplaceAll(url.QueryEscape(v), "+", "%20"))
	}
	u, err := url.Parse(b.String())
	if err != nil {
		return "", false
	}
	for _, step := range strings.Split(u.EscapedPath(), "/") {
		// browsers resolve "." and "..", even if they are escaped
		if name, err := url.PathUnescape(step); err != nil || name == "." || name == ".." {
			return "", false
		}
	}
	return b.String(), true
}

var (
	traceParent = regexp.MustCompile(`^[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}`)
	b3Single    = regexp.MustCompile(`^([0-9a-f]{32}|[0-9a-f]{16})-[0-9a-f]{16}(-|$)`)
	b3TraceID   = regexp.MustCompile(`^([0-9a-f]{32}|[0-9a-f]{16})$`)
)

// linkValue returns the value of a placeholder in a link. It returns "" if the letter has no such
// value.
func linkValue(l *deadletter.Letter, name string) string {
	if header, ok := strings.CutPrefix(name, config.LinkHeader); ok {
		return headerValue(l.Properties.Headers, header)
	}
	at := l.DiedAt
	if at.IsZero() {
		at = l.ReceivedAt
	}
	switch name {
	case "trace_id":
		return traceID(traceParent, headerValue(l.Properties.Headers, "traceparent"))
	case "b3_trace_id":
		if id := traceID(b3Single, headerValue(l.Properties.Headers, "b3")); id != "" {
			return id
		}
		return traceID(b3TraceID, headerValue(l.Properties.Headers, "x-b3-traceid"))
	case "queue":
		return l.Queue
	case "vhost":
		return l.VHost
	case "broker":
		return l.Broker
	case "group":
		return l.Group.String()
	case "message_id":
		return l.Properties.MessageID
	case "correlation_id":
		return l.Properties.CorrelationID
	case "from":
		return at.Add(-aroundDeath).UTC().Format(time.RFC3339)
	case "to":
		return at.Add(aroundDeath).UTC().Format(time.RFC3339)
	case "from_ms":
		return strconv.FormatInt(at.Add(-aroundDeath).UnixMilli(), 10)
	case "to_ms":
		return strconv.FormatInt(at.Add(aroundDeath).UnixMilli(), 10)
	}
	return ""
}

// traceID returns the trace id in a header. An id that consists of zeros counts as missing.
func traceID(pattern *regexp.Regexp, header string) string {
	m := pattern.FindStringSubmatch(strings.ToLower(strings.TrimSpace(header)))
	if m == nil || strings.Trim(m[1], "0") == "" {
		return ""
	}
	return m[1]
}

// headerValue returns the value of a header as text if it is a text, a number or a boolean. It
// prefers a header with exactly the given name. If there is none, it uses the first header whose
// name differs only in case.
func headerValue(headers deadletter.Table, name string) string {
	value, ok := headers[name]
	if !ok {
		for _, other := range slices.Sorted(maps.Keys(headers)) {
			if strings.EqualFold(other, name) {
				value = headers[other]
				break
			}
		}
	}
	switch v := value.(type) {
	case string:
		return v
	case []byte:
		return string(v)
	case bool, int8, uint8, int16, uint16, int32, uint32, int64, float32, float64:
		return fmt.Sprint(v)
	}
	return ""
}
