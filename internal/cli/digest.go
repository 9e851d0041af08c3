package cli

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

type digestCmd struct {
	Preview digestPreviewCmd `cmd:"" help:"Show the digest as it would be sent now."`
	Send    digestSendCmd    `cmd:"" help:"Send that digest now, whatever the clock says."`
}

type digestPreviewCmd struct{ answerFlags }

func (c digestPreviewCmd) Run(p *Program) error {
	var d api.Digest
	if printed, err := c.fetch(p, http.MethodGet, "/digest", nil, &d); printed || err != nil {
		return err
	}
	fmt.Fprintf(
		p.Stdout, "since %s: %d groups, %d letters, %d new, %d came back; %d recovered by retries; %d paged\n",
		d.From.Format("Mon 2 Jan 15:04 MST"), d.Groups, d.Letters, d.New, d.CameBack, d.Recovered, d.Paged,
	)
	for _, pause := range d.Pauses {
		what := pause.Queue
		if pause.Group != 0 {
			what = pause.Group.String() + " of " + what
		}
		fmt.Fprintf(
			p.Stdout, "retries of %s are paused since %s, by %s; %s\n", deadletter.Visible(what),
			pause.Since.Format("2 Jan 15:04 MST"), deadletter.Visible(pause.By),
			deadletter.Plural(pause.Letters, "letter waits", "letters wait"),
		)
	}
	if len(d.Lines) == 0 {
		fmt.Fprintln(p.Stdout, "all quiet: nothing needs you")
		return nil
	}
	var rows [][]string
	for _, l := range d.Lines {
		rows = append(rows, []string{
			l.Group.ID.String(), "+" + strconv.Itoa(l.Letters), strconv.Itoa(l.Group.Count), l.Group.Severity, l.Group.Status,
			l.Group.Queue, deadletter.Cut(l.Group.Title, 100), l.Suggestion,
		})
	}
	if err := printTable(p.Stdout, []string{
		"GROUP", "NEW", "TOTAL", "SEVERITY", "STATUS", "QUEUE", "WHAT", "BEFORE",
	}, rows); err != nil {
		return err
	}
	if d.More > 0 {
		fmt.Fprintf(p.Stdout, "and %d more groups: dlo groups list\n", d.More)
	}
	return nil
}

type digestSendCmd struct{ answerFlags }

func (c digestSendCmd) Run(p *Program) error {
	return add(p, c.answerFlags, "/digest/send", nil, func(a api.DigestSent) string {
		return "on its way to " + strings.Join(a.Channels, ", ")
	})
}
