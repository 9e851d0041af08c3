package cli

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/api"
)

type auditCmd struct {
	List auditListCmd `cmd:"" help:"Everything people and dlo did, newest first."`
}

type auditListCmd struct {
	answerFlags
	Query     string `name:"query" short:"q" help:"Only what a query selects, for example 'who:lena action:resolved target:G-418 since:7d'; its fields are who, action, target, via, since and until."`
	Actor     string `name:"actor" help:"Only entries of this person, or of dlo."`
	Kind      string `name:"kind" help:"Only entries of this kind, for example requeue, discard, resolved, deploy."`
	Through   string `name:"through" enum:"page,api,cli,dlo," default:"" help:"Only entries that came through page, api or cli; dlo selects what dlo did automatically."`
	Operation string `name:"operation" help:"Of one operation, for example O-77."`
	Since     string `name:"since" help:"Only entries from this time on, for example 2026-11-20T14:00:00Z."`
	Before    string `name:"before" help:"Only entries before this time."`
	Limit     int    `name:"limit" short:"n" default:"50" help:"How many at most; 0 = all."`
	CSV       bool   `name:"csv" help:"All of it as CSV, for a spreadsheet."`
}

func (c auditListCmd) Run(p *Program) error {
	values := url.Values{}
	for name, v := range map[string]string{
		"q": c.Query, "actor": c.Actor, "kind": c.Kind, "through": c.Through, "operation": c.Operation,
		"since": c.Since, "before": c.Before,
	} {
		if v != "" {
			values.Set(name, v)
		}
	}
	if c.CSV {
		values.Set("format", "csv")
		answer, err := c.send(p, 0, http.MethodGet, "/audit?"+values.Encode(), nil)
		if err != nil {
			return err
		}
		defer answer.Close()
		return copyAnswer(p.Stdout, answer)
	}
	list := listing[api.AuditEntry]{
		path:   "/audit",
		key:    "entries",
		values: values,
		limit:  c.Limit,
		head:   []string{"TIME", "WHAT", "WHO", "VIA", "TARGETS", "ASKED", "DONE", "QUERY", "DETAIL"},
		none:   "no entries match",
	}
	return list.run(p, c.answerFlags, func(e api.AuditEntry) []string {
		return []string{
			e.At.Format(time.RFC3339), e.Kind, e.Actor, cmp.Or(e.Through, "?"), targetWords(e.Targets),
			auditNumber(e.Asked), auditNumber(e.Done), e.Query, e.Detail,
		}
	})
}

// auditNumber formats one of the numbers of an audit entry. It returns "?" if that number is
// missing.
func auditNumber(n *int) string {
	if n == nil {
		return "?"
	}
	return strconv.Itoa(*n)
}

// shownTargets is the number of targets that a row of the table names. JSON and CSV output names
// all of them.
const shownTargets = 3

func targetWords(targets []api.Target) string {
	var words []string
	for _, t := range targets[:min(len(targets), shownTargets)] {
		words = append(words, strings.TrimSpace(t.String()+" "+t.Title))
	}
	if more := len(targets) - shownTargets; more > 0 {
		words = append(words, fmt.Sprintf("and %d more", more))
	}
	return cmp.Or(strings.Join(words, ", "), "?")
}
