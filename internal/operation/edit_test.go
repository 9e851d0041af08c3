package operation_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/operation"
	"github.com/deadletteroffice/dlo/internal/query"
)

// appendPatch is the function Edit of the tests. It appends the patch to the current body of a
// letter. It cannot edit letters whose body ends with 3.
func appendPatch(l *deadletter.Letter, patch []byte, reveal bool) (deadletter.Revision, error) {
	p, body := l.Current()
	if !reveal {
		return deadletter.Revision{}, errors.New("it is masked")
	}
	if strings.HasSuffix(string(body), "3") {
		return deadletter.Revision{}, errors.New("line 1: there is nothing at /template")
	}
	return deadletter.Revision{
		Letter: l.ID, Number: l.Revision + 1, Properties: p, Body: append(append([]byte{}, body...), patch...),
		Changes: "template",
	}, nil
}

// TestAnEditIsSent checks that an operation sends edited letters like requeued ones. It must first
// send a few of them as a canary, then send the others, and end with a verdict. Each letter must be
// edited only once, even if the process ends in the middle or the edited letter comes back.
func TestAnEditIsSent(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.arrive("sms", 30)
	id := o.start(operation.Request{
		Action:    deadletter.VerbEdit,
		Selection: selection(t, "queue:sms state:dead"),
		Patch:     []byte("+x"),
		Reason:    "the template is gone",
		Pace:      operation.Pace{Hold: ptr(time.Duration(0)), Rate: ptr(5.0), StopAt: ptr(0.0)},
	})
	o.advance(time.Second)
	o.restart()
	o.advance(2 * time.Minute)
	o.broken = true
	o.restart()
	o.advance(20 * time.Minute)
	op := o.wantState(id, deadletter.OperationDone, deadletter.PhaseOver, deadletter.ResultSkipped, 3)
	if back, quiet := op.Counts[deadletter.ResultCameBack], op.Counts[deadletter.ResultQuiet]; back == 0 ||
		quiet == 0 || back+quiet != 27 {
		t.Errorf("%v", op.Counts)
	}
	if len(o.sent) != 27 {
		t.Fatalf("%d letters left", len(o.sent))
	}
	for _, d := range o.sent {
		if text := string(d.Letter.Body); strings.Count(text, "+x") != 1 || d.Attempt.Revision != 1 {
			t.Errorf("%s, revision %d", text, d.Attempt.Revision)
		}
	}
	skipped, _, err := o.store.OperationLetters(t.Context(), id, []deadletter.Result{deadletter.ResultSkipped}, "", 10)
	if err != nil || len(skipped) != 3 || skipped[0].Reason != "line 1: there is nothing at /template" {
		t.Errorf("%+v %v", skipped, err)
	}
	// Now the letters that came back are requeued. They must be sent as edited.
	o.broken, o.sent = false, nil
	o.start(operation.Request{
		Action:    deadletter.VerbRequeue,
		Selection: selection(t, "queue:sms state:dead attempts:>=1"),
		Pace:      operation.Pace{Hold: ptr(time.Duration(0)), Canary: ptr(0)},
	})
	o.advance(time.Minute)
	for _, d := range o.sent {
		if text := string(d.Letter.Body); strings.Count(text, "+x") != 1 || d.Attempt.Revision != 1 {
			t.Errorf("%s, revision %d", text, d.Attempt.Revision)
		}
	}
	if len(o.sent) != op.Counts[deadletter.ResultCameBack] {
		t.Errorf("%d letters left", len(o.sent))
	}
}

func TestAnEditThatCannotBegin(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.arrive("sms", 1)
	for _, c := range []struct {
		want string
		r    operation.Request
	}{
		{"an edit needs patch", operation.Request{Action: deadletter.VerbEdit, Reason: "r"}},
		{"an edit needs patch", operation.Request{Action: deadletter.VerbRequeue, Patch: []byte("[]")}},
		{"needs a reason", operation.Request{Action: deadletter.VerbEdit, Patch: []byte("[]"), Reason: " "}},
		{
			"at most 65536 bytes",
			operation.Request{Action: deadletter.VerbEdit, Patch: make([]byte, 1<<16+1), Reason: "r"},
		},
	} {
		c.r.Selection = selection(t, "queue:sms")
		if _, err := o.desk.Start(
			t.Context(), deadletter.Local, c.r,
		); !errors.Is(err, deadletter.ErrInvalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}

// TestAnEditHasTheRightsOfItsPerson checks that an edit may reveal masked values only if the person
// who started it may do so.
func TestAnEditHasTheRightsOfItsPerson(t *testing.T) {
	t.Parallel()
	o := open(t)
	ids := o.arrive("sms", 2)
	op := deadletter.Operation{
		Action: deadletter.VerbEdit,
		By:     "ann",
		Reason: "r",
		Patch:  []byte("+x"),
		Pace:   deadletter.Pace{Rate: 10},
	}
	o.must(o.store.Freeze(t.Context(), &op, query.Selection{IDs: ids}, 0, anyPlace))
	o.advance(time.Minute)
	o.wantState(op.ID, deadletter.OperationDone, deadletter.PhaseOver, deadletter.ResultSkipped, 2)
	if len(o.sent) != 0 {
		t.Errorf("%+v", o.sent)
	}
}

// TestOneLetterIsEdited edits one letter and sends it. If the request is repeated, it must return
// the same revision and the same requeue. The letter must be sent as edited.
func TestOneLetterIsEdited(t *testing.T) {
	t.Parallel()
	o := open(t)
	id := o.arrive("sms", 1)[0]
	l, err := o.store.Letter(t.Context(), id)
	o.must(err)
	edit := func(change func(*deadletter.Revision)) (deadletter.Revision, deadletter.OperationID, error) {
		r := deadletter.Revision{
			Number: 1, Properties: l.Properties, Body: []byte("shorter"), Changes: "text", Reason: " too long ",
			Key: "k",
		}
		change(&r)
		return o.desk.Edit(t.Context(), deadletter.Local, &l, r, true)
	}
	for want, change := range map[string]func(*deadletter.Revision){
		"say why":           func(r *deadletter.Revision) { r.Reason = "  " },
		"at most 500 bytes": func(r *deadletter.Revision) { r.Reason = strings.Repeat("x", 501) },
		"requeue.max_body":  func(r *deadletter.Revision) { r.Body = make([]byte, 1001) },
	} {
		if _, op, err := edit(change); !errors.Is(err, deadletter.ErrInvalid) || !strings.Contains(err.Error(), want) ||
			op != 0 {
			t.Errorf("%v, want %s", err, want)
		}
	}
	r, op, err := edit(func(*deadletter.Revision) {})
	if err != nil || r.Number != 1 || r.By != "local" || r.Reason != "too long" {
		t.Fatal(r, op, err)
	}
	if again, same, err := edit(func(*deadletter.Revision) {}); err != nil || again.Number != 1 || same != op {
		t.Fatal(again, same, err)
	}
	if _, _, err := edit(func(r *deadletter.Revision) { r.Key = "other" }); !errors.Is(err, deadletter.ErrConflict) {
		t.Fatal(err)
	}
	o.advance(15 * time.Minute)
	o.wantState(op, deadletter.OperationDone, deadletter.PhaseOver, deadletter.ResultQuiet, 1)
	if len(o.sent) != 1 || string(o.sent[0].Letter.Body) != "shorter" {
		t.Errorf("%+v", o.sent)
	}
}

// anyPlace allows an operation for letters of every origin.
func anyPlace(deadletter.Origin) error { return nil }
