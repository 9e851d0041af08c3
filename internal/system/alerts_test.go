package system

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"go.yaml.in/yaml/v3"
)

type alertRule struct {
	Alert, Expr, For    string
	Labels, Annotations map[string]string
}

func alertRules(t *testing.T) []alertRule {
	t.Helper()
	text, err := os.ReadFile(monitoring + "alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Groups []struct{ Rules []alertRule } }
	if err := yaml.Unmarshal(text, &file); err != nil || len(file.Groups) != 1 {
		t.Fatal(err, len(file.Groups))
	}
	return file.Groups[0].Rules
}

// TestEachProblemHasAnAlert checks that the manual lists each kind of problem. For each severity of
// a problem, the manual must name the alerts that fire.
func TestEachProblemHasAnAlert(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(monitoring + "README.md")
	if err != nil {
		t.Fatal(err)
	}
	fires := func(expr, kind, severity string) bool {
		selector := regexp.MustCompile(`^dlo_problems\{(.*)\} > 0$`).FindStringSubmatch(expr)
		if selector == nil {
			return false
		}
		for _, m := range regexp.MustCompile(`(\w+)(=~|!~|=)"([^"]*)"`).FindAllStringSubmatch(selector[1], -1) {
			value := map[string]string{"kind": kind, "severity": severity}[m[1]]
			if regexp.MustCompile("^(?:"+m[3]+")$").MatchString(value) == (m[2] == "!~") {
				return false
			}
		}
		return true
	}
	// these two alerts use a metric other than dlo_problems
	of := map[string]string{"broker_away": "DloBrokerDown", "inbox_not_read": "DloInboxNotDrained"}
	row := regexp.MustCompile("(?m)^\\| `(\\w+)` \\| ([a-z, ]+) \\| ([`\\w, ]+) \\| .* \\|$")
	told := map[deadletter.ProblemKind]bool{}
	_, section, _ := strings.Cut(string(text), "\n## Problems\n")
	for _, m := range row.FindAllStringSubmatch(section, -1) {
		told[deadletter.ProblemKind(m[1])] = true
		var want []string
		for _, severity := range strings.Split(m[2], ", ") {
			for _, a := range alertRules(t) {
				if a.Alert == of[m[1]] || fires(a.Expr, m[1], severity) {
					want = append(want, "`"+a.Alert+"`")
				}
			}
		}
		if got := strings.Join(want, ", "); got != m[3] {
			t.Errorf("for %s, %s, fires %s, and the manual has %s", m[1], m[2], got, m[3])
		}
	}
	for _, kind := range deadletter.ProblemKinds {
		if !told[kind] {
			t.Errorf("the manual has no problem %s with its alerts", kind)
		}
	}
}
