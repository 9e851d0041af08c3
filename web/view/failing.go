package view

import (
	"context"
	"io"
	"slices"
	"strings"

	"github.com/a-h/templ"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/failure"
)

const (
	messageShown = 160 // the maximum size of a message in a list in bytes, which is about two lines
	tooltipShown = 300 // the maximum size of a tooltip in bytes
)

// saying contains the parts of an error that lists show, for example the message "tenant unknown"
// and the class "TenantException". Lists show the message first, because messages differ more than
// classes. Beside it, they show the class without its package.
type saying struct {
	message string // the message, or the class if there is no message
	class   string // "" if there is no class, or if the message is the class
	typ     string // the class with its package, or ""
	whole   string // the error as received, for the tooltip
}

func sayingOf(text string) saying {
	typ, message := failure.Head(line(text, 2*tooltipShown))
	class := line(typ[strings.LastIndexAny(typ, `.\:+`)+1:], 60)
	if message == "" {
		message, class = class, ""
	}
	return saying{line(message, messageShown), class, line(typ, 200), line(text, tooltipShown)}
}

// sayingOfGroup returns the title of a group. If the group has no title, it returns the id.
func sayingOfGroup(g deadletter.GroupRow) saying {
	if g.Title == "" {
		return saying{message: g.ID.String(), whole: g.ID.String()}
	}
	return sayingOf(g.Title)
}

// groupTitle returns the name of a group for sentences and headings.
func groupTitle(g deadletter.GroupRow) string { return sayingOfGroup(g).message }

// placeWords returns the full text of the line below the title of a group, without the id of the
// group, which is never cut off.
func placeWords(g deadletter.GroupRow) string {
	parts := []string{sayingOfGroup(g).class, line(g.Queue, 255), line(g.Reason, 40), line(g.Type, 200)}
	said := slices.DeleteFunc(parts, func(p string) bool { return p == "" })
	return strings.Join(said, " · ")
}

// lookAlikes finds groups that look alike in a list. Such groups have the same error in the same
// queue, and differ only in the type or in the reason. The result maps each group, except the first
// one, to the first group with the same error and queue.
func lookAlikes(rows []deadletter.GroupRow) map[deadletter.GroupID]deadletter.GroupID {
	type look struct{ broker, vhost, queue, failure string }
	first, same := map[look]deadletter.GroupID{}, map[deadletter.GroupID]deadletter.GroupID{}
	for _, g := range rows {
		if g.Error == "" {
			continue
		}
		l := look{g.Broker, g.VHost, g.Queue, failure.Fold(g.Error)}
		if id, ok := first[l]; ok {
			same[g.ID] = id
		} else {
			first[l] = g.ID
		}
	}
	return same
}

// breakableName returns a component that writes a name. A line can break only after the separators
// of the name, if it has any. The component is not written in templ, because templ puts white space
// between nodes.
func breakableName(name string) templ.Component {
	return templ.ComponentFunc(func(_ context.Context, w io.Writer) error {
		var b strings.Builder
		for name != "" {
			end := strings.IndexAny(name, "./-_:") + 1
			if end == 0 || end == len(name) {
				end = len(name)
			}
			b.WriteString(templ.EscapeString(name[:end]))
			if name = name[end:]; name != "" {
				b.WriteString("<wbr>")
			}
		}
		_, err := io.WriteString(w, b.String())
		return err
	})
}
