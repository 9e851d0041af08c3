package system

import (
	"fmt"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/testenv"
)

// TestRulesAreAppliedToLettersThatWait reloads the rules while letters wait. A dry run must report
// exactly the changes that the following run makes. Another run must change nothing.
func TestRulesAreAppliedToLettersThatWait(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	testenv.Broker(t)
	_, url := testenv.VHost(t)
	const text = "default: {retry: {delays: [%s]}}\n"
	a := newAudit(t, url, "work", nil)
	p := newChild(t, url, fmt.Sprintf(text, "1h"))
	p.Start("")
	p.Draining()
	a.work()
	a.publish(100, func(i int) (string, string) { return fmt.Sprintf("letter %d", i), fmt.Sprint(i) })
	eventually(t, "all wait", func() bool {
		return p.count("letters", `state = 'scheduled' AND rule = 'default'`) == 100
	})
	ctx := t.Context()
	id := p.ids(`SELECT id, random FROM letters ORDER BY id LIMIT 1`)[0]
	p.dlo(ctx, 0, "", "letters", "reschedule", string(id), "--due-at", "48h")
	eventually(t, "one is rescheduled", func() bool { return p.count("letters", `fixed = 1`) == 1 })
	out, _ := p.dlo(ctx, 0, "", "rules", "apply", "--yes")
	if !strings.HasPrefix(out, "0 of 100 scheduled letters changed\n") {
		t.Error(out)
	}

	p.Configure(fmt.Sprintf(text, ""))
	p.Hangup()
	eventually(t, "the rules are loaded", func() bool { return p.events("rules loaded") == 1 })
	const what = "default: retry  default: dead  99"
	out, _ = p.dlo(ctx, 0, "", "rules", "apply", "--dry-run")
	if !strings.Contains(out, "99 of 100 scheduled letters would change") || !strings.Contains(out, what) ||
		!strings.Contains(out, "left alone: 1, someone set its due time") {
		t.Error(out)
	}
	if n := p.letters("scheduled"); n != 100 {
		t.Errorf("a dry run leaves %d waiting", n)
	}
	if _, errs := p.dlo(ctx, 2, "", "rules", "apply"); !strings.Contains(errs, "needs --yes") {
		t.Error(errs)
	}
	out, _ = p.dlo(ctx, 0, "", "rules", "apply", "--yes", "--reason", "the worker is gone")
	if !strings.Contains(out, "99 of 100 scheduled letters changed") || !strings.Contains(out, what) {
		t.Error(out)
	}
	if n := p.letters("dead"); n != 99 {
		t.Errorf("%d letters are dead", n)
	}
	out, _ = p.dlo(ctx, 0, "", "rules", "apply", "--yes", "-q", "queue:work", "-o", "jsonl")
	if !strings.Contains(out, `"looked_at":1,"unchanged":0,"left_alone":{"someone set its due time":1},"changes":[]`) {
		t.Error(out)
	}
	p.dlo(ctx, 2, "", "rules", "apply", "--dry-run", "-q", "state:deaf")
}
