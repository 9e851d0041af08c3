package payload

import (
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

const (
	maxSummary      = 200 // in bytes
	maxSummaryValue = 80  // bytes of one value, so that a long first value leaves room for others
	minWireText     = 4   // bytes of a text in a body of unknown type; shorter texts occur by chance
	maxWireTexts    = 5
	maxSummaryLevel = 4
)

// Summary describes a document in one line of at most 200 bytes, for lists. Fields whose values the
// error text quotes come first. Other meaningful fields follow in the order of the tree, outer
// levels first ("url: \"https://...\", tenant: 48213"). Ids come last. Defaults, unknown fields,
// bytes, nulls and empty strings are omitted. The same document and error always give the same
// summary. It is never cut within a rune, and contains neither masked values nor deceptive
// characters. For a body of unknown type, it gives the size, and the texts or the first bytes of
// the body. It is empty if there is nothing to say.
func Summary(d *Document, errorText string) string {
	if d == nil {
		return ""
	}
	if name, guessed := d.Charset(); guessed {
		note := " (" + name + ", guessed)"
		return shorten(summarise(d, errorText), maxSummary-len(note)) + note
	}
	return summarise(d, errorText)
}

func summarise(d *Document, errorText string) string {
	switch d.Kind {
	case Empty:
		return "empty body"
	case Text:
		line := strings.Join(strings.Fields(d.Text), " ")
		return shorten(line, maxSummary)
	case Protobuf, JSON:
		s := &summary{}
		for _, turn := range []wanted{quotes, tells, identifies} {
			s.take = func(n *Node) bool { return turn == wantedAs(n, errorText) }
			for level := 1; level <= maxSummaryLevel && !s.full; level++ {
				s.level(d.Fields, "", level)
			}
		}
		if s.w.Len() > 0 {
			return shorten(s.w.String(), maxSummary)
		}
		return deadletter.Plural(len(d.Fields), "field", "fields")
	}
	if d.TooLarge {
		return shorten(d.Problem, maxSummary)
	}
	size := "binary, " + deadletter.Bytes(len(d.Body))
	if texts := wireTexts(nil, d.Fields); len(texts) > 0 {
		return shorten(size+": "+strings.Join(texts, ", "), maxSummary)
	}
	row := ""
	if rows := d.Hexdump(16).Rows; len(rows) > 0 {
		row = ": " + strings.ReplaceAll(rows[0].Hex, "  ", " ") + ellipsis(len(d.Body) > 16)
	}
	return size + row
}

// wireTexts appends the first texts of a body of unknown type.
func wireTexts(list []string, nodes []Node) []string {
	for i := range nodes {
		if n := &nodes[i]; n.Kind == Wire && len(n.text) >= minWireText && strings.HasPrefix(n.Value, `"`) {
			list = append(list, shorten(n.Value, maxSummaryValue))
		}
		if list = wireTexts(list, nodes[i].Children); len(list) >= maxWireTexts {
			return list[:maxWireTexts]
		}
	}
	return list
}

// wanted is the reason why a summary contains a value.
type wanted int

const (
	quotes     wanted = iota // the error text quotes the value
	tells                    // the value may be meaningful
	identifies               // the value is an id, which distinguishes letters but says little else
)

func wantedAs(n *Node, errorText string) wanted {
	switch {
	case n.QuotedBy(errorText):
		return quotes
	case isID(n.Key()):
		return identifies
	}
	return tells
}

// isID reports whether the name of a field says that it is an id: "id", "event_id", "eventId",
// "eventID", "uuid".
func isID(name string) bool {
	lower := strings.ToLower(name)
	for _, end := range []string{"id", "uuid", "guid"} {
		if before, ok := strings.CutSuffix(lower, end); ok {
			return before == "" || strings.HasSuffix(before, "_") || strings.HasSuffix(before, "-") ||
				name[len(before)] < 'a'
		}
	}
	return false
}

type summary struct {
	w    strings.Builder
	take func(*Node) bool // returns whether a meaningful node is part of this pass
	full bool
}

// level adds to the summary the values at one level of the tree. The nodes in the list are level 1,
// their children are level 2, and so on.
func (s *summary) level(nodes []Node, path string, level int) {
	for i := range nodes {
		n := &nodes[i]
		if s.full {
			return
		}
		name := joined(path, n.Key())
		if level > 1 {
			s.level(n.Children, name, level-1)
			continue
		}
		if !meaningful(n) || !s.take(n) {
			continue
		}
		if s.w.Len() > 0 {
			s.w.WriteString(", ")
		}
		if name != "" {
			s.w.WriteString(shorten(name, maxSummaryValue) + ": ")
		}
		value := n.Value
		if n.Kind == String && strings.HasPrefix(value, `"`) && len(value) > maxSummaryValue {
			value = shorten(strings.TrimSuffix(value, `"`), maxSummaryValue-1) + `"`
		}
		s.w.WriteString(shorten(value, maxSummaryValue+4))
		s.full = s.w.Len() >= maxSummary
	}
}

func meaningful(n *Node) bool {
	return n.isScalar() && len(n.Children) == 0 && !n.Default && !n.Unknown && n.Kind != Bytes && n.Kind != Null &&
		n.text != ""
}

// shorten cuts a text to n bytes, including an ellipsis. It never cuts within an escape.
func shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	s, _ = cut(s, n-len("…"))
	if i := strings.LastIndexByte(s, '\\'); i >= 0 && i >= len(s)-len(`\U0010fff`) {
		s = s[:i]
	}
	return s + "…"
}
