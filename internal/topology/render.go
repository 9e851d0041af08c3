package topology

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Form is a format in which people can get a plan.
type Form string

// These are the forms of a plan.
const (
	FormCommands    Form = "rabbitmqctl"
	FormDefinitions Form = "definitions"
	FormTerraform   Form = "terraform"
	FormOperator    Form = "operator"
)

// Forms lists all forms.
var Forms = []Form{FormCommands, FormDefinitions, FormTerraform, FormOperator}

// Render returns plans in the given form: commands of rabbitmqctl for a shell, a definitions file
// to import, resources of the Terraform provider cyrilgdn/rabbitmq, or Policy resources of the
// RabbitMQ messaging topology operator.
func Render(plans []Plan, f Form) string {
	switch f {
	case FormDefinitions:
		return definitionsOf(plans)
	case FormTerraform:
		return eachPolicy(plans, terraform)
	case FormOperator:
		return eachPolicy(plans, operatorResource)
	default:
		return eachPolicy(plans, command)
	}
}

func eachPolicy(plans []Plan, write func(at *Plan, p *Planned) string) string {
	var parts []string
	for i := range plans {
		for j := range plans[i].Policies {
			parts = append(parts, write(&plans[i], &plans[i].Policies[j]))
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

// label returns a name for a policy. No other policy at any broker or vhost has this name. The
// policy's own name is not enough, because the same queues in two vhosts have policies of the same
// name.
func (p *Plan) label(planned *Planned) string {
	return planned.Name + "-" + hashOf([]string{p.Broker, p.VHost})
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
func compact(v any) string {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return ""
	}
	return deadletter.EscapeJSON(strings.TrimSpace(text.String()))
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
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(file); err != nil {
		return ""
	}
	return text.String()
}

// terraform returns the policy as a resource of cyrilgdn/rabbitmq 1.8. In this resource, the
// definition is a map of strings.
func terraform(at *Plan, p *Planned) string {
	var keys strings.Builder
	for _, key := range slices.Sorted(maps.Keys(p.Definition)) {
		value := p.Definition[key]
		if text, ok := value.(string); ok {
			fmt.Fprintf(&keys, "      %s = %s\n", hcl(key), hcl(text))
		} else {
			fmt.Fprintf(&keys, "      %s = %s\n", hcl(key), p.Definition.json(key))
		}
	}
	return fmt.Sprintf(`%s
resource "rabbitmq_policy" "%s" {
  name  = %s
  vhost = %s
  policy {
    pattern  = %s
    priority = %d
    apply_to = %s
    definition = {
%s    }
  }
}
`, at.comment(), strings.ReplaceAll(at.label(p), "-", "_"), hcl(p.Name), hcl(at.VHost), hcl(p.Pattern), p.Priority,
		hcl(p.ApplyTo), keys.String())
}

// hcl returns a string quoted for HCL, in which ${ and %{ begin templates.
func hcl(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range strings.NewReplacer("${", "$${", "%{", "%%{").Replace(s) {
		switch {
		case r == '"' || r == '\\':
			b.WriteRune('\\')
			b.WriteRune(r)
		case deadletter.Visible(string(r)) != string(r):
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// operatorResource returns the policy as a Policy resource of the messaging topology operator. It
// writes strings as JSON, which is valid YAML.
func operatorResource(at *Plan, p *Planned) string {
	return fmt.Sprintf(`---
%s
apiVersion: rabbitmq.com/v1beta1
kind: Policy
metadata:
  name: %s
spec:
  name: %s
  vhost: %s
  pattern: %s
  applyTo: %s
  priority: %d
  definition: %s
  rabbitmqClusterReference:
    name: my-cluster # the name of your RabbitmqCluster
`, at.comment(), at.label(p), compact(p.Name), compact(at.VHost), compact(p.Pattern), p.ApplyTo, p.Priority,
		compact(p.Definition))
}
