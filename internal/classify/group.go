package classify

import (
	"slices"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/failure"
	"github.com/deadletteroffice/dlo/internal/payload"
)

// GroupVersion is stored with each group. Increase it when grouping improves. Letters in groups
// with a lower version are then grouped again in the background. Version 1 used only the error
// text. Version 2 did not treat types named by frameworks as letter types; its keys are the same as
// those of version 3. Version 3 did not distinguish the inboxes of letters of unknown origin.
const GroupVersion = 4

const ownFrames = 3 // number of stack frames that distinguish causes; frames further out are shared by all letters of a queue

// cause distinguishes the groups within an origin, in addition to reason and type.
type cause struct {
	schema  string // type of the letter according to a schema; "" = no schema can decode the letter
	group   string // group set by the rule; if set, nothing else counts
	failure deadletter.Failure
	form    []string // for a letter without an error: how the letter was published, and the shape of its body
}

// causeOf returns the cause of a letter whose origin, reason and type are known. If the publisher
// names the message's type, the body is not examined.
func causeOf(v *deadletter.Classified, f *deadletter.Failure, doc *payload.Document, group string) cause {
	c := cause{schema: doc.Type, group: group, failure: *f}
	if group == "" && !f.Said() {
		c.form = []string{failure.Fold(v.Origin.RoutingKey), f.MessageType}
		if doc.Type == "" && f.MessageType == "" {
			c.form = append(c.form, doc.Outline())
		}
	}
	return c
}

// parts returns the texts that are the same for all letters with this cause.
func (c *cause) parts() []string {
	if !c.failure.Said() {
		return append([]string{"form"}, c.form...)
	}
	parts := []string{"error", failure.Fold(c.failure.Type), failure.Fold(c.failure.Message)}
	frames := failure.Frames(c.failure.Stack)
	return append(parts, frames[:min(len(frames), ownFrames)]...)
}

// grouped fills in the verdict's group. Letters with one cause belong together: they have the same
// origin queue, broker, vhost, reason, type and normalised error. If the rule sets a group, only
// the origin and that group count. If the queue is unknown, the inbox stands for it, because people
// who may see one inbox need not be allowed to see another. A group keeps its key when its broker
// is renamed.
func (c *Classifier) grouped(l *deadletter.Letter, v deadletter.Classified, of cause) deadletter.Classified {
	place := []string{c.o.FirstName(v.Origin.Broker), v.Origin.VHost, v.Origin.Queue}
	if v.Origin.Queue == "" {
		place = append(place, "inbox", l.Inbox)
	}
	parts := append(place, "rule", of.group)
	if of.group == "" {
		parts = slices.Concat(place, []string{v.Reason, of.schema}, of.parts())
	}
	v.GroupKey, v.GroupTitle, v.Version = deadletter.Hash(parts...), title(v, of.schema), of.failure.Version
	if of.group != "" {
		v.GroupTitle = of.group + ": " + v.GroupTitle
	}
	if of.failure.Said() {
		cause := deadletter.Hash(of.parts()...)
		v.GroupCause = cause[:16]
	}
	return v
}

// title returns a group's name in lists. Types decoded by a schema are shortened to their last
// part. Types named only by a framework are shown in full, because their first parts are not a
// package.
func title(v deadletter.Classified, schema string) string {
	switch {
	case v.Error != "":
		return v.Error
	case schema != "" && v.Reason != "":
		return schema[strings.LastIndexByte(schema, '.')+1:] + " " + v.Reason
	case v.Type != "" && v.Reason != "":
		return v.Type + " " + v.Reason
	case v.Reason != "":
		return "letters " + v.Reason
	case v.Type != "":
		return v.Type
	}
	return "letters without a known death"
}
