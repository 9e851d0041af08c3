package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/deadletteroffice/dlo/internal/api"
)

// callCmd is a command that makes one call. A type that embeds it adds arguments and flags.
type callCmd struct{ answerFlags }

// Run makes the call of the command, and prints the answer.
func (c callCmd) Run(p *Program, k *kong.Context) error {
	_, err := c.perform(p, k, commandOf(k.Selected()), nil)
	return err
}

// inRequest reports whether an argument or a flag is a part of the request, and under which name.
// The tag json gives another name, which may have a dot, or "-" for those that are no part of it.
func inRequest(v *kong.Value) (name string, ok bool) {
	name = cmp.Or(v.Tag.Get("json"), strings.ReplaceAll(v.Name, "-", "_"))
	return name, name != "-"
}

// valuesOf returns the arguments and the flags of a command.
func valuesOf(node *kong.Node) []*kong.Value {
	values := slices.Clone(node.Positional)
	for _, f := range node.Flags {
		values = append(values, f.Value)
	}
	return values
}

// whole is the name of an argument that is the whole request.
const whole = "*"

// given returns the arguments of a command and the flags that are set, by their names in requests.
func given(p *Program, node *kong.Node) (map[string]any, error) {
	values := map[string]any{}
	for _, v := range valuesOf(node) {
		name, ok := inRequest(v)
		if !ok || !v.Set && v.Target.IsZero() {
			continue
		}
		into, value := values, v.Target.Interface()
		if file, is := value.(interface{ content(*Program) (any, error) }); is {
			var err error
			if value, err = file.content(p); err != nil {
				return nil, err
			}
		}
		if outer, inner, dotted := strings.Cut(name, "."); dotted {
			if into[outer] == nil {
				into[outer] = map[string]any{}
			}
			into, name = into[outer].(map[string]any), inner
		}
		into[name] = value
	}
	if values[whole] != nil && len(values) > 1 {
		return nil, fmt.Errorf("%w: the file contains everything; leave the flags out", errUsage)
	}
	return values, nil
}

// isSet reports whether a command has a flag, and it is set.
func isSet(k *kong.Context, flag string) bool {
	return slices.ContainsFunc(k.Flags(), func(f *kong.Flag) bool { return f.Name == flag && f.Target.Bool() })
}

// perform makes the call of a command, and prints and returns the answer. If no values are given,
// they are the arguments and flags. A command with a question first makes a dry run, prints what
// would change, and asks.
func (f answerFlags) perform(
	p *Program, k *kong.Context, c command, values map[string]any,
) (raw json.RawMessage, err error) {
	if values == nil {
		if values, err = given(p, k.Selected()); err != nil {
			return nil, err
		}
	}
	if c.other != nil && (values[c.with] != nil || isSet(k, c.with) || c.without != "" && values[c.without] == nil) {
		c = *c.other
	}
	only := isSet(k, "dry-run")
	if c.ask != "" && (only || !isSet(k, "yes") && (!c.sure || terminal(p.Stdin))) {
		if !only && !terminal(p.Stdin) {
			return nil, f.confirm(p, k, "")
		}
		dry := *cmp.Or(c.dry, &c)
		values["dry_run"] = true
		if raw, err = f.request(p, c, values); err != nil {
			return nil, err
		}
		if only {
			return raw, f.print(p, dry, raw)
		}
		to := *p
		to.Stdout = p.Stderr // because the final output goes to stdout, which may be a file
		if err := (answerFlags{Output: "table"}).print(&to, dry, raw); err != nil {
			return nil, err
		}
		question, err := dry.say(c.ask, raw)
		if err != nil || question == "" { // there is nothing to do
			return nil, cmp.Or(err, dry.failure(c.nothing, raw))
		}
		if err := f.confirm(p, k, question); err != nil {
			return nil, err
		}
		delete(values, "dry_run")
		if c.asked != nil {
			c.asked(raw)
		}
	}
	if c.rows != "" && strings.HasPrefix(c.route, http.MethodGet) {
		return nil, f.printList(p, c, values)
	}
	if raw, err = f.request(p, c, values); err != nil {
		return nil, err
	}
	return raw, f.finish(p, c, raw)
}

// finish prints an answer, and returns the error that it tells.
func (f answerFlags) finish(p *Program, c command, raw json.RawMessage) error {
	if err := f.print(p, c, raw); err != nil {
		return err
	}
	if err := c.failure(c.failed, raw); err != nil {
		return err
	}
	if err := c.failure(c.partly, raw); err != nil {
		return fmt.Errorf("%w: %w", errPartly, err)
	}
	return nil
}

