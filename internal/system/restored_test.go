package system

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/testenv"
)

// restoring is a dlo whose store is copied and later restored. It has letters that are due for a
// retry.
type restoring struct {
	*child
	a *audit
}

// controlRetries pauses or resumes the retries of the audit's queue. The parameter "verb" is
// "pause" or "resume".
func (r *restoring) controlRetries(verb string) {
	r.t.Helper()
	if code, body := r.post("/api/v1/queues/"+verb, map[string]any{"queue": r.a.queue}); code != http.StatusOK {
		r.t.Fatalf("%s: %d %s", verb, code, body)
	}
}

func (r *restoring) publish(from, n int) {
	r.t.Helper()
	r.a.publish(n, func(i int) (string, string) { return fmt.Sprint("letter ", from+i), fmt.Sprint(from + i) })
}

// notePath returns the path of the file next to the store in which dlo records the progress of the
// store.
func (r *restoring) notePath() string {
	r.t.Helper()
	found, err := filepath.Glob(r.store + ".progress-????????")
	if err != nil || len(found) != 1 {
		r.t.Fatalf("beside the store: %q, %v", found, err)
	}
	return found[0]
}

// expectNothingSent checks for two seconds that dlo sends no further copies.
func (r *restoring) expectNothingSent(copies int) {
	r.t.Helper()
	defer logWait(r.t, "nothing is sent")()
	for range 20 {
		time.Sleep(100 * time.Millisecond)
		if n := r.a.copies(); n != copies {
			r.t.Fatalf("%d letters were sent where nobody let them", n-copies)
		}
	}
}

// deleteMark deletes from the broker the mark of the store, which is the record of the store's
// progress.
func (r *restoring) deleteMark() {
	r.t.Helper()
	name := strings.TrimPrefix(filepath.Base(r.notePath()), filepath.Base(r.store)+".progress-")
	ch := r.a.channel()
	defer ch.Close()
	var store deadletter.Progress
	text, err := os.ReadFile(r.notePath())
	if err == nil {
		store, err = deadletter.ParseProgress(text)
	}
	if err != nil || !strings.HasPrefix(store.Store, name) {
		r.t.Fatalf("%q: %v", text, err)
	}
	if n, err := ch.QueueDelete(deadletter.MarkQueue(store.Store), false, false, false); err != nil || n != 1 {
		r.t.Fatalf("the mark had %d messages: %v", n, err)
	}
}

