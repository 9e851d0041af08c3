package store_test

import (
	"context"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/storetest"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/store"
)

// process is a store that can be closed and opened again, like a process that dies.
type process struct {
	*store.Store
	path string
	c    *clock
}

func start(t *testing.T) *process {
	t.Helper()
	p := &process{path: storetest.File(t), c: &clock{time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)}}
	p.restart(t)
	t.Cleanup(func() { p.Close() })
	return p
}

func (p *process) restart(t *testing.T) {
	t.Helper()
	if p.Store != nil {
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
	}
	p.c.at = p.c.at.Add(time.Second)
	s, err := store.Open(context.Background(), p.path, store.Options{Now: p.c.now})
	if err != nil {
		t.Fatal(err)
	}
	p.Store = s
}

func (p *process) claim(t *testing.T, n int) []deadletter.Letter {
	t.Helper()
	letters, err := p.NextReceived(context.Background(), n)
	if err != nil {
		t.Fatal(err)
	}
	return letters
}

// recordDead records the verdict "dead" for letters.
func (p *process) recordDead(t *testing.T, letters ...deadletter.Letter) {
	t.Helper()
	var verdicts []deadletter.Classified
	for _, l := range letters {
		verdicts = append(verdicts, deadletter.Classified{
			Letter:       l.ID,
			To:           deadletter.ClassifiedDead,
			GroupKey:     [32]byte{1},
			GroupTitle:   "g",
			GroupVersion: 1,
			Severity:     deadletter.SeverityDigest,
		})
	}
	if err := p.Classify(context.Background(), verdicts); err != nil {
		t.Fatal(err)
	}
}

// recordReading records that a letter is being read. If the id is "", it records that no letter is
// being read.
func (p *process) recordReading(t *testing.T, id deadletter.ID) {
	t.Helper()
	if err := p.Reading(id); err != nil {
		t.Fatal(err)
	}
}

// TestALetterThatKillsTheClassifier checks a letter that kills the process when it is read. A crash
// must be added to this letter and to no other one. The letter must then be read again, alone and
// after all other letters. After MaxCrashes crashes, it must count as undecodable.
func TestALetterThatKillsTheClassifier(t *testing.T) {
	t.Parallel()
	p := start(t)
	ids := receive(t, p.Store, window(t, 1, "sms", 3)).New
	bad := ids[1]
	if got := p.claim(t, 10); len(got) != 3 || got[0].ID != ids[0] || len(got[0].Body) == 0 || got[0].Crashes != 0 {
		t.Fatalf("%+v", got)
	}
	p.recordReading(t, ids[0])
	p.recordReading(t, "")
	p.recordReading(t, bad)
	p.restart(t)

	got := p.claim(t, 10)
	if len(got) != 2 || got[0].ID != ids[0] || got[1].ID != ids[2] || got[0].Crashes != 0 || got[1].Crashes != 0 {
		t.Fatalf("%+v", got)
	}
	p.recordDead(t, got...)
	for crashes := 1; crashes < deadletter.MaxCrashes; crashes++ {
		if got = p.claim(
			t, 10,
		); len(got) != 1 || got[0].ID != bad || got[0].Crashes != crashes || got[0].Undecodable() {
			t.Fatalf("%+v", got)
		}
		p.recordReading(t, bad)
		p.restart(t)
	}

	if got = p.claim(t, 10); len(got) != 1 || got[0].ID != bad || !got[0].Undecodable() {
		t.Fatalf("%+v", got)
	}
	p.recordDead(t, got...)
	if l := letter(t, p.Store, bad); l.State != deadletter.StateDead || !l.Undecodable() {
		t.Errorf("%s after %d crashes: it must never be decoded again", l.State, l.Crashes)
	}
	if got = p.claim(t, 10); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}

// TestAKillBetweenTwoReadingsChargesNobody checks that dlo adds no crash to a letter if it dies
// between two readings. The letter may have been fetched but not yet read, or it may already have
// been read.
func TestAKillBetweenTwoReadingsChargesNobody(t *testing.T) {
	t.Parallel()
	p := start(t)
	ids := receive(t, p.Store, window(t, 1, "sms", 2)).New
	for range 20 {
		for _, l := range p.claim(t, 10) {
			p.recordReading(t, l.ID)
			p.recordReading(t, "")
		}
		p.restart(t)
	}
	if got := p.claim(t, 10); len(got) != 2 || got[0].Crashes != 0 || got[1].Crashes != 0 {
		t.Errorf("%+v", got)
	}
	p.recordReading(t, ids[0])
	p.restart(t)
	if l := letter(t, p.Store, ids[0]); l.Crashes != 1 {
		t.Errorf("%d crashes", l.Crashes)
	}
	p.restart(t) // one kill adds one crash
	if l := letter(t, p.Store, ids[0]); l.Crashes != 1 {
		t.Errorf("%d crashes", l.Crashes)
	}
	p.recordDead(t, p.claim(t, 10)...) // the other letter
	p.recordReading(t, ids[0])
	p.recordDead(t, p.claim(t, 10)...)
	if l := letter(t, p.Store, ids[0]); l.Crashes != 0 {
		t.Errorf("an innocent letter keeps %d crashes", l.Crashes)
	}
	p.restart(t) // the letter whose verdict was recorded
	if l := letter(t, p.Store, ids[0]); l.Crashes != 0 {
		t.Errorf("it was read, and has %d crashes", l.Crashes)
	}
}

