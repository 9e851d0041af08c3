package ingest_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/testenv"
)

// filler is a model of an intake that commits a large window in parts while its letters arrive. It
// is no code of dlo: it shows on every kind of broker whether such windows lose a letter or store
// one twice (docs/decisions/windows-in-parts.md).
//
// While a window is filling, nothing of it was acknowledged, so all of it comes back after a crash.
// A returned letter that equals a row of the window adds none. Which of several equal letters it is
// does not matter, because their number is kept. With the last part, the window becomes open, with
// the letters that the session holds, and the rule of today's windows applies. Rows whose letters
// did not come back by then are expected until they come: they were never acknowledged.
type filler struct {
	ledger
	t        *testing.T
	q        *queue
	happens  fate
	random   *rand.Rand
	filling  *page                              // the window that is being filled; nil = none
	expected map[deadletter.Fingerprint][]entry // rows of closed windows whose letters did not come back
	restarts int
	vanished map[deadletter.Fingerprint]int // letters that the broker lost
	lost     int
}

const (
	fillLimit = 16 // letters in a window
	fillPart  = 4  // letters in a part
)

// dies ends the session if an accident happens at a point.
func (f *filler) dies(point string) bool {
	switch {
	case f.happens("cut " + point):
		f.q.end()
		f.q.note("cut %s", point)
	case f.happens("restart " + point):
		f.q.restart()
		f.q.note("restart %s", point)
	default:
		return false
	}
	return true
}

// take takes up to n letters.
func (f *filler) take(n int) (w []deadletter.Arrival) {
	for len(w) < n {
		m := f.q.take()
		if m == nil {
			break
		}
		w = append(w, f.q.deliver(m))
	}
	return w
}

// run runs one session, until it dies or the queue is empty.
func (f *filler) run() {
	time.Sleep(time.Millisecond)
	f.session.Number++
	if f.restarts != f.q.restarts {
		f.restarts, f.session.Restarted, f.restartedAt = f.q.restarts, true, time.Now().UnixMilli()
	}
	begun, alive := f.resume()
	for alive {
		if begun == nil && len(f.q.returned)+len(f.q.ready) == 0 {
			f.session.Restarted = false
			return
		}
		alive = f.fill(begun)
		begun = nil
	}
}

// open returns the place of the open window in the journal, or -1.
func (f *filler) open() int {
	return slices.IndexFunc(f.pages, func(p *page) bool { return !p.settled && p != f.filling })
}

// resume decides what happened to an open window, as dlo does today. It returns letters that it
// took and that belong to other windows.
func (f *filler) resume() (begun []deadletter.Arrival, alive bool) {
	open := f.open()
	if open < 0 {
		return nil, true
	}
	p := f.pages[open]
	p.looks++
	left := map[deadletter.Fingerprint]int{}
	for _, e := range p.entries {
		left[e.print]++
	}
	ours := true
	for ours && len(begun) < len(p.entries) {
		w := f.take(1)
		if w == nil {
			break
		}
		begun = append(begun, w[0])
		left[w[0].Fingerprint]--
		ours = w[0].Redelivered && left[w[0].Fingerprint] >= 0
	}
	if f.dies("after the resume") {
		return nil, false
	}
	if !ours || len(begun) < len(p.entries) {
		p.settled = true
		return begun, true
	}
	w := f.window(begun)
	receipt, err := f.RejoinWindow(f.t.Context(), deadletter.OpenWindow{ID: int64(open + 1)}, w)
	if err != nil {
		f.t.Error(err)
	}
	return nil, f.finish(f.pages[receipt.Window-1])
}

func (f *filler) window(w []deadletter.Arrival) deadletter.Window {
	return deadletter.Window{
		Session: f.session.Number, Arrivals: w, Restarted: f.session.Restarted, RedeliveredLeaks: f.q.leaks,
		EveryReturnCounted: f.q.tells, FirstReturnCounted: f.q.counts,
	}
}

// fill fills a window, beginning with letters that were taken already, and finishes it.
func (f *filler) fill(begun []deadletter.Arrival) (alive bool) {
	if f.filling == nil {
		f.filling = &page{at: time.Now().UnixMilli()}
		f.pages = append(f.pages, f.filling)
	}
	f.filling.session = f.session.Number
	unmatched := map[deadletter.Fingerprint][]entry{}
	for _, e := range f.filling.entries {
		unmatched[e.print] = append(unmatched[e.print], e)
	}
	var held []entry
	for {
		part := begun
		if begun == nil {
			part = f.take(min(fillPart, fillLimit-len(held)))
		}
		begun = nil
		if f.dies("in a part") {
			return false
		}
		held = append(held, f.commit(part, unmatched)...)
		if f.random.IntN(4) == 0 {
			f.q.publish(bodiesOf(f.random)...)
		}
		if len(part) == 0 || len(held) >= fillLimit {
			break
		}
		if f.dies("after a part") {
			return false
		}
	}
	if len(held) == 0 {
		return len(f.q.returned)+len(f.q.ready) > 0
	}
	p := f.filling // the last part and this are one commit
	p.entries, f.filling = held, nil
	for print, rows := range unmatched {
		f.expected[print] = append(f.expected[print], rows...)
	}
	return f.finish(p)
}

