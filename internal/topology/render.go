package topology

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Form is a format in which people can get a plan.
type Form string

// These are the forms of a plan.
const (
	FormCommands    Form = "rabbitmqctl"
	FormDefinitions Form = "definitions"
)

// Forms lists all forms.
var Forms = []Form{FormCommands, FormDefinitions}

// Render returns plans in the given form: commands of rabbitmqctl for a shell, or a definitions
// file to import.
func Render(plans []Plan, f Form) string {
	if f == FormDefinitions {
		return definitionsOf(plans)
	}
	var parts []string
	for i := range plans {
		for j := range plans[i].Policies {
			parts = append(parts, command(&plans[i], &plans[i].Policies[j]))
		}
	}
	return strings.Join(parts, "\n")
}

// comment returns a comment line that names the broker and the vhost of a plan.
func (p *Plan) comment() string {
	if p.Broker == "" {
		return "# vhost " + safeName(p.VHost)
	}
	return fmt.Sprintf("# broker %s, vhost %s", safeName(p.Broker), safeName(p.VHost))
}

// command returns the rabbitmqctl command that sets a policy.
func command(at *Plan, p *Planned) string {
	return fmt.Sprintf("%s\nrabbitmqctl set_policy --vhost %s --priority %d --apply-to %s %s \\\n  %s \\\n  %s\n",
		at.comment(), quoted(at.VHost), p.Priority, p.ApplyTo, quoted(p.Name), quoted(p.Pattern),
		quoted(compact(p.Definition)))
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./:=@-]+$`)

// quoted quotes a string, so that a POSIX shell reads it as one word.
func quoted(s string) string {
	if plainWord.MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// compact returns a value as JSON on one line. It escapes only the characters that a terminal or a
// page could hide.
func compact(v any) string { return deadletter.EscapeJSON(strings.TrimSpace(encode(v, ""))) }

// encode returns a value as JSON, with the given indentation. It returns "" for a value that JSON
// cannot express.
func encode(v any, indent string) string {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	if e.Encode(v) != nil {
		return ""
	}
	return text.String()
}

// definitionsOf writes a definitions file. `rabbitmqctl import_definitions` adds it to the existing
// definitions.
func definitionsOf(plans []Plan) string {
	type policy struct {
		VHost string `json:"vhost"`
		Policy
	}
	file := struct {
		Policies []policy `json:"policies"`
	}{[]policy{}}
	for _, plan := range plans {
		for _, p := range plan.Policies {
			file.Policies = append(file.Policies, policy{plan.VHost, p.Policy})
		}
	}
	return encode(file, "  ")
}
