package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

type rulesApplyCmd struct {
	answerFlags
	Query  string `name:"query" short:"q" help:"Only letters of a query, for example 'queue:sms'; all scheduled letters if omitted."`
	DryRun bool   `name:"dry-run" help:"Say what would change, and change nothing."`
	Yes    bool   `name:"yes" short:"y" help:"Do not ask."`
	Reason string `name:"reason" help:"Why, for the audit."`
}

// applied is the server's response to "rules apply". It adds methods that print the response.
type applied struct{ api.Applied }

func decidedWords(d api.Decided) string { return d.Rule + ": " + string(d.Outcome) }

func (a applied) changedCount() (n int) {
	for _, c := range a.Changes {
		n += c.Letters
	}
	return n
}

func (c rulesApplyCmd) Run(p *Program) error {
	ask := !c.Yes && !c.DryRun && terminal(p.Stdin)
	if !c.Yes && !c.DryRun && !ask {
		return fmt.Errorf(
			"%w: rules apply needs --yes when there is no terminal to ask on; --dry-run says what it would change",
			errUsage,
		)
	}
	if ask {
		dry, _, err := c.apply(p, true)
		if err != nil {
			return err
		}
		// on stderr, because the final output goes to stdout, which may be a file
		if err := dry.print(p.Stderr); err != nil {
			return err
		}
		if dry.changedCount() == 0 {
			return nil
		}
		if err := askUser(p, fmt.Sprintf("apply the rules to %d letters", dry.changedCount())); err != nil {
			return err
		}
	}
	a, raw, err := c.apply(p, c.DryRun)
	if err != nil {
		return err
	}
	if c.Output != "table" {
		err = printJSON(p.Stdout, raw, c.Output == "json")
	} else {
		err = a.print(p.Stdout)
	}
	if err == nil && a.Stopped {
		err = errors.New("dlo stopped before the end; the other letters are unchanged")
	}
	return err
}

// apply asks the server to apply the rules. The request has no timeout.
func (c rulesApplyCmd) apply(p *Program, dry bool) (a applied, raw json.RawMessage, err error) {
	body, err := api.Marshal(api.ApplyRequest{Q: c.Query, DryRun: dry, Reason: c.Reason})
	if err != nil {
		return a, nil, err
	}
	answer, err := c.send(
		p, 0, http.MethodPost, "/rules/apply", bytes.NewReader(body), "Content-Type", "application/json",
	)
	if err != nil {
		return a, nil, err
	}
	defer answer.Close()
	if raw, err = io.ReadAll(io.LimitReader(answer, maxAnswer)); err != nil {
		return a, nil, c.noAnswer(err)
	}
	return a, raw, api.Unmarshal(raw, &a)
}

func (a applied) print(out io.Writer) error {
	verb := "changed"
	if a.DryRun {
		verb = "would change"
	}
	fmt.Fprintf(out, "%d of %d scheduled letters %s\n", a.changedCount(), a.LookedAt, verb)
	var rows [][]string
	for _, c := range a.Changes {
		var examples []string
		for _, id := range c.Examples {
			examples = append(examples, string(id))
		}
		rows = append(rows, []string{
			decidedWords(c.From), decidedWords(c.To), strconv.Itoa(c.Letters), strings.Join(examples, " "),
		})
	}
	if len(rows) > 0 {
		if err := printTable(out, []string{"FROM", "TO", "LETTERS", "SUCH AS"}, rows); err != nil {
			return err
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(a.LeftAlone)) {
		fmt.Fprintf(out, "left alone: %d, %s\n", a.LeftAlone[reason], deadletter.Visible(reason))
	}
	return nil
}
