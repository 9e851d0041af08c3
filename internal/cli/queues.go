package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

type queuesCmd struct {
	List   queuesListCmd   `cmd:"" help:"List the queues that letters died in, and whether their retries are held back. With --inboxes, list the inboxes."`
	Pause  queuesPauseCmd  `cmd:"" help:"Pause the automatic retries of a queue; what people requeue is still sent."`
	Resume queuesResumeCmd `cmd:"" help:"Resume the automatic retries of a queue; slowly at first if the breaker had tripped."`
	Drain  queuesDrainCmd  `cmd:"" help:"Take letters out of a queue that is not an inbox, once."`
	Drains queuesDrainsCmd `cmd:"" help:"List running drains, and the newest that ended."`
	Stop   queuesStopCmd   `cmd:"" help:"Stop a drain; the rest stays in its queue."`
}

// drainWords returns a description of a drain's state and of how many letters it has taken.
func drainWords(d deadletter.Drain) string {
	text := fmt.Sprintf("%s: %s, %d letters taken out of %s", d.ID, d.State, d.Taken, d.Queue)
	if d.Why != "" {
		text += "; " + d.Why
	}
	return deadletter.Visible(text)
}

type queuesDrainCmd struct {
	answerFlags
	placeFlags
	Queue  string `arg:"" name:"queue" help:"The queue."`
	Count  int    `name:"count" help:"How many letters at most; 0 = until the queue is empty."`
	Origin string `name:"origin" help:"The queue in which letters died whose headers do not name it; without this, such letters are held."`
	Watch  bool   `name:"watch" help:"Wait for the end."`
}

func (c queuesDrainCmd) Run(p *Program) error {
	if c.Count < 0 {
		return fmt.Errorf("%w: --count is 0 or more", errUsage)
	}
	body := deadletter.DrainRequest{Broker: c.Broker, VHost: c.VHost, Queue: c.Queue, Origin: c.Origin, Count: c.Count}
	var raw json.RawMessage
	if err := c.call(p, http.MethodPost, "/queues/drain", body, &raw); err != nil {
		return err
	}
	var d deadletter.Drain
	if err := api.Unmarshal(raw, &d); err != nil {
		return err
	}
	for c.Watch && d.State == deadletter.DrainRunning {
		select {
		case <-time.After(watchEvery):
		case <-p.Ctx.Done():
			return fmt.Errorf(
				"%w: %s continues on the server; dlo queues drains shows it, dlo queues stop %s ends it", errPartly,
				d.ID, d.ID,
			)
		}
		var answer struct {
			Drains []json.RawMessage `json:"drains"`
		}
		if err := c.call(p, http.MethodGet, "/queues/drains", nil, &answer); err != nil {
			if p.Ctx.Err() != nil {
				continue
			}
			return err
		}
		found := false
		for _, one := range answer.Drains {
			var now deadletter.Drain
			if err := api.Unmarshal(one, &now); err != nil {
				return err
			}
			if now.ID == d.ID {
				raw, d, found = one, now, true
			}
		}
		if !found {
			return fmt.Errorf("%s is no longer known: dlo was restarted; the audit log says how it ended", d.ID)
		}
	}
	var err error
	if c.Output != "table" {
		err = printJSON(p.Stdout, raw, c.Output == "json")
	} else {
		_, err = fmt.Fprintln(p.Stdout, drainWords(d))
	}
	switch {
	case err != nil:
		return err
	case d.State == deadletter.DrainFailed:
		return fmt.Errorf("%s failed: %s", d.ID, d.Why)
	case d.State == deadletter.DrainStopped:
		return fmt.Errorf("%w: %s was stopped", errPartly, d.ID)
	}
	return nil
}

type queuesDrainsCmd struct{ answerFlags }

func (c queuesDrainsCmd) Run(p *Program) error {
	list := listing[deadletter.Drain]{
		path:  "/queues/drains",
		key:   "drains",
		whole: true,
		head:  []string{"ID", "STATE", "BROKER", "QUEUE", "TAKEN", "OF", "STARTED", "WHO", "WHY"},
		none:  "there are no drains",
	}
	return list.run(p, c.answerFlags, func(d deadletter.Drain) []string {
		of := "all"
		if d.Asked > 0 {
			of = strconv.Itoa(d.Asked)
		}
		return []string{
			d.ID, string(d.State), d.Broker, d.Queue, strconv.Itoa(d.Taken), of, ago(d.StartedAt, time.Now()), d.By,
			d.Why,
		}
	})
}

type queuesStopCmd struct {
	answerFlags
	ID string `arg:"" name:"drain" help:"The drain, for example D-1mfc2x8k4."`
}

func (c queuesStopCmd) Run(p *Program) error {
	return add(p, c.answerFlags, "/queues/drains/"+url.PathEscape(c.ID)+"/stop", nil, drainWords)
}
