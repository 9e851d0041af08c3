package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

type lettersCmd struct {
	List       lettersListCmd       `cmd:"" help:"List letters, newest first."`
	Show       lettersShowCmd       `cmd:"" help:"Show one letter: why it died, its decoded body, its history."`
	Body       lettersBodyCmd       `cmd:"" help:"Write the stored bytes of one letter."`
	Reveal     lettersRevealCmd     `cmd:"" help:"Show one masked value of a letter; recorded in the audit log."`
	Count      lettersCountCmd      `cmd:"" help:"Count the letters of a query, exactly."`
	Facets     lettersFacetsCmd     `cmd:"" help:"The values of each field among the letters of a query, with counts."`
	Requeue    lettersRequeueCmd    `cmd:"" help:"Put letters back at the tail of the queue they died in."`
	Edit       lettersEditCmd       `cmd:"" help:"Change the bodies or headers of letters and requeue the edited copies; the originals are kept."`
	Hold       lettersHoldCmd       `cmd:"" help:"Keep letters where they are until they are released."`
	Release    lettersReleaseCmd    `cmd:"" help:"Release held letters to the state that they had."`
	Discard    lettersDiscardCmd    `cmd:"" help:"Discard letters; they can be restored."`
	RetryNow   lettersRetryNowCmd   `cmd:"" name:"retry-now" help:"Make scheduled retries due now."`
	Reschedule lettersRescheduleCmd `cmd:"" help:"Give scheduled retries another time."`
	Restore    lettersRestoreCmd    `cmd:"" help:"Restore discarded letters."`
	Purge      lettersPurgeCmd      `cmd:"" help:"Erase the content of letters for good; their history stays."`
	Export     lettersExportCmd     `cmd:"" help:"Write letters to a file, whole or as a table."`
	Type       lettersTypeCmd       `cmd:"" help:"Set the type of a letter, its group or its queue."`
	Import     lettersImportCmd     `cmd:"" help:"Take in letters that another dlo exported."`
}

type lettersListCmd struct {
	answerFlags
	queryFlag
	Limit int    `name:"limit" short:"n" default:"50" help:"How many at most; 0 = all."`
	Order string `name:"order" enum:",received,oldest,died,attempts,size,due" default:"" help:"The order; by default the order that the query sets with sort:, or else received. received: newest first; oldest; died: last died first; attempts: most first; size: largest first; due: next due first."`
}

func (c lettersListCmd) Run(p *Program) error {
	list := listing[deadletter.Row]{
		path:   "/letters",
		key:    "letters",
		values: url.Values{"q": {c.Query}, "order": {c.Order}},
		limit:  c.Limit,
		head:   []string{"ID", "STATE", "RECEIVED", "QUEUE", "REASON", "TYPE", "ATTEMPTS", "WHAT"},
		none:   "no letter matches",
	}
	return list.run(p, c.answerFlags, func(l deadletter.Row) []string {
		return []string{
			string(l.ID), string(l.State), ago(l.ReceivedAt, time.Now()), l.Queue, l.Reason, l.Type,
			strconv.Itoa(l.Attempts), deadletter.Cut(strings.TrimSpace(l.Error+"  "+l.Summary), 80),
		}
	})
}

type lettersShowCmd struct {
	answerFlags
	revealFlag
	ID string `arg:"" name:"id" help:"The letter's id."`
}

func (c lettersShowCmd) Run(p *Program) error {
	if _, err := deadletter.ParseID(c.ID); err != nil {
		return err
	}
	var l api.Letter
	if printed, err := c.fetch(
		p, http.MethodGet, "/letters/"+url.PathEscape(c.ID)+c.query(), nil, &l,
	); printed || err != nil {
		return err
	}
	line := func(name, value string) { printFact(p.Stdout, name, value) }
	line("letter", string(l.ID))
	line("state", string(l.State))
	line("why", l.Why)
	line("error", l.Error)
	line("queue", fmt.Sprintf("%s (vhost %s)", l.Queue, l.VHost))
	line("reason", l.Reason)
	line("published", fmt.Sprintf("exchange %q, key %q", l.Exchange, l.RoutingKey))
	line("group", l.Group.String())
	line("type", l.Type)
	line("size", fmt.Sprintf("%d B", l.Size))
	line("received", l.ReceivedAt.Format(time.RFC3339))
	if !l.DueAt.IsZero() {
		line("due", l.DueAt.Format(time.RFC3339))
	}
	if len(l.Decoded.JSON) > 0 && string(l.Decoded.JSON) != "null" {
		indented, err := json.MarshalIndent(l.Decoded.JSON, "", "  ")
		if err != nil {
			return err
		}
		fmt.Fprintf(p.Stdout, "\n%s\n", deadletter.VisibleLines(string(indented)))
		if l.Decoded.UnknownFields > 0 {
			fmt.Fprintf(
				p.Stdout, "(%d unknown fields are left out; a requeue sends the stored bytes)\n",
				l.Decoded.UnknownFields,
			)
		}
	}
	fmt.Fprintln(p.Stdout)
	var rows [][]string
	for _, e := range l.History {
		rows = append(rows, []string{e.At.Format(time.RFC3339), e.Kind, e.Actor, e.Detail})
	}
	return printTable(p.Stdout, []string{"TIME", "WHAT", "WHO", "DETAIL"}, rows)
}
