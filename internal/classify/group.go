package classify

import (
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/failure"
	"github.com/deadletteroffice/dlo/internal/payload"
)

// GroupVersion is stored with each group: a better way to group gets the next number, and the
// letters of groups of lower ones are grouped again in the background. Version 1 knew the error
// text only, 2 took the types that frameworks name for no types of letters: their keys are the
// same.
const GroupVersion = 3

const ownFrames = 3 // of a stack that tell causes apart; what lies further out is how all letters of a queue come in

// cause is what tells the groups of an origin apart, besides reason and type.
type cause struct {
	schema  string // the type that a schema reads it as; "" = none does
	group   string // that the rule gives: then nothing else counts
	failure deadletter.Failure
	form    []string // of a letter that says nothing of an error: how it was published, and what it looks like
}

// causeOf is the cause of a letter whose origin, reason and type are known. A message that its
// publisher names needs no look at its body.
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

// parts are the texts that letters of one cause have in common.
func (c *cause) parts() []string {
	if !c.failure.Said() {
		return append([]string{"form"}, c.form...)
	}
	parts := []string{"error", failure.Fold(c.failure.Type), failure.Fold(c.failure.Message)}
	frames := failure.Frames(c.failure.Stack)
	return append(parts, frames[:min(len(frames), ownFrames)]...)
}

// grouped fills in the group of a verdict: letters that fail for one cause, which is origin queue
// with its broker and vhost, reason, type and the normalised error; or where a rule has a group of
// its own, the origin and that. A broker that is renamed keeps its groups.
func (c *Classifier) grouped(v deadletter.Classified, of cause) deadletter.Classified {
	broker := c.o.FirstName(v.Origin.Broker)
	parts := []string{broker, v.Origin.VHost, v.Origin.Queue, "rule", of.group}
	if of.group == "" {
		parts = append([]string{broker, v.Origin.VHost, v.Origin.Queue, v.Reason, of.schema}, of.parts()...)
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

// title names a group in a list: of a type that a schema reads by its short name, of one that only
// a framework names by all of it, as what stands before its last word is no package.
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