// TestALetterWithCrashesComesLast checks the order of received letters, which are normally returned
// oldest first. A letter that has crashed the process must be returned alone, when no other letters
// are left, and not while the verdicts of others are being recorded.
func TestALetterWithCrashesComesLast(t *testing.T) {
	t.Parallel()
	p := start(t)
	first := receive(t, p.Store, window(t, 1, "sms", 2)).New
	if _, err := rawDB(t, p.path).Exec(`UPDATE letters SET crashes = 1 WHERE id = (SELECT max(id)
		FROM letters)`); err != nil {
		t.Fatal(err)
	}
	last := receive(t, p.Store, window(t, 2, "sms", 2)).New
	for i, want := range [][]deadletter.ID{{first[0], last[0], last[1]}, {first[1]}} {
		got := p.claim(t, 10)
		if len(got) != len(want) {
			t.Fatalf("batch %d has %d letters, want %d", i, len(got), len(want))
		}
		for j := range want {
			if got[j].ID != want[j] {
				t.Errorf("batch %d: %s, want %s", i, got[j].ID, want[j])
			}
		}
		rest, err := p.NextReceived(t.Context(), 10, want...)
		newest, err2 := p.NewestReceived(t.Context(), 10, want[1:]...)
		if err != nil || err2 != nil || len(rest) != 0 || len(newest) != 1 || newest[0].ID != want[0] {
			t.Errorf("batch %d: while it is recorded: %v, %v, %v, %v", i, rest, err, newest, err2)
		}
		p.recordDead(t, got...)
	}
}

func TestAVerdictOnALetterThatMovedOnIsIgnored(t *testing.T) {
	t.Parallel()
	p := start(t)
	receive(t, p.Store, window(t, 1, "sms", 1))
	l := p.claim(t, 1)
	p.recordDead(t, l...)
	operate(t, p.Store, deadletter.VerbDiscard, l[0].ID)
	p.recordDead(t, l...)
	if got := letter(t, p.Store, l[0].ID); got.State != deadletter.StateDiscarded {
		t.Error(got.State)
	}
}

// TestABatchIsBoundedByItsBodies checks that the total size of the bodies in a batch is limited. A
// single body that exceeds the limit must be read alone.
func TestABatchIsBoundedByItsBodies(t *testing.T) {
	t.Parallel()
	p := start(t)
	w := window(t, 1, "sms", 5)
	for i, size := range []int{1 << 20, 40 << 20, 20 << 20, 11 << 20, 2 << 20} {
		w.Arrivals[i].Body = make([]byte, size)
	}
	receive(t, p.Store, w)
	var got []int
	for {
		letters := p.claim(t, 10)
		if len(letters) == 0 {
			break
		}
		got = append(got, len(letters))
		p.recordDead(t, letters...)
	}
	if len(got) != 4 || got[0] != 1 || got[1] != 1 || got[2] != 2 || got[3] != 1 {
		t.Errorf("batches of %v letters", got)
	}
}

// TestGroupsAndNotices checks that a query finds the letters of a group, and that a notice about
// the group is sent once to each channel.
func TestGroupsAndNotices(t *testing.T) {
	t.Parallel()
	p := start(t)
	receive(t, p.Store, window(t, 1, "sms", 3))
	var verdicts []deadletter.Classified
	for i, l := range p.claim(t, 10) {
		verdicts = append(verdicts, deadletter.Classified{
			Letter:       l.ID,
			To:           deadletter.ClassifiedDead,
			GroupKey:     [32]byte{byte(i / 2)},
			GroupTitle:   "title",
			GroupVersion: 1,
			Severity:     deadletter.SeverityPage,
			Channels:     []string{"oncall", "team"},
		})
	}
	if err := p.Classify(context.Background(), verdicts); err != nil {
		t.Fatal(err)
	}
	for q, want := range map[string]int{"group:G-1": 2, "group:G-2": 1, "group:G-3": 0, "group:G-1,G-2 state:dead": 3} {
		if n := count(t, p.Store, q); n != want {
			t.Errorf("%s: %d", q, n)
		}
	}
	if title, err := p.GroupTitle(context.Background(), 1); title != "title" || err != nil {
		t.Error(title, err)
	}
	if _, err := p.GroupTitle(context.Background(), 99); err == nil {
		t.Error("a group that does not exist has a title")
	}
	var n int
	if err := rawDB(t, p.path).QueryRow(`SELECT count(DISTINCT n.id) * 10 + count(*) FROM notices n
		JOIN deliveries d ON d.notice = n.id WHERE n.grp = 1`).Scan(&n); err != nil || n != 12 {
		t.Errorf("%d notices, %v", n, err)
	}
}