// TestARestoredStore copies the file of a store, sends 300 letters, and restores the copy. Both the
// note next to the store and the mark in the broker can prove the restore. With either proof, dlo
// must report how many letters are missing, and must not send any of the 300 letters again
// automatically. A letter that people release must arrive under the token of its first copy.
//
// If both proofs are missing, letters must wait until people say that the store is current. If only
// the mark is missing, the broker was replaced, and dlo must continue.
func TestARestoredStore(t *testing.T) {
	t.Parallel()
	testenv.Broker(t)
	const before, after = 300, 20
	_, address := testenv.VHost(t)
	a := newAudit(t, address, "orders", nil)
	r := &restoring{newChild(t, address, "default: {retry: {delays: [100ms]}}\nrequeue: {rate: 0, watch: 1h}\n"), a}
	r.copied = true
	r.Start("")
	r.Draining()
	a.work()
	r.publish(0, 1)
	eventually(t, "the first letter is back", func() bool { return a.copies() == 1 })
	r.controlRetries("pause")
	r.publish(1, before)
	eventually(t, "they wait", func() bool { return r.finds("state:scheduled") == before })
	r.Stop()
	copied, err := os.ReadFile(r.store)
	if err != nil {
		t.Fatal(err)
	}
	r.Start("")
	r.controlRetries("resume")
	eventually(t, "they arrive", func() bool { return a.copies() == 1+before })
	r.publish(1+before, after)
	const sent = 1 + before + after
	eventually(t, "the later ones arrive", func() bool { return a.copies() == sent })
	eventually(t, "they are recorded", func() bool { return r.finds("state:requeued") == sent })
	r.Stop()
	current, err := os.ReadFile(r.store)
	if err != nil {
		t.Fatal(err)
	}
	note, err := os.ReadFile(r.notePath())
	if err != nil {
		t.Fatal(err)
	}

	for _, beside := range []bool{true, false} {
		if err := os.WriteFile(r.store, copied, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(r.notePath(), note, 0o600); err != nil {
			t.Fatal(err)
		}
		if !beside {
			if err := os.Remove(r.notePath()); err != nil {
				t.Fatal(err)
			}
		}
		r.Start("")
		p := r.problem(deadletter.ProblemStoreRestored)
		if p.Severity != "page" || !strings.Contains(
			p.Text, fmt.Sprintf("%d letters were received that are not in this copy", after),
		) || !strings.Contains(p.Text, fmt.Sprintf("since then, are held: %d.", 1+before)) {
			t.Errorf("%+v", p)
		}
		for _, page := range []string{"/", "/letters?q=doubt:restored"} {
			if _, text := r.get(page); !strings.Contains(text, p.Title) || !strings.Contains(text, "doubt:restored") ||
				strings.Contains(text, "Nothing needs a person") {
				t.Errorf("%s does not say it", page)
			}
		}
		r.controlRetries("resume")
		r.expectNothingSent(sent)
		if n := r.finds("state:held doubt:restored"); n != 1+before {
			t.Errorf("%d letters are held", n)
		}
		if code, plan := r.post("/api/v1/operations", map[string]any{
			"action": "requeue", "q": "state:held", "dry_run": true,
		}); code != http.StatusOK || !strings.Contains(plan, `"eligible":0`) ||
			!strings.Contains(plan, deadletter.WhyRestored) {
			t.Errorf("%d %s", code, plan)
		}
		if beside {
			r.Stop()
		}
	}
	tokens := a.acceptedLetters()
	if op := r.awaitOver(r.startOperation(map[string]any{
		"action": "release", "q": "state:held doubt:restored", "reason": "their work was not done",
	})); op.Counts["done"] != 1+before {
		t.Errorf("%+v", op)
	}
	// The first letter had already been requeued when the store was copied. It therefore gets another
	// attempt.
	eventually(t, "they arrive once more", func() bool { return a.copies() == sent+1+before })
	if n := a.acceptedLetters(); n != tokens+1 {
		t.Errorf("%d letters went under another token than their first copy", n-tokens-1)
	}
	eventually(t, "they are recorded", func() bool { return r.finds("state:requeued") == 1+before })
	r.Stop()

	copies := a.copies()
	if err := os.WriteFile(r.store, current, 0o600); err != nil {
		t.Fatal(err)
	}
	r.deleteMark()
	if err := os.Remove(r.notePath()); err != nil {
		t.Fatal(err)
	}
	r.Start("")
	p := r.problem(deadletter.ProblemStoreUnproved)
	if _, text := r.get("/"); p.Severity != "page" || !strings.Contains(text, p.Title) ||
		!strings.Contains(text, "It is current: send what is due") {
		t.Errorf("%+v", p)
	}
	r.publish(sent, 5)
	eventually(t, "more wait", func() bool { return r.finds("state:scheduled") == 5 })
	r.expectNothingSent(copies)
	r.Stop()
	r.Start("") // dlo must ask again after a restart
	r.problem(deadletter.ProblemStoreUnproved)
	if code, body := r.post("/api/v1/store/accept", nil); code != http.StatusNoContent {
		t.Errorf("%d %s", code, body)
	}
	eventually(t, "what is due is sent", func() bool { return a.copies() == copies+5 })
	eventually(t, "it is recorded", func() bool { return r.finds("state:scheduled") == 0 })
	r.Stop()

	r.deleteMark()
	r.Start("")
	r.publish(sent+5, 5)
	eventually(t, "the store goes on", func() bool { return a.copies() == copies+10 })
	if p := r.problem(deadletter.ProblemBrokerReplaced); p.Severity != "notify" {
		t.Errorf("%+v", p)
	}
	eventually(t, "it is recorded", func() bool { return r.finds("state:scheduled,publishing") == 0 })
	r.Stop()
	r.deleteMark()
	if err := os.Remove(r.notePath()); err != nil {
		t.Fatal(err)
	}
	r.flags = []string{"--accept-store"}
	r.Start("")
	r.publish(sent+10, 5)
	eventually(t, "--accept-store lets it go on", func() bool { return a.copies() == copies+15 })
}
