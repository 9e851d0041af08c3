package ingest_test

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// ledger is a store of one inbox in memory. It decides as internal/store does, for deliveries
// within the horizon and with ingest.uncertain = hold. TestTheLedgerDecidesAsTheStore checks this.
type ledger struct {
	session     deadletter.InboxSession
	restartedAt int64 // Unix milliseconds of the last restart
	rows        []row
	pages       []*page // the journal of windows
}

// row is a stored letter.
type row struct {
	at   int64 // Unix milliseconds at which it was stored
	twin int   // number of the row of which this row may be a copy; -1 = none
}

// page is a window in the journal.
type page struct {
	session int64
	at      int64
	settled bool
	looks   int
	entries []entry
}

type entry struct {
	row    int
	print  deadletter.Fingerprint
	count  int64
	merged bool
}

func (l *ledger) BeginSession(context.Context, string, string, string) (deadletter.InboxSession, error) {
	l.session.Number++
	return l.session, nil
}

func (l *ledger) Restarted(_ context.Context, _, _, _, marker string) error {
	l.session.Marker, l.session.Restarted, l.restartedAt = marker, true, time.Now().UnixMilli()
	return nil
}

func (l *ledger) Calm(_ context.Context, _, _, _, marker string) error {
	l.session.Marker, l.session.Restarted = marker, false
	return nil
}

func (l *ledger) HoldsBack(_ context.Context, _, _, _ string, longest time.Duration) error {
	l.session.Delay = longest
	return nil
}

func (l *ledger) AtStake(_ context.Context, _, _, _ string, letters int) error {
	l.session.AtStake = letters
	return nil
}

func (l *ledger) Look(context.Context, string, string, string) (*deadletter.OpenWindow, error) {
	for i, p := range slices.Backward(l.pages) {
		if p.settled {
			continue
		}
		p.looks++
		open := &deadletter.OpenWindow{ID: int64(i + 1)}
		for _, e := range p.entries {
			open.Fingerprints = append(open.Fingerprints, e.print)
		}
		return open, nil
	}
	return nil, nil
}

func (l *ledger) Receive(_ context.Context, w deadletter.Window) (deadletter.Receipt, error) {
	return l.receive(w, nil), nil
}

// receive adds the letters of a window to the ledger. If a letter is merged with a stored letter,
// it gets no row. Every other letter gets a row. If such a letter may be a copy of a stored letter
// (its twin), its row is marked as a suspect.
func (l *ledger) receive(w deadletter.Window, twins []int) deadletter.Receipt {
	var r deadletter.Receipt
	undone := map[deadletter.Fingerprint][]entry{}
	if w.Restarted && twins == nil {
		undone = l.undoneRows(w.Session)
	}
	p := &page{session: w.Session, at: time.Now().UnixMilli()}
	if w.GivesBack {
		p.looks = 1
	}
	for i := range w.Arrivals {
		a := &w.Arrivals[i]
		e, twin := entry{row: len(l.rows), print: a.Fingerprint, count: a.DeliveryCount()}, -1
		if twins != nil {
			twin = twins[i]
			e.merged = w.Restarted && a.Properties.MessageID != ""
		} else if same := undone[a.Fingerprint]; a.Redelivered && len(same) > 0 &&
			(!w.EveryReturnCounted || e.count > same[0].count) {
			twin, undone[a.Fingerprint] = same[0].row, same[1:]
			e.merged = a.Properties.MessageID != ""
		}
		switch {
		case e.merged:
			e.row = twin
			r.Merged++
		default:
			l.rows = append(l.rows, row{p.at, twin})
			r.New = append(r.New, deadletter.NewID(int64(len(l.rows)), 0))
			if twin >= 0 {
				r.Suspects++
			}
		}
		p.entries = append(p.entries, e)
	}
	l.session.Prefetch, l.session.AtStake = w.Prefetch, 0
	l.pages = append(l.pages, p)
	r.Window = int64(len(l.pages))
	return r
}

var errOthers = errors.New("these are not the letters of the window")