// commit stores a part. It removes from "unmatched" the rows whose letters came back, and returns
// the entries of the part.
func (f *filler) commit(part []deadletter.Arrival, unmatched map[deadletter.Fingerprint][]entry) (list []entry) {
	undone := map[deadletter.Fingerprint][]entry{}
	if f.session.Restarted {
		undone = f.undoneRows(f.session.Number)
	}
	pop := func(of map[deadletter.Fingerprint][]entry, print deadletter.Fingerprint) (e entry, ok bool) {
		if ok = len(of[print]) > 0; ok {
			e, of[print] = of[print][0], of[print][1:]
		}
		return e, ok
	}
	for i := range part {
		a := &part[i]
		e := entry{row: len(f.rows), print: a.Fingerprint, count: a.DeliveryCount()}
		again := false
		if a.Redelivered {
			var old entry
			if old, again = pop(unmatched, a.Fingerprint); again {
				old.count = e.count
				list = append(list, old)
				continue
			}
			if old, again = pop(f.expected, a.Fingerprint); again {
				e.row, e.merged = old.row, old.merged
			}
		}
		twin := -1
		if same := undone[a.Fingerprint]; !again && a.Redelivered && len(same) > 0 {
			twin, undone[a.Fingerprint] = same[0].row, same[1:]
			if e.merged = a.Properties.MessageID != ""; e.merged {
				e.row = twin
			}
		}
		if !again && !e.merged {
			f.rows = append(f.rows, row{time.Now().UnixMilli(), twin})
		}
		list, f.filling.entries = append(list, e), append(f.filling.entries, e)
	}
	return list
}

// finish acknowledges and settles a window.
func (f *filler) finish(p *page) (alive bool) {
	if f.dies("before the ack") {
		return false
	}
	if f.happens("lose the ack") {
		f.q.end()
		return false
	}
	f.q.acked, f.q.held = append(f.q.acked, f.q.held...), nil
	if f.dies("after the ack") || f.dies("after the fence") {
		return false
	}
	p.settled = true
	return !f.dies("after the settling")
}

// TestWindowsInPartsKeepTheirLetters lets random accidents happen to the model. Each letter must
// have one row. There may be more rows only if they are marked as suspects.
func TestWindowsInPartsKeepTheirLetters(t *testing.T) {
	t.Parallel()
	for _, seed := range testenv.Seeds(t, 2000) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 2))
			o := newOffice(t, brokers[random.IntN(len(brokers))], nil)
			o.q.forgets = func(acks int) int { return random.IntN(min(acks, 20) + 1) }
			most := random.IntN(15)
			f := &filler{
				t: t, q: o.q, random: random, expected: map[deadletter.Fingerprint][]entry{},
				vanished: map[deadletter.Fingerprint]int{},
				happens: func(string) bool {
					happens := most > 0 && random.IntN(12) == 0
					if happens {
						most--
					}
					return happens
				},
			}
			for range 1 + random.IntN(8) {
				f.q.publish(bodiesOf(random)...)
				f.run()
				if seed%4 == 0 && random.IntN(3) == 0 {
					f.lose(random.IntN(6))
				}
			}
			most = 0
			f.q.publish("m the last one")
			for range 3 {
				f.run()
			}
			f.check(o, seed)
		})
	}
}

// lose lets the first letters vanish from the queue, as a limit of its length would. The rule of
// today's windows does not allow for it while a window is open.
func (f *filler) lose(n int) {
	if f.open() >= 0 {
		return
	}
	for _, list := range []*[]*message{&f.q.returned, &f.q.ready} {
		for n > 0 && len(*list) > 0 {
			m := (*list)[0]
			*list = (*list)[1:]
			f.vanished[m.arrival.Fingerprint]++
			f.lost++
			n--
		}
	}
}

// check compares the rows with the letters, by fingerprint. Only if letters vanished, there may be
// as many more or fewer rows for letters that equal them.
func (f *filler) check(o *office, seed uint64) {
	prints, certain, all := map[int]deadletter.Fingerprint{}, map[deadletter.Fingerprint]int{}, map[deadletter.Fingerprint]int{}
	for _, p := range f.pages {
		for _, e := range p.entries {
			prints[e.row] = e.print
		}
	}
	for _, rows := range f.expected {
		for _, e := range rows {
			prints[e.row] = e.print
		}
	}
	for n, r := range f.rows {
		all[prints[n]]++
		if r.twin < 0 {
			certain[prints[n]]++
		}
	}
	letters := map[deadletter.Fingerprint]int{}
	for _, m := range f.q.acked {
		letters[m.arrival.Fingerprint]++
	}
	problem := ""
	if left := f.q.size(); left > 0 || f.q.number != len(f.q.acked)+f.lost {
		problem = fmt.Sprintf("%d letters are left, %d of %d acknowledged; ", left, len(f.q.acked), f.q.number)
	}
	for print, n := range letters {
		if all[print] < n-f.vanished[print] || certain[print] > n+f.vanished[print] {
			problem += fmt.Sprintf("%x: %d letters, %d rows of which %d are certain; ", print[:2], n, all[print], certain[print])
		}
	}
	if problem != "" {
		f.t.Errorf("seed %d on %s: %s%s", seed, f.q.name, problem, o.takeLog())
	}
}
