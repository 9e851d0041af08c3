package store_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
)

// TestMachinesAreTold checks that machines are notified when a group is quiet, when a group no
// longer needs people, and when an operation ends. These notices have channels of their own, so
// they do not wait for notices to people.
func TestMachinesAreTold(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	letters := g.die("sms", 1, 2)
	operate(t, g.Store, deadletter.VerbHold, letters[0])
	g.expectDeliveries("hook") // no notice has been sent yet
	g.Machines("hook")
	g.die("sms", 2, 1)
	g.die("email", 3, 1, withSeverity(deadletter.SeverityDigest)) // no notice is sent for this group
	g.advance(10 * time.Second)
	g.expectDeliveries("oncall", "opened G-1/1 page: G-1 G-2")
	g.expectDeliveries("hook")
	g.decide(deadletter.Decision{Groups: []deadletter.GroupID{2}, Resolve: &deadletter.Resolution{}})
	g.expectDeliveries("hook", "group.resolved G-2 page: G-2")
	g.advance(10 * time.Minute)
	g.tend()
	g.expectDeliveries("oncall", "quiet G-1/1 page: G-1 G-2")
	g.expectDeliveries("hook", "group.quiet G-1 page: G-1")
	operate(t, g.Store, deadletter.VerbDiscard, letters...)
	g.tend()
	g.tend()
	g.expectDeliveries("hook", "operation.finished O-2 digest: ", "group.resolved G-1 page: G-1")
	op := deadletter.Operation{Action: deadletter.VerbRestore, By: "ana", Pace: deadletter.Pace{}}
	if err := g.Freeze(t.Context(), &op, query.Selection{IDs: letters}, 0, anyPlace); err != nil {
		t.Fatal(err)
	}
	if err := g.CancelOperation(t.Context(), op.ID, "ana"); err != nil {
		t.Fatal(err)
	}
	due, err := g.Due(t.Context(), "hook", 10)
	if err != nil || len(due) != 1 || due[0].Operation == nil ||
		due[0].Operation.State != deadletter.OperationCancelled || due[0].Operation.Total != 2 {
		t.Fatalf("%+v, %v", due, err)
	}
	g.expectDeliveries("hook", "operation.finished O-3 digest: ")
	g.expectDeliveries("oncall")
}

// TestAPagePassesWhatIsForMachines checks that a notice to people does not wait for notices to
// machines on the same channel, even if many notices to machines are pending.
func TestAPagePassesWhatIsForMachines(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	g.Machines("oncall")
	for _, id := range g.die("email", 1, 30, withSeverity(deadletter.SeverityDigest)) {
		operate(t, g.Store, deadletter.VerbHold, id)
	}
	g.advance(time.Minute)
	g.die("sms", 2, 1)
	g.advance(10 * time.Second)
	if due, err := g.Due(
		t.Context(), "oncall", 20,
	); err != nil || len(due) != 20 || due[0].Notice.Kind != deadletter.NoticeOpened {
		t.Errorf("%+v, %v", due, err)
	}
}

// TestMachinesAreToldInOrder checks two notices about one group: an earlier one for people, and a
// later one for machines. Even if the earlier notice is delayed, the later one must not be sent
// before it.
func TestMachinesAreToldInOrder(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	g.Machines("oncall")
	g.die("sms", 1, 1)
	g.die("sms", 2, 1)
	g.advance(10 * time.Second)
	due, err := g.Due(t.Context(), "oncall", 10)
	if err != nil || len(due) != 1 {
		t.Fatal(due, err)
	}
	down := deadletter.Delivered{ID: due[0].ID, RetryAt: g.clock.now().Add(2 * time.Hour), Detail: "503"}
	if err := g.Delivered(t.Context(), []deadletter.Delivered{down}); err != nil {
		t.Fatal(err)
	}
	g.advance(10 * time.Minute)
	g.tend()
	g.decide(deadletter.Decision{Groups: []deadletter.GroupID{2}, Resolve: &deadletter.Resolution{}})
	g.expectDeliveries("oncall")
	g.advance(2 * time.Hour)
	got := g.deliverDue("oncall")
	if i := slices.Index(
		got, "group.resolved G-2 page: G-2",
	); i < 0 || !strings.HasPrefix(got[0], "opened G-1/1 page") {
		t.Error(got)
	}
}
