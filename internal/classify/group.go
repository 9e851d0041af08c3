package classify

import (
	"slices"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/failure"
	"github.com/deadletteroffice/dlo/internal/payload"
)

// GroupVersion is stored with each group. Increase it when grouping improves. dlo then groups
// letters again, in the background, if their group has a lower version.
//
// Version 1 used only the error text. Version 2 did not yet use the type that a framework names as
// the type of the letter. Version 3 uses this type, and gives groups the same keys as version 2.
// Version 4 also distinguishes letters of unknown origin by their inboxes. Version 5 knows more
// headers of errors, Rascal, Knative, Dramatiq, NestJS and the PhpSerializer of Symfony.
const GroupVersion = 5

// number of stack frames that are part of a cause; all letters of a queue share the frames further
// out
const ownFrames = 3

// cause says what made letters die, for example which error. It distinguishes groups that have the
// same origin, reason and type.
type cause struct {
	schema  string // the type that a schema gives the letter; "" = no schema can decode the letter
	group   string // the group that a rule sets; if it is set, nothing else counts
	failure deadletter.Failure
	form    []string // for a letter without an error: how it was published, and the shape of its body
}

// causeOf returns the cause of a letter whose origin, reason and type are known. Normally, the
// error is the cause. If the error is unknown and no rule sets the group, the cause consists of the
// routing key and of the message type in the headers. If no type is known either, the shape of the
// body counts too.
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

// parts returns the texts that identify a cause. They are the same for all letters with this cause.
func (c *cause) parts() []string {
	if !c.failure.Said() {
		return append([]string{"form"}, c.form...)
	}
	parts := []string{"error", failure.Fold(c.failure.Type), failure.Fold(c.failure.Message)}
	frames := failure.Frames(c.failure.Stack)
	return append(parts, frames[:min(len(frames), ownFrames)]...)
}

// withGroup puts the group of a letter into its verdict. Letters of one group have the same origin
// queue, broker, vhost, reason, type and normalised error. However, if a rule sets the group, only
// the origin and the name that the rule gives must be the same.
//
// If the origin queue is unknown, the inbox takes its place. This keeps the letters of two inboxes
// apart, because some people may see only one of the inboxes. The key of a group does not change
// when its broker is renamed.
func (c *Classifier) withGroup(l *deadletter.Letter, v deadletter.Classified, why cause) deadletter.Classified {
	place := []string{c.o.FirstName(v.Origin.Broker), v.Origin.VHost, v.Origin.Queue}
	if v.Origin.Queue == "" {
		place = append(place, "inbox", l.Inbox)
	}
	parts := append(place, "rule", why.group)
	if why.group == "" {
		parts = slices.Concat(place, []string{v.Reason, why.schema}, why.parts())
	}
	v.GroupKey, v.GroupTitle, v.Version = deadletter.Hash(parts...), title(v, why.schema), why.failure.Version
	if why.group != "" {
		v.GroupTitle = why.group + ": " + v.GroupTitle
	}
	if why.failure.Said() {
		cause := deadletter.Hash(why.parts()...)
		v.GroupCause = cause[:16]
	}
	return v
}

// title returns the title of a group in lists. If the title contains a type that a schema decoded,
// only the last part of the type's name is used. If only a framework names the type, title uses the
// whole name, because the first parts of such a name are not a package.
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
