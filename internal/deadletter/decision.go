package deadletter

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// Decision is a person's decision about one or more groups. A field that is nil changes nothing.
type Decision struct {
	Groups   []GroupID
	By       string
	Owner    *string   // "" = nobody
	Severity *Severity // "" = severity that the rules determine
	Ticket   *string   // "" = none
	Note     string    // note that is added to the history; "" = none
	Snooze   *Snooze
	Resolve  *Resolution // only the field Version is used
	Reopen   bool        // ends a snooze or a resolution
	Into     GroupID     // group into which the groups are merged; 0 = none
	Split    bool        // ends the merge of the groups into another group

	// Unchanged is the time of the last change to the groups, as the person who decides saw them.
	// If the last change to one of the groups was at another time, the decision is rejected. If
	// Unchanged is zero, dlo does not compare the times.
	Unchanged time.Time
}

// Decided is a decision that is recorded.
type Decided struct {
	ID       int64     `json:"id"`
	Kind     string    `json:"kind"` // such as "snoozed"
	Detail   string    `json:"detail,omitzero"`
	By       string    `json:"by"`
	At       time.Time `json:"at"`
	Groups   []GroupID `json:"groups"`             // groups that the decision changed
	Title    string    `json:"-"`                  // title of the group, if the decision changed only one
	Skipped  []Skipped `json:"skipped,omitempty"`  // groups that the decision did not change
	UndoneAt time.Time `json:"undone_at,omitzero"` // zero = not undone
}

// Skipped is a group that a decision did not change, and the reason.
type Skipped struct {
	Group GroupID `json:"group"`
	Why   string  `json:"why"`
}

const (
	maxNote   = 4000 // in bytes
	maxTicket = 500
	maxOwner  = 100
)

// Check returns ErrInvalid if the decision is not valid. If a snooze has no end, Check sets its end
// to the latest permitted time.
func (d *Decision) Check(now time.Time) error {
	wrong := func(format string, args ...any) error {
		return fmt.Errorf("%w: "+format, append([]any{ErrInvalid}, args...)...)
	}
	said := 0
	for _, is := range []bool{d.Snooze != nil, d.Resolve != nil, d.Reopen, d.Into != 0, d.Split} {
		if is {
			said++
		}
	}
	switch {
	case len(d.Groups) == 0:
		return wrong("choose a group")
	case said > 1:
		return wrong("a group is snoozed, resolved, reopened, merged or split, one at a time")
	case said == 0 && d.Owner == nil && d.Severity == nil && d.Ticket == nil && d.Note == "":
		return wrong("say what to change: severity, owner, note, ticket, snooze, resolve or reopen")
	case len(d.Note) > maxNote:
		return wrong("a note has at most %d bytes", maxNote)
	case d.Ticket != nil && (len(*d.Ticket) > maxTicket || Visible(*d.Ticket) != *d.Ticket):
		return wrong("a ticket is a link or a number of at most %d visible characters", maxTicket)
	case d.Owner != nil && (len(*d.Owner) > maxOwner || Visible(*d.Owner) != *d.Owner):
		return wrong("an owner is a name of at most %d visible characters", maxOwner)
	case d.Resolve != nil && (len(d.Resolve.Version) > maxOwner || Visible(d.Resolve.Version) != d.Resolve.Version):
		return wrong("a version has at most %d visible characters", maxOwner)
	}
	if d.Severity != nil {
		switch *d.Severity {
		case "", SeverityPage, SeverityNotify, SeverityDigest:
		default:
			return wrong(
				"there is no severity %s; it is page, notify, digest, or nothing for what the rules say",
				Visible(Cut(string(*d.Severity), 40)),
			)
		}
	}
	if d.Snooze != nil {
		if d.Snooze.Until.IsZero() {
			d.Snooze.Until = now.Add(MaxSnooze)
		}
		d.Snooze.Until = d.Snooze.Until.UTC().Truncate(time.Millisecond)
		switch {
		case !d.Snooze.Until.After(now):
			return wrong("the time that it is snoozed until has passed")
		case d.Snooze.Until.After(now.Add(MaxSnooze)):
			return wrong(
				"a group can be snoozed for at most %d days, so that it is not forgotten", int(MaxSnooze.Hours()/24),
			)
		case d.Snooze.After < 0:
			return wrong("more letters must be 1 or more")
		}
	}
	return nil
}

// Kind returns the kind of act that histories show for this decision. If the decision has several
// parts, this is the kind of the most important part.
func (d *Decision) Kind() string {
	switch {
	case d.Into != 0:
		return ActMerged
	case d.Split:
		return ActSplit
	case d.Snooze != nil:
		return ActSnoozed
	case d.Resolve != nil:
		return ActResolved
	case d.Reopen:
		return ActReopened
	case d.Owner != nil && *d.Owner != "":
		return ActAssigned
	case d.Owner != nil:
		return ActUnassigned
	case d.Severity != nil:
		return ActSeverity
	case d.Ticket != nil:
		return ActTicket
	}
	return ActNote
}

// Detail describes the decision as a text.
func (d *Decision) Detail() string {
	switch d.Kind() {
	case ActMerged:
		return "into " + d.Into.String()
	case ActSnoozed:
		text := "until " + d.Snooze.Until.UTC().Format("2006-01-02 15:04 UTC")
		if d.Snooze.After > 0 {
			text += fmt.Sprintf(", or %d more letters", d.Snooze.After)
		}
		if d.Snooze.Queue {
			text += ", or until the error appears in another queue"
		}
		return text
	case ActResolved:
		if d.Resolve.Version != "" {
			return "in version " + d.Resolve.Version
		}
	case ActNote:
		return d.Note
	}
	var parts []string
	if d.Owner != nil && *d.Owner != "" {
		parts = append(parts, "to "+*d.Owner)
	}
	if d.Severity != nil {
		parts = append(parts, "severity "+cmp.Or(string(*d.Severity), "from the rules"))
	}
	if d.Ticket != nil {
		parts = append(parts, "ticket "+cmp.Or(*d.Ticket, "none"))
	}
	return strings.Join(parts, ", ")
}
