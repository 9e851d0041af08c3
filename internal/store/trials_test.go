package store_test

import (
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/internal/store"
)

// trialLetters stores letters that dlo made for a trial, and classifies them.
func trialLetters(t *testing.T, s *store.Store, c *clock, number int64, n int, to deadletter.Trigger) []deadletter.ID {
	t.Helper()
	ids := receive(t, s, window(t, number, deadletter.TrialQueue, n)).New
	var verdicts []deadletter.Classified
	for _, id := range ids {
		verdicts = append(verdicts, deadletter.Classified{
			Letter:       id,
			To:           to,
			Origin:       deadletter.Origin{Broker: "main", VHost: "/", Queue: deadletter.TrialQueue},
			Reason:       "rejected",
			Type:         deadletter.TrialType,
			Summary:      "hello",
			Rule:         deadletter.TrialRule,
			Tried:        true,
			GroupKey:     [32]byte{9},
			GroupTitle:   "g",
			GroupVersion: 1,
			Severity:     deadletter.SeverityPage,
			Channels:     []string{"oncall"},
		})
		if to == deadletter.ClassifiedRetry {
			verdicts[len(verdicts)-1].DueAt = c.at
		}
	}
	if err := s.Classify(t.Context(), verdicts); err != nil {
		t.Fatal(err)
	}
	return ids
}

// TestLettersOfTrialsAreNobodysFailure checks that letters of trials belong to no group, cause no
// notice and do not count in the digest. This must be so in every state. The letters are listed,
// counted and found like all other letters.
func TestLettersOfTrialsAreNobodysFailure(t *testing.T) {
	t.Parallel()
	s, c := open(t)
	ctx := t.Context()
	begun := c.at
	trialLetters(t, s, c, 1, 1, deadletter.ClassifiedDead)
	trialLetters(t, s, c, 2, 1, deadletter.ClassifiedHold)
	settled := trialLetters(t, s, c, 3, 1, deadletter.ClassifiedRetry)[0]
	c.at = c.at.Add(time.Minute)
	due := claim(t, s, c)
	if len(due) != 1 || due[0].Letter.ID != settled {
		t.Fatalf("%+v", due)
	}
	mark(t, s, c, deadletter.OutcomeConfirmed, due...)
	c.at = c.at.Add(24 * time.Hour)
	if n, err := s.SettleQuiet(ctx, due[0].Letter.Origin(), c.at, 10, deadletter.UnknownQueue); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	gone := trialLetters(t, s, c, 4, 1, deadletter.ClassifiedRetry)[0]
	c.at = c.at.Add(time.Minute)
	mark(t, s, c, deadletter.OutcomeConfirmed, claim(t, s, c)...)
	c.at = c.at.Add(time.Hour)
	if n, err := s.EndWatch(ctx, due[0].Letter.Origin(), c.at, 10, deadletter.Unseen{
		Why: "it is gone", Since: c.at,
	}, func(string) []string { return []string{"oncall"} }); n != 1 || err != nil {
		t.Fatal("the watch over a letter whose queue expired: ", n, err)
	}
	if l := letter(t, s, gone); l.State != deadletter.StateHeld || l.Group != 0 || !l.Tried() {
		t.Errorf("%+v", l)
	}

	l := letter(t, s, settled)
	again := deadletter.Read{
		AsOf: l.ChangedAt,
		Classified: deadletter.Classified{
			Letter:       l.ID,
			Origin:       l.Origin(),
			Type:         deadletter.TrialType,
			Summary:      "hi",
			Tried:        true,
			GroupKey:     [32]byte{9},
			GroupVersion: 2,
		},
	}
	if err := s.Read(ctx, []deadletter.Read{again}); err != nil {
		t.Fatal(err)
	}
	if l := letter(t, s, settled); l.Group != 0 || l.Summary != "hi" {
		t.Errorf("read again: %+v", l)
	}

	for q, want := range map[string]int{
		"queue:dlo.try": 4, "state:dead": 1, "state:held": 2, "state:settled": 1,
		"type:dlo.v1.Trial reason:rejected": 4,
	} {
		if n := count(t, s, q); n != want {
			t.Errorf("%s: %d letters, want %d", q, n, want)
		}
		rows, _, _, err := s.Letters(ctx, parse(t, q), deadletter.Page{Limit: 10})
		if err != nil || len(rows) != want {
			t.Errorf("%s: %d letters are listed, %v", q, len(rows), err)
		}
		for i := range rows {
			if !rows[i].Tried() {
				t.Errorf("%s: %+v is not marked", q, rows[i])
			}
		}
	}
	groups, _, err := s.Groups(ctx, query.Query{}, deadletter.GroupPage{Tab: deadletter.TabAll, Limit: 10})
	if err != nil || len(groups) > 0 {
		t.Errorf("groups %+v, %v", groups, err)
	}
	if standing, err := s.Standing(ctx); err != nil || standing.Failing.Groups+standing.Quiet.Groups > 0 {
		t.Errorf("%+v, %v", standing, err)
	}
	digest, err := s.Digest(ctx, begun, c.at.Add(time.Hour), 10)
	if err != nil || digest.Recovered != 0 || len(digest.Lines) > 0 {
		t.Errorf("%+v, %v", digest, err)
	}
	if n, err := s.Trials(ctx); n != 4 || err != nil {
		t.Errorf("%d letters of trials, %v", n, err)
	}
}

