package ingest_test

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestAWindowIsCutOff interrupts a window at each point of the protocol. Each letter must be stored
// once. The next session must find out whether the window came back whole or other letters came
// instead.
func TestAWindowIsCutOff(t *testing.T) {
	t.Parallel()
	const (
		fetched   = "fetch 1-3"
		committed = fetched + ", commit 1-3"
		acked     = committed + ", ack 1-3"
		fenced    = acked + ", fence"
		next      = "fetch 4, commit 4, ack 4, fence, settle"

		again    = ", connect, " + fenced + ", settle, " + next
		claimed  = ", connect, find 1-3, 1-3 came back, claim 1-3"
		cameBack = claimed + ", ack 1-3, fence, settle, " + next
		instead  = ", connect, find 1-3, 4 came instead, settle, commit 4, ack 4, fence, settle"
	)
	for _, c := range []struct {
		name      string
		accidents []string
		course    string
	}{
		{"not at all", nil, fenced + ", settle, " + next},
		{"before the delivery", []string{"cut before the fetch"}, "cut before the fetch" + again},
		{"in the delivery", []string{"cut in the fetch"}, "cut in the fetch" + again},
		{"fetched, dlo dies", []string{"ingest: fetched"}, fetched + ", dlo dies" + again},
		{"fetched, the store fails", []string{"fail to commit"}, fetched + ", fail to commit" + again},
		{
			"fetched, the connection ends",
			[]string{"cut after the fetch"},
			fetched + ", cut after the fetch, commit 1-3" + cameBack,
		},
		{"committed, dlo dies", []string{"ingest: committed"}, committed + ", dlo dies" + cameBack},
		{
			"committed, the connection ends",
			[]string{"cut before the ack"},
			committed + ", cut before the ack" + cameBack,
		},
		{"acknowledged, dlo dies", []string{"ingest: acked"}, acked + ", dlo dies" + instead},
		{
			"acknowledged, dlo dies with the ack",
			[]string{"ingest: acked", "lose the ack"},
			acked + ", dlo dies" + cameBack,
		},
		{"acknowledged, the connection ends", []string{"cut after the ack"}, acked + ", cut after the ack" + instead},
		{
			"acknowledged, the ack is lost",
			[]string{"cut after the ack", "lose the ack"},
			acked + ", cut after the ack" + cameBack,
		},
		{"the fence does not arrive", []string{"cut before the fence"}, acked + ", cut before the fence" + instead},
		{
			"neither ack nor fence arrive",
			[]string{"cut before the fence", "lose the ack"},
			acked + ", cut before the fence" + cameBack,
		},
		{"the answer to the fence is lost", []string{"cut in the fence"}, acked + ", cut in the fence" + instead},
		{"fenced, dlo dies", []string{"ingest: fenced"}, fenced + ", dlo dies" + instead},
		{"fenced, the store fails", []string{"fail to settle"}, fenced + ", fail to settle" + instead},
		{"settled, dlo dies", []string{"ingest: settled"}, fenced + ", settle, dlo dies, connect, " + next},
		{
			"committed, and once more as it is claimed",
			[]string{"ingest: committed", "ingest: committed"},
			committed + ", dlo dies" + claimed + ", dlo dies" + cameBack,
		},
		{
			"committed, and the claim fails",
			[]string{"ingest: committed", "fail to claim"},
			committed + ", dlo dies, connect, find 1-3, 1-3 came back, fail to claim" + cameBack,
		},
		{
			"committed, and once more as it is fenced",
			[]string{"ingest: committed", "ingest: fenced"},
			committed + ", dlo dies" + claimed + ", ack 1-3, fence, dlo dies" + instead,
		},
		{
			"fenced, and the connection ends before anything comes",
			[]string{"ingest: fenced", "cut before the resume"},
			fenced + ", dlo dies, connect, find 1-3, cut before the resume" + instead,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, b := range brokers {
				synctest.Test(t, func(t *testing.T) {
					o := newOffice(t, b, accidents(c.accidents...))
					o.drainDuring(func() {
						synctest.Wait()
						o.q.publish("m 1", "x", "m 3")
						time.Sleep(10 * time.Second)
						o.q.publish("m 4")
						time.Sleep(10 * time.Second)
					})
					o.check()
					want := "connect, mark, calm, " + c.course
					if got := o.takeLog(); got != want {
						t.Errorf("on %s\n got %s\nwant %s", b.name, got, want)
					}
				})
			}
		})
	}
}
