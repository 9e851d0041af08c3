package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

type tryCmd struct {
	answerFlags
	Broker string `name:"broker" help:"The broker, by its name in the configuration; may be omitted if there is only one."`
}

// Run starts a trial. It prints each step that the server has observed, until the trial is over.
func (c tryCmd) Run(p *Program) error {
	var raw json.RawMessage
	if err := c.call(p, http.MethodPost, "/trial", api.TrialRequest{Broker: c.Broker}, &raw); err != nil {
		return err
	}
	for said := 0; ; {
		var t api.Trial
		if err := api.Unmarshal(raw, &t); err != nil {
			return err
		}
		if c.Output == "table" {
			said += sayTrial(p.Stdout, t, said)
		}
		if t.State != deadletter.TrialRunning {
			return c.report(p, t, raw)
		}
		select {
		case <-time.After(watchEvery):
		case <-p.Ctx.Done():
			return fmt.Errorf("%w: the trial continues on the server", errPartly)
		}
		if err := c.call(p, http.MethodGet, "/trial", nil, &raw); err != nil {
			return err
		}
	}
}

func (c tryCmd) report(p *Program, t api.Trial, raw json.RawMessage) error {
	if c.Output != "table" {
		if err := printJSON(p.Stdout, raw, c.Output == "json"); err != nil {
			return err
		}
	}
	if t.State == deadletter.TrialDone {
		return nil
	}
	cure := ""
	if t.Cure != "" {
		cure = "\n" + t.Cure
	}
	return fmt.Errorf("the trial did not get all the way: %s%s", t.Problem, cure)
}

// sayTrial prints the steps of a trial that were observed since the last call. The parameter
// "printed" is the number of steps that earlier calls printed. The result is the number of steps
// that this call printed.
func sayTrial(out io.Writer, t api.Trial, printed int) (n int) {
	for i, step := range []struct {
		name, text string
		at         time.Time
	}{
		{"rejected", "by the consumer of " + t.Queue, t.RejectedAt},
		{"arrived", "as letter " + string(t.Letter), t.ArrivedAt},
		{"decoded", t.Type + " " + t.Summary, t.DecodedAt},
		{"requeued", "to the tail of " + t.Queue, t.RequeuedAt},
		{"settled", "the consumer of " + t.Queue + " took it", t.SettledAt},
	} {
		if i < printed {
			continue
		}
		if step.at.IsZero() {
			break
		}
		fmt.Fprintf(
			out, "%-9s %5.1f s  %s\n", step.name, step.at.Sub(t.StartedAt).Seconds(),
			deadletter.Visible(step.text),
		)
		n++
	}
	return n
}
