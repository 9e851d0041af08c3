package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

type typesCmd struct {
	Add      typesAddCmd      `cmd:"" help:"Add descriptor sets, or new versions of them, or say what they would change."`
	List     typesListCmd     `cmd:"" help:"List descriptor sets; with a word, types and fields with it in their names."`
	Show     typesShowCmd     `cmd:"" help:"Print a type as .proto, or what a set holds."`
	Match    typesMatchCmd    `cmd:"" help:"Say which types a body matches, and why."`
	Decode   typesDecodeCmd   `cmd:"" help:"Print a body as JSON."`
	Bind     typesBindCmd     `cmd:"" help:"Bind queues to a type, for letters that do not name their type."`
	Unbind   typesUnbindCmd   `cmd:"" help:"Remove a binding, or the pick for a group or a letter."`
	Bindings typesBindingsCmd `cmd:"" help:"List bindings, and picks for groups and letters."`
	Remove   typesRemoveCmd   `cmd:"" help:"Take an uploaded set out of use, with all its versions."`
}

type typesListCmd struct {
	answerFlags
	Word string `arg:"" optional:"" name:"word" help:"Part of the name of a type or a field; upper and lower case are the same."`
}

func (c typesListCmd) Run(p *Program) error {
	var raw json.RawMessage
	if err := c.call(p, http.MethodGet, "/types?"+url.Values{"q": {c.Word}}.Encode(), nil, &raw); err != nil {
		return err
	}
	if c.Output != "table" {
		return c.printRaw(p, raw)
	}
	var a api.Types
	if err := api.Unmarshal(raw, &a); err != nil {
		return err
	}
	if c.Word != "" {
		return printHits(p, &a)
	}
	for _, problem := range a.Problems {
		fmt.Fprintln(p.Stderr, "dlo:", deadletter.Visible(problem))
	}
	for _, s := range a.Servers {
		if s.Problem != "" {
			fmt.Fprintln(p.Stderr, "dlo:", deadletter.Visible(s.Address+": "+s.Problem))
		}
	}
	return printSets(p, &a)
}

// printRaw prints the descriptor sets or the search hits of a response as JSON.
func (c typesListCmd) printRaw(p *Program, answer json.RawMessage) error {
	var lists struct {
		Sets []json.RawMessage `json:"sets"`
		Hits []json.RawMessage `json:"hits"`
	}
	if err := api.Unmarshal(answer, &lists); err != nil {
		return err
	}
	list := lists.Sets
	if c.Word != "" {
		list = lists.Hits
	}
	if c.Output == "json" {
		return printJSON(p.Stdout, list, true)
	}
	return printLines(p.Stdout, list)
}

func printSets(p *Program, a *api.Types) error {
	rows := [][]string{}
	for _, s := range a.Sets {
		state := "current"
		if !s.Current {
			state = "older"
		}
		letters := ""
		if s.Current && len(s.Types) == s.TypeCount {
			n := 0
			for _, t := range s.Types {
				n += a.Letters[t]
			}
			letters = strconv.Itoa(n)
		}
		rows = append(rows, []string{
			s.Name, s.Version[:min(8, len(s.Version))], state, strconv.Itoa(s.TypeCount), letters, string(s.Source),
			s.Detail, s.By, ago(s.CurrentAt, time.Now()),
		})
	}
	if len(rows) == 0 {
		fmt.Fprintln(p.Stderr, "there are no sets; dlo types add adds one")
	}
	return printTable(p.Stdout, []string{
		"SET", "VERSION", "STATE", "TYPES", "LETTERS", "SOURCE", "FROM", "WHO", "CAME",
	}, rows)
}

func printHits(p *Program, a *api.Types) error {
	rows := [][]string{}
	for _, h := range a.Hits {
		rows = append(rows, []string{h.Type, h.Field, h.Is, h.Set})
	}
	if len(rows) == 0 {
		fmt.Fprintln(p.Stderr, "no type or field has that in its name")
	}
	if a.More {
		fmt.Fprintln(p.Stderr, "there are more")
	}
	return printTable(p.Stdout, []string{"TYPE", "FIELD", "IS", "SET"}, rows)
}

