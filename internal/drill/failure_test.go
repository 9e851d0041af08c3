package drill

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// TestEveryProblemHasADrill checks that each kind of problem has a drill, or a reason why it has
// none.
func TestEveryProblemHasADrill(t *testing.T) {
	t.Parallel()
	for _, kind := range deadletter.ProblemKinds {
		made := slices.ContainsFunc(failures, func(f Failure) bool { return f.wants.kind == kind })
		reason := slices.ContainsFunc(NotMade, func(n struct {
			Kind deadletter.ProblemKind
			Why  string
		},
		) bool {
			return n.Kind == kind && n.Why != ""
		})
		if made == reason {
			t.Errorf("%s: made %v, a reason why not %v", kind, made, reason)
		}
	}
}

// TestEveryFailureIsWhole checks that each failure has a name, a description and an expected
// report.
func TestEveryFailureIsWhole(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, f := range failures {
		told := f.wants.kind != "" && f.wants.severity != "" || f.wants.group != "" || f.wants.quiet ||
			f.wants.exit != 0
		if f.Name == "" || seen[f.Name] || f.Does == "" || f.make == nil || !told || f.wave > lastWave ||
			f.rule != "" && f.work == "" {
			t.Errorf("%+v", f)
		}
		seen[f.Name] = true
	}
}

func TestAFailureIsChosenByItsName(t *testing.T) {
	t.Parallel()
	list, err := failuresNamed([]string{"disk", "binding", "disk"})
	if err != nil || len(list) != 2 || list[0].Name != "binding" || list[1].Name != "disk" {
		t.Errorf("%v %+v", err, list)
	}
	if _, err := failuresNamed([]string{"fire"}); err == nil {
		t.Error("there is no such failure")
	}
}

// TestTheManualOfTheDrillHolds checks docs/drill.md. It must list every failure with its problem
// and its description. It must also list the reason for each problem without a drill.
func TestTheManualOfTheDrillHolds(t *testing.T) {
	t.Parallel()
	manual, err := os.ReadFile("../../docs/drill.md")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, f := range failures {
		kind := "-"
		if f.wants.kind != "" {
			kind = "`" + string(f.wants.kind) + "`"
		}
		want = append(want, fmt.Sprintf("| `%s` | %s | %s |\n", f.Name, kind, f.Does))
	}
	for _, n := range NotMade {
		want = append(want, fmt.Sprintf("| `%s` | %s |\n", n.Kind, n.Why))
	}
	for _, line := range want {
		if !strings.Contains(string(manual), line) {
			t.Errorf("docs/drill.md does not have: %s", line)
		}
	}
	if rows := strings.Count(string(manual), "\n| `"); rows != len(want) {
		t.Errorf("docs/drill.md has %d rows, and there are %d", rows, len(want))
	}
}