// failure returns the error that a template says about an answer, if it says anything.
func (c command) failure(source string, raw json.RawMessage) error {
	text, err := c.say(source, raw)
	if err == nil && text != "" {
		err = errors.New(text)
	}
	return err
}

// say returns what a template says about an answer.
func (c command) say(source string, raw json.RawMessage) (string, error) {
	v, err := c.read(raw)
	if err != nil {
		return "", err
	}
	return sentence(source, v.Interface())
}

// request makes the request of a command. An answer without content becomes what was done to what.
func (f answerFlags) request(p *Program, c command, values map[string]any) (raw json.RawMessage, err error) {
	method, path, rest := c.place(values)
	switch {
	case c.answer == nil:
		if err := f.call(p, method, path, nil, nil); err != nil {
			return nil, err
		}
		values[c.name+"d"] = true // removed or revoked
		return api.Marshal(values)
	case method == http.MethodGet || method == http.MethodDelete:
		return raw, f.call(p, method, withQuery(path, rest), nil, &raw)
	}
	f.patient = c.ask != "" // what needs a question may take long
	return raw, f.call(p, method, path, cmp.Or[any](rest[whole], rest), &raw)
}

// place returns the method and the path of a request, and the values that are not in the path.
func (c command) place(values map[string]any) (method, path string, rest map[string]any) {
	method, path, _ = strings.Cut(c.route, " ")
	rest = map[string]any{}
	for name, value := range values {
		if in := "{" + name + "}"; strings.Contains(path, in) {
			path = strings.ReplaceAll(path, in, url.PathEscape(fmt.Sprint(value)))
		} else {
			rest[name] = value
		}
	}
	return method, path, rest
}

// withQuery appends parameters to a path, without those that are empty or false.
func withQuery(path string, values map[string]any) string {
	query := url.Values{}
	for name, value := range values {
		switch value {
		case "", false:
		case true:
			query.Set(name, "1")
		default:
			query.Set(name, fmt.Sprint(value))
		}
	}
	sep := "?"
	if strings.Contains(path, "?") {
		sep = "&"
	}
	return strings.TrimSuffix(path+sep+query.Encode(), sep)
}

// read returns the value of Go that an answer stands for.
func (c command) read(raw json.RawMessage) (reflect.Value, error) {
	return readAs(raw, reflect.TypeOf(cmp.Or[any](c.answer, map[string]any{})))
}

func readAs(raw json.RawMessage, t reflect.Type) (reflect.Value, error) {
	v := reflect.New(t)
	return v.Elem(), api.Unmarshal(raw, v.Interface())
}