func (l *ledger) RejoinWindow(
	_ context.Context, open deadletter.OpenWindow, w deadletter.Window,
) (deadletter.Receipt, error) {
	p := l.pages[open.ID-1]
	entries := make([]entry, len(p.entries))
	left := slices.Clone(p.entries)
	same, next, bare, twins, named := true, true, true, true, 0
	if len(w.Arrivals) != len(left) {
		return deadletter.Receipt{}, errOthers
	}
	for i := range w.Arrivals {
		n := slices.IndexFunc(left, func(e entry) bool { return e.print == w.Arrivals[i].Fingerprint })
		if n < 0 {
			return deadletter.Receipt{}, errOthers
		}
		e := left[n]
		left = slices.Delete(left, n, n+1)
		count := w.Arrivals[i].DeliveryCount()
		same = same && e.count >= 0 && count == e.count
		next = next && count == max(e.count, 0)+1
		bare = bare && e.count < 0
		twins = twins && l.countDeliveries(e.print) > 1
		if w.Arrivals[i].Properties.MessageID != "" {
			named++
		}
		e.count = count
		entries[i] = e
	}
	gaveBack := p.looks > 1
	doubtful := gaveBack && named == 0 ||
		w.RedeliveredLeaks && twins && (!next || !w.EveryReturnCounted && (!w.FirstReturnCounted || !bare))
	if w.Restarted {
		doubtful = named < len(w.Arrivals)
	}
	switch {
	case w.EveryReturnCounted && same:
		p.settled = true
		return l.receive(w, nil), nil
	case doubtful:
		p.settled = true
		var rows []int
		for _, e := range entries {
			rows = append(rows, e.row)
		}
		w.GivesBack = gaveBack
		return l.receive(w, rows), nil
	}
	p.session, p.entries, p.looks = w.Session, entries, 0
	return deadletter.Receipt{Window: open.ID, Merged: len(entries)}, nil
}

// countDeliveries returns how many deliveries had the given fingerprint.
func (l *ledger) countDeliveries(f deadletter.Fingerprint) int {
	n := 0
	for _, p := range l.pages {
		for _, e := range p.entries {
			if e.print == f {
				n++
			}
		}
	}
	return n
}

// undoneRows returns the letters that may come back because a broker restart has undone their acks.
// It groups them by fingerprint, with the oldest row first. In the aftermath of a restart, each row
// comes back at most once. The counts are the lowest of equal letters.
func (l *ledger) undoneRows(session int64) map[deadletter.Fingerprint][]entry {
	spent, merged := map[int]bool{}, map[int]bool{}
	found, least := map[deadletter.Fingerprint][]entry{}, map[deadletter.Fingerprint]int64{}
	for _, p := range slices.Backward(l.pages) {
		for _, e := range p.entries {
			if n, ok := least[e.print]; !ok || e.count < n {
				least[e.print] = e.count
			}
			switch {
			case e.merged && (p.at >= l.restartedAt || p.session == session):
				spent[e.row] = true
			case p.session == session || merged[e.row]:
			default:
				merged[e.row] = e.merged
				found[e.print] = append(found[e.print], e)
			}
		}
	}
	for _, r := range l.rows {
		if r.twin >= 0 && r.at >= l.restartedAt {
			spent[r.twin] = true
		}
	}
	for f, rows := range found {
		rows = slices.DeleteFunc(rows, func(e entry) bool { return spent[e.row] })
		slices.SortStableFunc(rows, func(a, b entry) int { return cmp.Compare(a.row, b.row) })
		for i := range rows {
			rows[i].count = least[f]
		}
		found[f] = rows
	}
	return found
}

func (l *ledger) SettleInDoubt(ctx context.Context, window int64) error {
	return l.SettleWindow(ctx, window)
}

func (l *ledger) SettleWindow(_ context.Context, window int64) error {
	if window > 0 {
		l.pages[window-1].settled = true
	}
	return nil
}

func (l *ledger) Ping(context.Context) error { return nil }
