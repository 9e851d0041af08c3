package system

import (
	"fmt"
	"testing"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/testenv"
)

// TestAnOperationSurvivesKills requeues selected letters. It kills dlo after the selection is
// frozen, between two chunks, and while letters are published. dlo must send exactly the selected
// letters, and the counts of the operation must be right.
func TestAnOperationSurvivesKills(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	testenv.Broker(t)
	for _, point := range []string{
		"operation: frozen=1", "operation: advanced=1", "requeue: publishing=2", "requeue: confirmed=2",
	} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			_, url := testenv.VHost(t)
			a := newAudit(t, url, "work", nil)
			p := newChild(t, url, "default: {retry: {delays: []}}\nrequeue: {watch: 1s, in_flight: 100}\n")
			p.Start("")
			p.Draining()
			a.work()
			const letters, chosen = 1300, 1100 // so many that the operation needs more than two chunks
			a.publish(letters, func(i int) (string, string) { return fmt.Sprintf("letter %d", i), fmt.Sprint(i) })
			eventually(t, "all letters dead", func() bool { return p.letters("dead") == letters })
			if code := p.Stop(); code != 0 {
				t.Fatalf("exit code %d", code)
			}
			ids := p.ids(`SELECT id, random FROM letters ORDER BY id LIMIT $1`, chosen)
			p.Start(point)
			p.tryPost("/api/v1/operations", requeueAtOnce(ids))
			p.Crashed("the crash")
			p.Start("")
			eventually(t, "the operation done", func() bool { return p.count("operations", `state = 'done'`) == 1 })
			eventually(t, "the chosen letters back", func() bool { return a.acceptedLetters() == chosen })
			eventually(t, "the chosen letters settled", func() bool { return p.letters("settled") == chosen })
			if n := p.letters("dead"); n != letters-chosen {
				t.Errorf("%d letters stayed dead, want %d", n, letters-chosen)
			}
			_, body := p.get("/api/v1/operations/O-1")
			var op api.Operation
			if err := api.Unmarshal(
				[]byte(body), &op,
			); err != nil || op.Total != chosen || op.Counts["quiet"]+op.Counts["unverified"] != chosen {
				t.Errorf("the operation says %s (%v)", body, err)
			}
			if surplus, duplicates := a.checkStore(p); surplus != 0 || duplicates > 100 {
				t.Errorf("%d rows more than letters, %d duplicates", surplus, duplicates)
			}
		})
	}
}
