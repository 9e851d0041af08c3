package cli

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// retriesWords returns one line that says why automatic retries are held back.
func retriesWords(r api.Retries, now time.Time) string {
	text := r.State
	if r.State == string(deadletter.GuardPaused) {
		text += " by " + r.By
	}
	if r.Why != "" {
		text += ": " + r.Why
	}
	if !r.Since.IsZero() {
		text += ", " + ago(r.Since, now)
	}
	if r.Until.After(now) {
		text += fmt.Sprintf("; next probe in %s", r.Until.Sub(now).Round(time.Second))
	}
	return text
}

// queueRetries returns one line that says why the automatic retries of a queue are held back. If
// the queue itself has a reason, it takes precedence over the reason of the broker.
func queueRetries(q api.Queue, now time.Time) string {
	if q.Away != "" && q.Retries.By == "" && q.Retries.Since.IsZero() {
		return q.Away
	}
	return retriesWords(q.Retries, now)
}

// queueNumber formats a number that a broker reported for a queue. It returns "unknown" for nil.
func queueNumber(n *int) string {
	if n == nil {
		return "unknown"
	}
	return strconv.Itoa(*n)
}

type queuesListCmd struct {
	answerFlags
	Inboxes bool `name:"inboxes" help:"List the inboxes that dlo drains instead."`
}

func (c queuesListCmd) Run(p *Program) error {
	if c.Inboxes {
		list := listing[api.Inbox]{
			path:  "/queues",
			key:   "inboxes",
			whole: true,
			head:  []string{"BROKER", "VHOST", "INBOX", "CONNECTED", "DRAINED", "DEPTH", "NOTE"},
			none:  "there are no inboxes",
		}
		return list.run(p, c.answerFlags, func(i api.Inbox) []string {
			return []string{
				i.Broker, i.VHost, i.Queue, yesNo(i.Connected), yesNo(i.Draining), queueNumber(i.Depth), i.Note,
			}
		})
	}
	list := listing[api.Queue]{
		path:  "/queues",
		key:   "queues",
		whole: true,
		head: []string{
			"BROKER", "VHOST", "QUEUE", "SCHEDULED", "DEAD", "HELD", "DEPTH", "CONSUMERS", "RETRIES",
			"GROUPS HELD BACK",
		},
		none: "no letter died in any queue yet",
	}
	return list.run(p, c.answerFlags, func(q api.Queue) []string {
		var groups []string
		for _, g := range q.GroupsPaused {
			groups = append(groups, g.Group.String()+" "+g.State)
		}
		return []string{
			q.Broker, q.VHost, q.Queue, strconv.Itoa(q.Scheduled), strconv.Itoa(q.Dead), strconv.Itoa(q.Held),
			queueNumber(q.Depth), queueNumber(q.Consumers),
			queueRetries(q, time.Now()), strings.Join(groups, ", "),
		}
	})
}

func yesNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}

type reasonFlag struct {
	Reason string `name:"reason" help:"The reason, which the page and the audit log show."`
}

type queueFlags struct {
	answerFlags
	placeFlags
	reasonFlag
	Queue string `arg:"" name:"queue" help:"The queue that letters died in."`
}

func (c queueFlags) guard(p *Program, what string) error {
	body := api.QueueRequest{Broker: c.Broker, VHost: c.VHost, Queue: c.Queue, Reason: c.Reason}
	return add(p, c.answerFlags, "/queues/"+what, body, func(q api.QueueRetries) string {
		return fmt.Sprintf("retries of queue %s: %s", q.Queue, retriesWords(q.Retries, time.Now()))
	})
}

type queuesPauseCmd struct{ queueFlags }

func (c queuesPauseCmd) Run(p *Program) error { return c.guard(p, "pause") }

type queuesResumeCmd struct{ queueFlags }

func (c queuesResumeCmd) Run(p *Program) error { return c.guard(p, "resume") }

type groupFlags struct {
	answerFlags
	reasonFlag
	ID string `arg:"" name:"group" help:"The group, for example G-418."`
}

func (c groupFlags) guard(p *Program, what string) error {
	if _, err := deadletter.ParseGroupID(c.ID); err != nil {
		return err
	}
	path := "/groups/" + url.PathEscape(c.ID) + "/" + what
	return add(p, c.answerFlags, path, api.ReasonRequest{Reason: c.Reason}, func(g api.GroupRetries) string {
		return fmt.Sprintf("retries of group %s: %s", g.Group, retriesWords(g.Retries, time.Now()))
	})
}

type groupsPauseCmd struct{ groupFlags }

func (c groupsPauseCmd) Run(p *Program) error { return c.guard(p, "pause") }

type groupsResumeCmd struct{ groupFlags }

func (c groupsResumeCmd) Run(p *Program) error { return c.guard(p, "resume") }
