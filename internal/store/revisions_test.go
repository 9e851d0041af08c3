package store_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
)

// TestARevisionIsSentInsteadOfTheLetter checks that an edited letter is always sent in its edited
// form, even after a crash. When it comes back, dlo must recognise it by the body that was sent.
// The contents received from RabbitMQ must be kept.
func TestARevisionIsSentInsteadOfTheLetter(t *testing.T) {
	t.Parallel()
	s, c := open(t)
	ctx := t.Context()
	w := window(t, 1, "sms", 1)
	id := receive(t, s, w).New[0]
	classify(t, s, deadletter.ClassifiedDead, time.Time{})
	l := letter(t, s, id)
	edit := func(n int, body, key string) (deadletter.Revision, error) {
		p := l.Properties
		p.Headers = deadletter.Table{"x-edited": body}
		return s.Revise(ctx, deadletter.Revision{
			Letter: id, Number: n, Properties: p, Body: []byte(body), Changes: "text", By: "ann", Reason: "too long",
			Key: key,
		})
	}
	first, err := edit(1, "shorter", "k1")
	if err != nil || first.Number != 1 || !first.At.Equal(c.now()) {
		t.Fatal(first, err)
	}
	if again, err := edit(1, "shorter", "k1"); err != nil || again.Number != 1 || string(again.Body) != "shorter" {
		t.Fatal("the same request is the same revision", again, err)
	}
	if _, err := edit(1, "other", "k1"); !errors.Is(err, deadletter.ErrConflict) ||
		!strings.Contains(err.Error(), "another edit") {
		t.Fatal(err)
	}
	if _, err := edit(1, "mine", "k2"); !errors.Is(err, deadletter.ErrConflict) ||
		!strings.Contains(err.Error(), "revision 1") {
		t.Fatal(err)
	}
	if _, err := edit(1, "another", "k1"); !errors.Is(err, deadletter.ErrConflict) ||
		!strings.Contains(err.Error(), "another edit") {
		t.Fatal("the key stands for two edits", err)
	}
	c.at = c.at.Add(time.Second)
	if _, err := edit(2, "shortest", "k3"); err != nil {
		t.Fatal(err)
	}
	l = letter(t, s, id)
	if p, body := l.Current(); string(body) != "shortest" || p.Headers["x-edited"] != "shortest" ||
		string(l.Body) != string(w.Arrivals[0].Body) || l.Properties.Headers["x-edited"] != nil || l.Revision != 2 {
		t.Fatalf("%+v", l)
	}
	op, due := requeue(t, s, c, id)
	if len(due) != 1 || string(due[0].Letter.Body) != "shortest" ||
		due[0].Letter.Properties.Headers["x-edited"] != "shortest" || due[0].Attempt.Revision != 2 {
		t.Fatalf("%+v", due)
	}
	if _, err := edit(3, "while it is on its way", ""); !errors.Is(err, deadletter.ErrConflict) {
		t.Fatal(err)
	}
	mark(t, s, c, deadletter.OutcomeConfirmed, due...)

	back := window(t, 2, "sms", 2)
	for i, body := range []string{"shortest", string(w.Arrivals[0].Body)} {
		a := &back.Arrivals[i]
		a.Body = []byte(body)
		a.Properties.Headers[deadletter.HeaderID], a.Properties.Headers[deadletter.HeaderToken] = string(id), string(
			due[0].Attempt.Token,
		)
	}
	if r := receive(t, s, back); r.CameBack != 1 || len(r.New) != 1 {
		t.Fatalf("what was sent came back, and the original was not sent: %+v", r)
	}
	if got, err := s.Operation(ctx, op); err != nil || got.Counts[deadletter.ResultCameBack] != 1 {
		t.Error(got.Counts, err)
	}
	var lines []string
	history, err := s.History(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range history {
		lines = append(lines, e.Kind+" "+e.Detail)
	}
	text := strings.Join(lines, "\n")
	for _, want := range []string{
		"edited revision 1 changes text; reason: too long", "edited revision 2 changes text; reason: too long",
		"attempt 1, to the tail of sms, as revision 2", "came back",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if list, err := s.Revisions(ctx, id); err != nil || len(list) != 2 || string(list[0].Body) != "shorter" ||
		list[1].By != "ann" {
		t.Errorf("%+v %v", list, err)
	}
	if a := attempts(t, s, id); len(a) != 1 || a[0].Revision != 2 {
		t.Errorf("%+v", a)
	}
	classify(t, s, deadletter.ClassifiedDead, time.Time{})
	operate(t, s, deadletter.VerbPurge, id)
	if list, err := s.Revisions(ctx, id); err != nil || len(list) != 2 || len(list[0].Body)+len(list[1].Body) != 0 ||
		list[0].Reason != "too long" {
		t.Errorf("a purge leaves %+v %v", list, err)
	}
}

// TestARevisionIsIndexed checks that a search finds a letter by the contents of its revision, even
// if the letter has no type.
func TestARevisionIsIndexed(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	ctx := t.Context()
	id := receive(t, s, window(t, 1, "sms", 1)).New[0]
	classify(t, s, deadletter.ClassifiedDead, time.Time{})
	readAgain := func() { recordRead(t, s, "", deadletter.ReadAsText, 1, nextUnread(t, s, 10)...) }
	if err := s.Reread(ctx, deadletter.Reread{Why: "set a 1"}); err != nil {
		t.Fatal(err)
	}
	readAgain()
	if err := s.Index(ctx, []deadletter.Indexed{
		{Letter: id, AsOf: letter(t, s, id).ChangedAt, Text: "before"},
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Revise(ctx, deadletter.Revision{
		Letter: id, Number: 1, Body: []byte("after"), By: "ann", Reason: "r",
	}); err != nil {
		t.Fatal(err)
	}
	readAgain()
	list, err := s.NextUnindexed(ctx, 10)
	if err != nil || len(list) != 1 || string(list[0].Revised.Body) != "after" {
		t.Errorf("%+v %v", list, err)
	}
}

// TestADoubtfulRevisionIsSentAgain checks that an attempt in doubt is sent again with its original
// revision, even if a person has edited the letter in the meantime.
func TestADoubtfulRevisionIsSentAgain(t *testing.T) {
	t.Parallel()
	p := start(t)
	ctx := t.Context()
	id := receive(t, p.Store, window(t, 1, "sms", 1)).New[0]
	classify(t, p.Store, deadletter.ClassifiedDead, time.Time{})
	if _, err := p.Revise(ctx, deadletter.Revision{
		Letter: id, Number: 1, Body: []byte("edited"), By: "ann", Reason: "r",
	}); err != nil {
		t.Fatal(err)
	}
	_, due := requeue(t, p.Store, p.c, id)
	p.restart(t)
	again, err := p.ClaimDoubtful(ctx, "main", p.c.now(), 10)
	if err != nil || len(again) != 1 || string(again[0].Letter.Body) != "edited" || again[0].Attempt.Revision != 1 ||
		again[0].Attempt.Token != due[0].Attempt.Token {
		t.Fatalf("%+v %v", again, err)
	}
}

func TestLettersWithLargeRevisionsAreReadAFewAtATime(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	ctx := t.Context()
	ids := receive(t, s, window(t, 1, "sms", 5)).New
	classify(t, s, deadletter.ClassifiedDead, time.Time{})
	for _, id := range ids {
		if _, err := s.Revise(ctx, deadletter.Revision{
			Letter: id, Number: 1, Body: make([]byte, 10<<20), By: "ann", Reason: "r",
		}); err != nil {
			t.Fatal(err)
		}
	}
	op := deadletter.Operation{
		Action: deadletter.VerbEdit,
		By:     "ann",
		Reason: "r",
		Patch:  []byte(`[]`),
		Pace:   deadletter.Pace{Rate: 10},
	}
	if err := s.Freeze(ctx, &op, query.Selection{IDs: ids}, 0, anyPlace); err != nil {
		t.Fatal(err)
	}
	if _, err := s.LayOut(ctx, op.ID); err != nil {
		t.Fatal(err)
	}
	pending, err := s.PendingLetters(ctx, op.ID, 10)
	if err != nil || len(pending) != 3 {
		t.Errorf("%d letters are pending: %v", len(pending), err)
	}
	if list := nextUnread(t, s, 10); len(list) != 3 {
		t.Errorf("%d letters are read again", len(list))
	}
	if list, err := s.NextUnindexed(ctx, 10); err != nil || len(list) != 3 {
		t.Errorf("%d letters are indexed: %v", len(list), err)
	}
}

// TestAnEditAsAnOperation checks an operation that edits many letters. It must add a revision to
// each letter in the same transaction that releases the letter. It must skip letters that cannot be
// edited. Letters that changed in the meantime must stay pending until they are read again.
func TestAnEditAsAnOperation(t *testing.T) {
	t.Parallel()
	s, c := open(t)
	ctx := t.Context()
	ids := receive(t, s, window(t, 1, "sms", 3)).New
	classify(t, s, deadletter.ClassifiedDead, time.Time{})
	op := deadletter.Operation{
		Action: deadletter.VerbEdit,
		By:     "ann",
		Reason: "template is gone",
		Patch:  []byte(`[{"op":"remove","path":"/a"}]`),
		Pace:   deadletter.Pace{Rate: 10},
	}
	if err := s.Freeze(ctx, &op, query.Selection{IDs: ids}, 0, anyPlace); err != nil {
		t.Fatal(err)
	}
	if _, err := s.LayOut(ctx, op.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Advance(ctx, op.ID, 10, nil); !errors.Is(err, deadletter.ErrInvalid) {
		t.Fatal("it released letters as they were", err)
	}
	letters, err := s.PendingLetters(ctx, op.ID, 10)
	if err != nil || len(letters) != 3 || letters[0].ID != ids[0] || len(letters[0].Body) == 0 {
		t.Fatal(letters, err)
	}
	edits := func(letters []deadletter.Letter) (list []deadletter.Edited) {
		for _, l := range letters {
			e := deadletter.Edited{
				AsOf: l.ChangedAt,
				Revision: deadletter.Revision{
					Letter: l.ID, Number: l.Revision + 1, Body: append([]byte("edited "), l.Body...), Changes: "a",
				},
			}
			if l.ID == ids[1] {
				e.Refusal = "there is nothing at /a"
			}
			list = append(list, e)
		}
		return list
	}
	if _, err := s.Revise(ctx, deadletter.Revision{
		Letter: ids[2], Number: 1, Body: []byte("by bob"), By: "bob", Reason: "r",
	}); !errors.Is(err, deadletter.ErrConflict) || !strings.Contains(err.Error(), "O-1 has it") {
		t.Fatal(err)
	}
	c.at = c.at.Add(time.Second)
	if _, err := s.AddPick(ctx, deadletter.Pick{Letter: ids[2], Binding: deadletter.Binding{Type: "acme.New"}, By: "bob"}, nil); err != nil {
		t.Fatal(err)
	}
	recordRead(t, s, "acme.New", deadletter.ReadByPick, 7, nextUnread(t, s, 10)...)
	if n, err := s.Revised(ctx, op.ID, edits(letters), nil); err != nil || n != 2 {
		t.Fatal(n, err)
	}
	if letters, err = s.PendingLetters(
		ctx, op.ID, 10,
	); err != nil || len(letters) != 1 || letters[0].ID != ids[2] || letters[0].Type != "acme.New" {
		t.Fatal(letters, err)
	}
	if n, err := s.Revised(ctx, op.ID, edits(letters), nil); err != nil || n != 1 {
		t.Fatal(n, err)
	}
	due, err := s.ClaimDue(ctx, "main", c.now(), 10, deadletter.Allowance{
		Allow: func(deadletter.Origin, string) (int, bool) { return 0, false },
	})
	if err != nil || len(due) != 2 || string(due[0].Letter.Body) != "edited body 0 of window 1" ||
		due[1].Attempt.Revision != 1 {
		t.Fatalf("%+v %v", due, err)
	}
	got, err := s.Operation(ctx, op.ID)
	if err != nil || got.Counts[deadletter.ResultSkipped] != 1 || string(got.Patch) != string(op.Patch) {
		t.Errorf("%+v %v", got, err)
	}
	if list, err := s.Revisions(
		ctx, ids[0],
	); err != nil || len(list) != 1 || list[0].By != "ann" || list[0].Reason != "template is gone" ||
		list[0].Operation != op.ID {
		t.Errorf("%+v %v", list, err)
	}
}