// TestLettersOfTrialsGoAfterAnHour checks that the contents of trial letters are erased in every
// state. Other letters are not erased.
func TestLettersOfTrialsGoAfterAnHour(t *testing.T) {
	t.Parallel()
	s, c := open(t)
	ctx := t.Context()
	old := trialLetters(t, s, c, 1, 2, deadletter.ClassifiedDead)
	sending := trialLetters(t, s, c, 2, 1, deadletter.ClassifiedRetry)[0]
	other := receive(t, s, window(t, 3, "sms", 1)).New[0]
	classify(t, s, deadletter.ClassifiedDead, time.Time{})
	operate(t, s, deadletter.VerbPurge, old[1])
	due := claim(t, s, c)
	c.at = c.at.Add(30 * time.Minute)
	young := trialLetters(t, s, c, 4, 1, deadletter.ClassifiedDead)[0]
	c.at = c.at.Add(31 * time.Minute)
	expire := func() {
		t.Helper()
		if err := s.ExpireTrials(ctx, c.at.Add(-deadletter.TrialKept)); err != nil {
			t.Fatal(err)
		}
	}
	states := func(want map[deadletter.ID]deadletter.State) {
		t.Helper()
		for id, state := range want {
			if l := letter(t, s, id); l.State != state || state == deadletter.StatePurged && len(l.Body) > 0 {
				t.Errorf("%s is %s with %d bytes, want %s", id, l.State, len(l.Body), state)
			}
		}
	}
	expire()
	states(map[deadletter.ID]deadletter.State{
		old[0]: deadletter.StatePurged, old[1]: deadletter.StatePurged, sending: deadletter.StatePublishing,
		other: deadletter.StateDead, young: deadletter.StateDead,
	})
	mark(t, s, c, deadletter.OutcomeConfirmed, due...)
	expire()
	expire()
	states(map[deadletter.ID]deadletter.State{
		sending: deadletter.StatePurged, other: deadletter.StateDead, young: deadletter.StateDead,
	})
	if n, err := s.Trials(ctx); n != 4 || err != nil {
		t.Errorf("%d letters of trials, %v", n, err)
	}
	history, err := s.History(ctx, old[0])
	if last := history[len(history)-1]; err != nil || last.Kind != "purged" || last.Actor != "dlo" {
		t.Errorf("%+v, %v", last, err)
	}
}

// TestTheMarkOfATrial checks that a mark is valid only for one message id and one store.
func TestTheMarkOfATrial(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	other, _ := open(t)
	mark := s.TrialMark("a")
	if len(mark) != 32 || mark != s.TrialMark("a") || mark == s.TrialMark("b") || mark == other.TrialMark("a") {
		t.Error(mark, s.TrialMark("b"), other.TrialMark("a"))
	}
}
