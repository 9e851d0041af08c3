package system

import (
	"fmt"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/store"
	"github.com/deadletteroffice/dlo/internal/testenv"
)

// withLetters returns a dlo whose store contains received letters. None of them is decoded yet.
func withLetters(t *testing.T, letters int) *child {
	t.Helper()
	p := newChild(t, "", away)
	filling, err := store.Open(t.Context(), p.store, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	receiveInto(t, filling, letters, func(n int) deadletter.Arrival {
		return deadletter.Arrival{
			Body:       fmt.Appendf(nil, `{"order":%d}`, n),
			Properties: deadletter.Properties{DeliveryMode: 2, Headers: rejectedFrom("orders")},
		}
	})
	if err := filling.Close(); err != nil {
		t.Fatal(err)
	}
	return p
}

// TestKillLoopsCondemnNoLetter kills dlo repeatedly while it classifies ordinary letters. In the
// end, all letters must be decoded, because none of them caused a kill.
func TestKillLoopsCondemnNoLetter(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	letters, kills := 3000, 20
	if soak() {
		letters, kills = 100_000, 500
	}
	random := seeded(t)
	p := withLetters(t, letters)
	for range 4 {
		for _, point := range []string{"classify: begun", "classify: decided"} {
			p.start(point + "=1")
			p.Crashed(point)
		}
	}
	unread := func() int { return p.count("letters", `state = 'received'`) }
	if n := unread(); n != letters {
		t.Errorf("%d of %d letters are unread: nothing was recorded yet", n, letters)
	}
	done := 0
	for ; done < kills && unread() > 0; done++ {
		p.Start("")
		time.Sleep(time.Duration(random.Int64N(int64(60 * time.Millisecond))))
		p.Kill9()
	}
	t.Logf("%d kills at random; %d letters are unread", done, unread())
	p.Start("")
	eventually(t, "all letters dead", func() bool { return p.letters("dead") == letters })
	if n := p.count("letters", `crashes > 0 OR reading = $1`, string(deadletter.ReadCrashed)); n != 0 {
		t.Errorf("%d letters are blamed for a death of dlo", n)
	}
}

// TestALetterThatKillsDloIsFound uses a letter that kills dlo. After three kills, dlo must show
// this letter as bytes. The letters that were claimed together with it must not be blamed.
func TestALetterThatKillsDloIsFound(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	p := withLetters(t, 10)
	// the letter is the fifth of its batch, then the last and claimed alone, then the only one left
	for _, point := range []string{"reading=5", "reading=10", "reading=1"} {
		p.start(point)
		p.Crashed("the death of the fifth letter")
	}
	p.Start("")
	eventually(t, "all letters dead", func() bool { return p.letters("dead") == 10 })
	blamed := p.ask(`SELECT count(*) FROM letters WHERE crashes = $1 AND reading = $2 AND id = (SELECT max(id) FROM
		(SELECT id FROM letters ORDER BY id LIMIT 5))`, deadletter.MaxCrashes, string(deadletter.ReadCrashed))
	if n := p.count("letters", `crashes > 0 OR reading = $1`, string(deadletter.ReadCrashed)); blamed != 1 || n != 1 {
		t.Errorf("%d letters are blamed; the fifth is one of them: %t", n, blamed == 1)
	}
}