type typesShowCmd struct {
	answerFlags
	Name string `arg:"" name:"name" help:"A type, by its full or short name, or a set."`
}

func (c typesShowCmd) Run(p *Program) error {
	var a api.Types
	if err := c.call(p, http.MethodGet, "/types", nil, &a); err != nil {
		return err
	}
	if i := slices.IndexFunc(a.Sets, func(s api.SchemaSet) bool { return s.Name == c.Name && s.Current }); i >= 0 {
		return c.showSet(p, a.Sets[i])
	}
	var t api.TypeSource
	if printed, err := c.fetch(
		p, http.MethodGet, "/types/proto?"+url.Values{"type": {c.Name}}.Encode(), nil, &t,
	); printed || err != nil {
		return err
	}
	for i, d := range t.Definitions {
		what := "also in"
		if i == 0 {
			what = "from"
		}
		fmt.Fprintln(
			p.Stderr,
			deadletter.Visible(fmt.Sprintf("%s set %s %s, %s", what, d.Set, d.Version[:min(8, len(d.Version))], d.File)),
		)
	}
	if t.Cut {
		fmt.Fprintln(p.Stderr, "the end of it is left out")
	}
	_, err := fmt.Fprint(p.Stdout, deadletter.VisibleLines(t.Text))
	return err
}

func (c typesShowCmd) showSet(p *Program, s api.SchemaSet) error {
	if c.Output != "table" {
		s.At = time.Time{} // only `types list` shows the time at which a version first arrived
		return printJSON(p.Stdout, s, c.Output == "json")
	}
	fmt.Fprintln(
		p.Stderr,
		deadletter.Visible(fmt.Sprintf("set %s %s by %s from %s: %d types in %d files", s.Name, s.Version[:min(8, len(s.Version))], s.By, cmp.Or(s.Detail, string(s.Source)), s.TypeCount, s.Files)),
	)
	for _, t := range s.Types {
		if _, err := fmt.Fprintln(p.Stdout, deadletter.Visible(t)); err != nil {
			return err
		}
	}
	if n := s.TypeCount - len(s.Types); n > 0 {
		fmt.Fprintf(p.Stderr, "and %d more; dlo types list WORD finds them\n", n)
	}
	return nil
}

type typesRemoveCmd struct {
	answerFlags
	Set    string `arg:"" name:"set" help:"The set, as the list shows it."`
	DryRun bool   `name:"dry-run" help:"Say how many letters are of its types, and change nothing."`
	Yes    bool   `name:"yes" short:"y" help:"Do not ask."`
}

func (c typesRemoveCmd) Run(p *Program) error {
	ask := !c.Yes && !c.DryRun && terminal(p.Stdin)
	if !c.Yes && !c.DryRun && !ask {
		return fmt.Errorf(
			"%w: types remove needs --yes when there is no terminal to ask on; --dry-run says what it would change",
			errUsage,
		)
	}
	if ask {
		var a api.Removal
		if err := c.call(p, http.MethodDelete, c.path(true), nil, &a); err != nil {
			return err
		}
		question := fmt.Sprintf(
			"remove set %s with %d types; %d letters have one of them", deadletter.Visible(a.Set), a.TypeCount,
			a.Letters,
		)
		if err := askUser(p, question); err != nil {
			return err
		}
	}
	var a api.Removal
	if printed, err := c.fetch(p, http.MethodDelete, c.path(c.DryRun), nil, &a); printed || err != nil {
		return err
	}
	text := "set %s is removed: %d letters have one of its %d types and are decoded again\n"
	if c.DryRun {
		text = "set %s would be removed: %d letters have one of its %d types and would be decoded again\n"
	}
	_, err := fmt.Fprintf(p.Stdout, text, deadletter.Visible(a.Set), a.Letters, a.TypeCount)
	return err
}

func (c typesRemoveCmd) path(dryRun bool) string {
	path := "/types/" + url.PathEscape(c.Set)
	if dryRun {
		path += "?dry_run=1"
	}
	return path
}