// print prints the answer to a request. As CSV, it prints the table, or else the facts.
func (f answerFlags) print(p *Program, c command, raw json.RawMessage) error {
	if f.Output == "json" || f.Output == "jsonl" {
		return printJSON(p.Stdout, raw, f.Output == "json")
	}
	if err := f.printSaying(p, c, raw); err != nil {
		return err
	}
	facts := c.columns
	switch {
	case c.rows != "":
		return f.printPart(p, c, raw)
	case facts == "" && f.Output == "csv":
		facts = columns(strings.Join(slices.Sorted(maps.Keys(membersOf(raw))), " "))
	}
	v, err := c.read(raw)
	if err != nil {
		return f.unreadable(err)
	}
	rows := f.facts(facts, v)
	if len(rows) > 0 || f.Output == "csv" {
		if err := f.printTable(p.Stdout, []string{"FIELD", "VALUE"}, rows); err != nil || f.Output == "csv" {
			return err
		}
	}
	for _, part := range c.parts {
		part.answer = c.answer
		if part.rows == "" {
			err = f.printSaying(p, part, raw)
		} else {
			io.WriteString(p.Stdout, strings.Repeat("\n", min(1, len(rows)))) // between two tables
			err = f.printPart(p, part, raw)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// printSaying prints what a command says about an answer, in sentences for people.
func (f answerFlags) printSaying(p *Program, c command, raw json.RawMessage) error {
	if f.Output != "table" {
		return nil
	}
	v, err := c.read(raw)
	if err != nil {
		return f.unreadable(err)
	}
	return errors.Join(tell(p.Stderr, c.note, v.Interface()), tell(p.Stdout, c.text, v.Interface()))
}

// printPart prints a list within an answer as a table, and no table of an empty list.
func (f answerFlags) printPart(p *Program, c command, raw json.RawMessage) error {
	list, err := c.listIn(raw)
	if err == nil && (len(list) > 0 || f.Output == "csv") {
		return f.printColumns(p, c, list)
	}
	if err == nil && c.none != "" {
		return p.say("%s", c.none)
	}
	return err
}

// printColumns prints objects as a table.
func (f answerFlags) printColumns(p *Program, c command, list []json.RawMessage) error {
	first, _, _ := strings.Cut(c.rows, " ")
	of := memberOf(reflect.Zero(reflect.TypeOf(c.answer)), first).Type().Elem()
	var head []string
	for _, column := range f.list(c.columns) {
		head = append(head, strings.ToUpper(column.head))
	}
	rows := make([][]string, len(list))
	for i, one := range list {
		v, err := readAs(one, of)
		if err != nil {
			return f.unreadable(err)
		}
		for _, column := range f.list(c.columns) {
			rows[i] = append(rows[i], column.shown(memberOf(v, column.member)))
		}
	}
	return f.printTable(p.Stdout, head, rows)
}

// membersOf returns the members of an object of JSON. Any other JSON has none.
func membersOf(raw json.RawMessage) (members map[string]json.RawMessage) {
	api.Unmarshal(raw, &members)
	return members
}

// listIn returns the objects of the lists in an answer. A member that is an object itself counts as
// a list of one.
func (c command) listIn(raw json.RawMessage) (list []json.RawMessage, err error) {
	members := membersOf(raw)
	if members == nil {
		return nil, errors.New("it is no object")
	}
	for _, name := range strings.Fields(c.rows) {
		var part []json.RawMessage
		member := members[name]
		if len(member) > 0 && member[0] == '{' {
			member = slices.Concat([]byte("["), member, []byte("]"))
		}
		if len(member) > 0 {
			if err := api.Unmarshal(member, &part); err != nil {
				return nil, err
			}
		}
		list = append(list, part...)
	}
	return list, nil
}

const apiPage = 500

// printList prints a list of the API. A command with --limit reads the list page by page.
func (f answerFlags) printList(p *Program, c command, values map[string]any) error {
	limit, paged := values["limit"].(int)
	if limit < 0 {
		return fmt.Errorf("%w: --limit is 0 or more", errUsage)
	}
	_, path, values := c.place(values)
	list, got := []json.RawMessage{}, 0
	for {
		if paged {
			values["limit"] = apiPage
			if limit > 0 {
				values["limit"] = min(apiPage, limit-got)
			}
		}
		var raw json.RawMessage
		if err := f.call(p, http.MethodGet, withQuery(path, values), nil, &raw); err != nil {
			return err
		}
		page, err := c.listIn(raw)
		if err != nil {
			return f.unreadable(err)
		}
		list, got = append(list, page...), got+len(page)
		next := plainJSON(membersOf(raw)["next"])
		if last := next == "" || limit > 0 && got >= limit; last || f.Output == "jsonl" {
			// lines of JSON are printed page by page, because the list may be long
			if err := f.printAll(p, c, raw, list); last || err != nil {
				return err
			}
			list = nil
		}
		values["after"] = next
	}
}

// printWhole prints the list in an answer. JSON output is the whole answer.
func (f answerFlags) printWhole(p *Program, c command, answer any) error {
	raw, err := api.Marshal(answer)
	if err != nil || f.Output == "json" {
		return errors.Join(err, printJSON(p.Stdout, json.RawMessage(raw), true))
	}
	list, err := c.listIn(raw)
	return errors.Join(err, f.printAll(p, c, raw, list))
}

// printAll prints the lists of an answer. If it has only one, JSON output is this list.
func (f answerFlags) printAll(p *Program, c command, raw json.RawMessage, list []json.RawMessage) error {
	switch {
	case f.Output == "jsonl":
		for _, one := range list {
			if err := printJSON(p.Stdout, one, false); err != nil {
				return err
			}
		}
		return nil
	case f.Output == "json" && strings.Contains(c.rows, " "):
		return printJSON(p.Stdout, raw, true)
	case f.Output == "json":
		return printJSON(p.Stdout, list, true)
	}
	if err := f.printSaying(p, c, raw); err != nil {
		return err
	}
	if len(list) == 0 {
		p.note("%s", cmp.Or(c.none, "there are no "+strings.Fields(c.rows)[0]))
	}
	return f.printColumns(p, c, list)
}
