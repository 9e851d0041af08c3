package view

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"html"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// headerRow is one property or header as the table shows it.
type headerRow struct {
	Name, Value string
	Type        string // the AMQP type
	From        string
	Cut         int    // the number of bytes of the value that are not shown
	Key         string // the name as the letter has it
}

// headerRows returns one row for each property that the letter has. After these rows, it returns
// one row for each header, sorted by name.
func headerRows(p deadletter.Properties) []headerRow {
	var rows []headerRow
	property := func(name, value, kind string) {
		if value != "" {
			rows = append(rows, headerRow{Name: name, Value: value, Type: kind, From: "property"})
		}
	}
	property("content-type", p.ContentType, "shortstr")
	property("content-encoding", p.ContentEncoding, "shortstr")
	if mode := p.DeliveryMode; mode != 0 {
		property("delivery-mode", cmp.Or(deliveryModes[mode], strconv.Itoa(int(mode))), "octet")
	}
	if p.Priority != 0 {
		property("priority", strconv.Itoa(int(p.Priority)), "octet")
	}
	property("correlation-id", p.CorrelationID, "shortstr")
	property("reply-to", p.ReplyTo, "shortstr")
	property("expiration", p.Expiration, "shortstr")
	property("message-id", p.MessageID, "shortstr")
	property("timestamp", UTC(p.Timestamp), "timestamp")
	property("type", p.Type, "shortstr")
	property("user-id", p.UserID, "shortstr")
	property("app-id", p.AppID, "shortstr")

	for _, name := range slices.Sorted(maps.Keys(p.Headers)) {
		var b strings.Builder
		whole := writeField(&b, p.Headers[name], 0)
		kind := deadletter.HeaderKind(p.Headers[name])
		row := headerRow{Name: name, Value: b.String(), Type: kind, From: headerFrom(name)}
		if !whole {
			row.Cut = 1
		}
		rows = append(rows, row)
	}
	return rows
}

var deliveryModes = map[uint8]string{1: "1 (transient)", 2: "2 (persistent)"}

// fitHeaders escapes invisible characters and cuts long values. It returns as many rows as fit into
// the budget. The budget is in bytes of HTML. fitHeaders also returns the number of rows that are
// left out.
func fitHeaders(rows []headerRow, budget int) (kept []headerRow, left int) {
	for i, r := range rows {
		if len(r.Value) > maxValue {
			r.Cut = len(r.Value) - maxValue
		}
		r.Key, r.Name, r.Value = r.Name, line(r.Name, 200), line(r.Value, maxValue)
		cost := rowCost + len(html.EscapeString(r.Name)) + len(html.EscapeString(r.Value))
		if cost > budget {
			return kept, len(rows) - i
		}
		budget -= cost
		kept = append(kept, r)
	}
	return kept, 0
}

func headerFrom(name string) string {
	switch {
	case deadletter.BrokerOwned(name):
		return "header, set by the broker"
	case name == deadletter.HeaderID || name == deadletter.HeaderToken || name == deadletter.HeaderAttempt:
		return "header, set by dlo"
	}
	return "header"
}

// fieldShown is the maximum number of bytes that are written for one header value. The table on the
// page then shows only the beginning of a long value.
const fieldShown = 16 << 10

// writeField writes a header value so that people can read it. Text is written unchanged, tables in
// braces, and arrays in brackets. The result "complete" is false if it stopped after fieldShown
// bytes or omitted part of the value.
func writeField(b *strings.Builder, v any, depth int) (complete bool) {
	if b.Len() > fieldShown || depth > 64 {
		return false
	}
	complete = true
	switch v := v.(type) {
	case nil:
		b.WriteString("void")
	case string:
		if depth > 0 {
			b.WriteString(strconv.Quote(deadletter.Cut(v, maxValue)))
		} else if utf8.ValidString(v) {
			b.WriteString(v)
		} else {
			b.WriteString(deadletter.Visible(v))
		}
	case []byte:
		b.WriteString(hex.EncodeToString(v[:min(len(v), maxValue)]))
	case deadletter.Unread:
		fmt.Fprintf(b, "could not be read: %s; %d bytes, ", v.Why, len(v.Field))
		b.WriteString(hex.EncodeToString(v.Field[:min(len(v.Field), maxValue)]))
		return len(v.Field) <= maxValue
	case deadletter.Decimal:
		fmt.Fprintf(b, "%de-%d", v.Value, v.Scale)
	case deadletter.Table:
		b.WriteByte('{')
		for i, k := range slices.Sorted(maps.Keys(v)) {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(k + ": ")
			if complete = writeField(b, v[k], depth+1) && complete; !complete {
				break
			}
		}
		b.WriteByte('}')
	case []any:
		b.WriteByte('[')
		for i, e := range v {
			if i > 0 {
				b.WriteString(", ")
			}
			if complete = writeField(b, e, depth+1) && complete; !complete {
				break
			}
		}
		b.WriteByte(']')
	case time.Time:
		b.WriteString(UTC(v))
	default:
		fmt.Fprint(b, v)
	}
	return complete
}
