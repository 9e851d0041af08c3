package cli

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/template"
	"text/template/parse"
	"time"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/rules"
)

//go:embed texts.tmpl
var textsFile string

// texts returns the texts of texts.tmpl.
var texts = sync.OnceValue(func() *template.Template {
	all := template.Must(template.New("").Funcs(functions).Parse(textsFile))
	for _, t := range all.Templates() {
		escape(t.Root)
	}
	return all
})

// functions are what the texts can call.
var functions = template.FuncMap{
	"age":      age,
	"clock":    func(at time.Time) string { return timeIn("2006-01-02 15:04 UTC", at.UTC()) },
	"hour":     func(at time.Time) string { return timeIn("15:04:05", at.Local()) },
	"rfc3339":  func(at time.Time) string { return timeIn(time.RFC3339, at.UTC()) },
	"until":    until,
	"cut":      func(n int, text string) string { return deadletter.Cut(strings.TrimSpace(text), n) },
	"lines":    func(text string) []string { return strings.Split(strings.TrimSuffix(text, "\n"), "\n") },
	"more":     func(shown, all int) int { return max(0, all-shown) },
	"plural":   deadletter.Plural[int],
	"percent":  func(share float64) string { return strconv.FormatFloat(share*100, 'g', 4, 64) },
	"states":   func() []deadletter.State { return deadletter.States },
	"results":  func() []deadletter.Result { return deadletter.Results },
	"planned":  planned,
	"first":    func(canary int, plan api.Plan) int { return max(0, min(canary, planned(plan))) },
	"labels":   planLabels,
	"changed":  changed,
	"seconds":  seconds,
	"policies": policyCount,
	"visible":  visible,
	"whole":    func(text string) block { return block(text) },
	"indent":   indent,
}

// escape makes visible what a part of a template prints, because a letter may contain anything.
func escape(node parse.Node) {
	switch n := node.(type) {
	case *parse.ListNode:
		for i := 0; n != nil && i < len(n.Nodes); i++ {
			escape(n.Nodes[i])
		}
	case *parse.IfNode:
		escape(n.List)
		escape(n.ElseList)
	case *parse.WithNode:
		escape(n.List)
		escape(n.ElseList)
	case *parse.RangeNode:
		escape(n.List)
		escape(n.ElseList)
	case *parse.ActionNode:
		if len(n.Pipe.Decl) == 0 {
			name := []parse.Node{parse.NewIdentifier("visible")}
			n.Pipe.Cmds = append(n.Pipe.Cmds, &parse.CommandNode{NodeType: parse.NodeCommand, Args: name})
		}
	}
}

// textOf returns the named text about a value.
func textOf(name string, about any) (string, error) { return execute(texts().Lookup(name), about) }

// sentence returns the text that a command itself has about a value.
func sentence(source string, about any) (string, error) {
	all, err := texts().Clone()
	if err != nil {
		return "", err
	}
	t, err := all.New("sentence").Parse(source)
	if err != nil {
		return "", err
	}
	escape(t.Root)
	return execute(t, about)
}

// tell prints the text that a command has about a value, if there is any.
func tell(out io.Writer, source string, about any) error {
	text, err := sentence(source, about)
	if err == nil && text != "" {
		_, err = fmt.Fprintln(out, text)
	}
	return err
}

func execute(t *template.Template, about any) (string, error) {
	var b strings.Builder
	err := t.Execute(&b, about)
	return strings.TrimRight(b.String(), " \n"), err
}

// block is a text whose line breaks are shown as such.
type block string

// indent returns JSON of a letter on several lines.
func indent(text json.RawMessage) (block, error) {
	indented, err := json.MarshalIndent(text, "", "  ")
	return block(indented), err
}

func visible(v any) string {
	if text, ok := v.(block); ok {
		return deadletter.VisibleLines(string(text))
	}
	if of := reflect.ValueOf(v); of.Kind() == reflect.Pointer && !of.IsNil() {
		v = of.Elem().Interface()
	}
	return deadletter.Visible(fmt.Sprint(v))
}

func timeIn(layout string, at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.Format(layout)
}

// seconds returns how long after the beginning a time was, or "" if it was not yet.
func seconds(began, at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return fmt.Sprintf("%5.1f", at.Sub(began).Seconds())
}

// until returns how long it is until a time, or "" if that is over.
func until(at time.Time) string {
	if left := time.Until(at); left > 0 {
		return left.Round(time.Second).String()
	}
	return ""
}

// age describes how far a time is from now, for example "5 min ago". It returns "" for no time.
func age(at time.Time) string {
	switch d := time.Since(at); {
	case at.IsZero():
		return ""
	case d < 0:
		return "in " + roughDuration(-d)
	case d < time.Second:
		return "now"
	default:
		return roughDuration(d) + " ago"
	}
}

func roughDuration(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%d d", int(d.Hours()/24))
}

// planned returns the number of letters on which an operation would act.
func planned(a api.Plan) int {
	if a.First > 0 {
		return min(a.First, a.Eligible)
	}
	return a.Eligible
}

// labelsOf returns the labels of brokers, each once.
func labelsOf[T any](list []T, label func(T) string) (labels []string) {
	for _, one := range list {
		if text := label(one); text != "" && !slices.Contains(labels, text) {
			labels = append(labels, text)
		}
	}
	return labels
}

func planLabels(a api.Plan) []string {
	return labelsOf(a.Queues, func(q api.PlanQueue) string { return q.Label })
}

// changed returns the number of letters that rules change.
func changed(changes []rules.AppliedChange) (n int) {
	for _, c := range changes {
		n += c.Letters
	}
	return n
}

func policyCount(plans api.Plans) (n int) {
	for _, plan := range plans.Plans {
		n += len(plan.Policies)
	}
	return n
}
