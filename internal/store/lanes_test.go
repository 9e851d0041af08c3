package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
)

// TestTheUrgentGoFirst checks the order of writers that wait for the store. The most urgent writer
// must go next. Writers of the same urgency must go in the order in which they arrived.
func TestTheUrgentGoFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var l lanes
		if err := l.enter(t.Context(), bulk); err != nil {
			t.Fatal(err)
		}
		var order []string
		for i, p := range []priority{bulk, classify, bulk, urgent, dispatch, urgent} {
			go func() {
				if err := l.enter(t.Context(), p); err != nil {
					t.Error(err)
				}
				order = append(order, fmt.Sprint(p, i))
				l.leave()
			}()
			synctest.Wait()
		}
		if len(order) > 0 {
			t.Errorf("%v went in beside another", order)
		}
		l.leave()
		synctest.Wait()
		if got := strings.Join(order, ", "); got != "0 3, 0 5, 1 4, 2 1, 3 0, 3 2" {
			t.Errorf("priority and number of the writers: %s", got)
		}
		if l.busy {
			t.Error("nobody is in, and it is busy")
		}
	})
}

// TestWhoGivesUpWaitingIsPassedOver checks a writer that gives up while it waits for its turn. It
// must be skipped, and no other writer may be delayed.
func TestWhoGivesUpWaitingIsPassedOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var l lanes
		if err := l.enter(t.Context(), urgent); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var gaveUp error
		entered := false
		go func() { gaveUp = l.enter(ctx, dispatch) }()
		synctest.Wait()
		go func() {
			entered = l.enter(t.Context(), bulk) == nil
			l.leave()
		}()
		synctest.Wait()
		cancel()
		synctest.Wait()
		if !errors.Is(gaveUp, context.Canceled) || entered {
			t.Errorf("%v, entered %v", gaveUp, entered)
		}
		l.leave()
		synctest.Wait()
		if !entered || l.busy {
			t.Errorf("entered %v, busy %v", entered, l.busy)
		}
	})
}
