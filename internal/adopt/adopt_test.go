package adopt_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/deadletteroffice/dlo/internal/adopt"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/topology"
)

// office is a store and a broker in memory. A test decides which of their methods fail.
type office struct {
	rows     []deadletter.Declared
	guards   []deadletter.Guard
	led      bool // a policy existed when the retries were paused
	acts     []string
	next     int64
	snapshot topology.Snapshot
	probed   []string // queues of the probes
	adoption *adopt.Adoption

	look, set, remove, probe, declare error
	late                              bool // the method set fails, but the policy is set
	unready                           string
	lost                              bool          // the message of a probe does not arrive
	slow                              time.Duration // how long a probe takes
}

func (o *office) Declare(_ context.Context, things []deadletter.Declared, act deadletter.Act) error {
	if o.declare != nil {
		return o.declare
	}
	for _, d := range things {
		i := slices.IndexFunc(o.rows, func(r deadletter.Declared) bool { return r.Name == d.Name })
		if i < 0 {
			o.next++
			d.ID = o.next
			o.rows = append(o.rows, d)
			continue
		}
		o.rows[i].Sure, o.rows[i].Detail = d.Sure, d.Detail
	}
	o.acts = append(o.acts, act.Kind)
	return nil
}

func (o *office) Undeclare(_ context.Context, ids []int64, act deadletter.Act) error {
	o.rows = slices.DeleteFunc(o.rows, func(r deadletter.Declared) bool { return slices.Contains(ids, r.ID) })
	o.acts = append(o.acts, act.Kind)
	return nil
}

func (o *office) Declared(ctx context.Context) ([]deadletter.Declared, error) {
	return slices.Clone(o.rows), ctx.Err()
}

func (o *office) Pause(_ context.Context, g deadletter.Guard) (deadletter.Guard, error) {
	if g.Origin.Queue == "mail" {
		return g, deadletter.ErrNotFound // no letter has died in this queue
	}
	if slices.ContainsFunc(o.guards, func(had deadletter.Guard) bool { return had.Origin == g.Origin }) {
		return g, deadletter.ErrConflict
	}
	g.State = deadletter.GuardPaused
	o.guards, o.led = append(o.guards, g), len(o.snapshot.Policies) > 0
	return g, nil
}

func (o *office) Guards(context.Context) ([]deadletter.Guard, error) {
	return slices.Clone(o.guards), nil
}

func (o *office) Resume(_ context.Context, g deadletter.Guard) error {
	o.guards = slices.DeleteFunc(o.guards, func(had deadletter.Guard) bool { return had.Origin == g.Origin })
	return nil
}

func (o *office) TrialMark(id string) string { return "mark of " + id }

// open returns an office with the queues "orders" and "mail". Neither of them has a dead-letter
// exchange.
func open() *office {
	o := &office{snapshot: topology.Snapshot{
		Broker:    "main",
		VHost:     "/",
		Version:   "4.3.6",
		Queues:    []topology.Queue{{Name: "orders"}, {Name: "mail"}, {Name: "dlo.letters"}},
		Exchanges: []topology.Exchange{{Name: "dlo.dlx", Type: "fanout"}},
		Bindings:  []topology.Binding{{Source: "dlo.dlx", Destination: "dlo.letters", To: "queue"}},
	}}
	o.adoption = adopt.New(o, []adopt.Place{{
		Broker: "main", VHost: "/", Exchange: "dlo.dlx", Managed: func() bool { return true }, Unready: func() string { return o.unready },
		Look: func(context.Context) (topology.Snapshot, error) {
			s := o.snapshot
			s.Policies = slices.Clone(s.Policies)
			return s, o.look
		},
		Policy: func(_ context.Context, name string) (*topology.Policy, error) {
			i := slices.IndexFunc(o.snapshot.Policies, func(p topology.Policy) bool { return p.Name == name })
			if i < 0 || o.look != nil {
				return nil, o.look
			}
			now := o.snapshot.Policies[i]
			return &now, nil
		},
		Set: func(_ context.Context, p topology.Policy) error {
			if o.set == nil || o.late {
				o.snapshot.Policies = append(o.snapshot.Policies, p)
			}
			return o.set
		},
		Delete: func(_ context.Context, name string) error {
			if o.remove == nil {
				o.snapshot.Policies = slices.DeleteFunc(
					o.snapshot.Policies, func(p topology.Policy) bool { return p.Name == name },
				)
			}
			return o.remove
		},
		Probe: func(ctx context.Context, queue, kind string, m deadletter.TrialMessage, arrived <-chan struct{}) error {
			o.probed = append(o.probed, queue+" "+kind)
			time.Sleep(o.slow)
			if o.probe != nil {
				return o.probe
			}
			if !o.lost {
				o.adoption.Arrived(&deadletter.Letter{Arrived: m.Properties})
			}
			select {
			case <-arrived:
				return nil
			case <-ctx.Done():
				return errors.New("the message did not arrive")
			}
		},
		DeleteProbe: func(context.Context, string) error { return nil },
	}}, func(string, string) {}, nil, slog.New(slog.DiscardHandler))
	return o
}

func (o *office) plan(queues ...string) topology.Plan {
	return topology.MakePlan(&o.snapshot, topology.Want{Queues: queues, Exchange: "dlo.dlx"})
}

// TestAPlanIsAppliedOrNothing applies plans while one step fails. Afterwards, either all policies
// of a plan must be set and recorded, or none of them.
func TestAPlanIsAppliedOrNothing(t *testing.T) {
	for name, c := range map[string]struct {
		fail func(o *office)
		want error
		text string
	}{
		"nothing fails":         {},
		"the inbox is not read": {fail: func(o *office) { o.unready = "not read" }},
		"the API does not answer": {
			fail: func(o *office) { o.look = errors.New("500") }, want: deadletter.ErrUnavailable, text: "500",
		},
		"the user may not": {
			fail: func(o *office) { o.set = fmt.Errorf("%w: no tag", deadletter.ErrForbidden) },
			want: deadletter.ErrForbidden, text: "No policy of the plan stays set",
		},
		"the message is lost": {
			fail: func(o *office) { o.lost = true }, want: deadletter.ErrConflict, text: "did not reach dlo",
		},
		"the queue is refused": {
			fail: func(o *office) { o.probe = errors.New("403") }, want: deadletter.ErrConflict, text: "403",
		},
		"the time is over": {
			fail: func(o *office) { o.slow, o.probe = 3*time.Minute, errors.New("the time is over") },
			want: deadletter.ErrConflict, text: "No policy of the plan stays set",
		},
		"the vhost has changed": {
			fail: func(o *office) { o.snapshot.Queues = o.snapshot.Queues[1:] }, want: deadletter.ErrConflict,
			text: "is not planned any more: queue orders: there is no such queue",
		},
		"the store is full": {fail: func(o *office) { o.declare = errors.New("full") }, text: "full"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := open()
				plan := o.plan("orders")
				if c.fail != nil {
					c.fail(o)
				}
				applied, err := o.adoption.Apply(t.Context(), deadletter.Local, plan)
				if c.text == "" {
					if err != nil || len(applied.Policies) != 1 || applied.Policies[0].Proved != (o.unready == "") ||
						applied.Policies[0].Why != o.unready || len(o.rows) != 1 || !o.rows[0].Sure || len(
						o.snapshot.Policies,
					) != 1 || !slices.Equal(
						o.acts, []string{"", deadletter.ActPolicyApplied},
					) {
						t.Errorf("%+v, %v, rows %+v, acts %q", applied, err, o.rows, o.acts)
					}
					return
				}
				if err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
					t.Errorf("%v, want %v with %q", err, c.want, c.text)
				}
				if len(o.rows)+len(o.snapshot.Policies) > 0 {
					t.Errorf("left: %+v %+v", o.rows, o.snapshot.Policies)
				}
			})
		})
	}
}

// TestARequestThatTimedOutIsTakenBackLater sets a policy with a request that the API carries out
// but does not answer in time. As soon as the API answers again, dlo must remove the policy.
func TestARequestThatTimedOutIsTakenBackLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := open()
		o.set, o.late = fmt.Errorf("%w: no answer", deadletter.ErrUnavailable), true
		if _, err := o.adoption.Apply(
			t.Context(), deadletter.Local, o.plan("orders"),
		); !errors.Is(err, deadletter.ErrUnavailable) || !strings.Contains(
			err.Error(), "may be set now. dlo takes the policies back",
		) || !strings.Contains(err.Error(), ". Policy dlo-") {
			t.Errorf("%v", err)
		}
		if len(o.rows) != 1 || o.rows[0].Sure {
			t.Fatalf("%+v", o.rows)
		}
		run := func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			o.adoption.Run(ctx)
		}
		o.look = errors.New("500")
		run()
		if len(o.rows) != 1 {
			t.Error("it is forgotten while nobody knows whether it is set")
		}
		o.look = nil
		run()
		if len(o.rows)+len(o.snapshot.Policies) > 0 {
			t.Errorf("left: %+v %+v", o.rows, o.snapshot.Policies)
		}
	})
}

// TestOnlyUnchangedPoliciesAreUndone checks when dlo undoes a policy that it has applied. If
// somebody has changed the policy since, dlo must refuse. If somebody has deleted the policy, dlo
// must accept the undo and forget the policy.
func TestOnlyUnchangedPoliciesAreUndone(t *testing.T) {
	o := open()
	if _, err := o.adoption.Apply(t.Context(), deadletter.Local, o.plan("orders", "mail")); err != nil {
		t.Fatal(err)
	}
	o.snapshot.Policies[0].Priority = 7
	if _, err := o.adoption.Undo(
		t.Context(), deadletter.Local, 1,
	); !errors.Is(err, deadletter.ErrConflict) || !strings.Contains(err.Error(), "priority 0") ||
		!strings.Contains(err.Error(), "priority 7") {
		t.Errorf("a changed policy: %v", err)
	}
	if _, err := o.adoption.Leave(
		t.Context(), deadletter.Local, topology.Wish{Queues: []string{"mail"}},
	); !errors.Is(err, deadletter.ErrConflict) {
		t.Errorf("leaving a changed policy: %v", err)
	}
	o.snapshot.Policies[0].Priority = 0
	left, err := o.adoption.Leave(t.Context(), deadletter.Local, topology.Wish{Queues: []string{"ma*"}})
	if err != nil || !slices.Equal(left, []string{"mail"}) || len(o.rows) != 1 || len(o.snapshot.Policies) != 1 ||
		strings.Contains(o.snapshot.Policies[0].Pattern, "mail") || o.snapshot.Policies[0].Priority != 1 {
		t.Errorf("%q, %v, %+v", left, err, o.snapshot.Policies)
	}
	if _, err := o.adoption.Leave(
		t.Context(), deadletter.Local, topology.Wish{Queues: []string{"mail"}},
	); !errors.Is(err, deadletter.ErrNotFound) {
		t.Errorf("leaving twice: %v", err)
	}
	o.snapshot.Policies = nil
	if _, err := o.adoption.Undo(t.Context(), deadletter.Local, o.rows[0].ID); err != nil || len(o.rows) > 0 {
		t.Errorf("a deleted policy: %v, %+v", err, o.rows)
	}
	if _, err := o.adoption.Undo(t.Context(), deadletter.Local, 99); !errors.Is(err, deadletter.ErrNotFound) {
		t.Errorf("%v", err)
	}
	if _, err := o.adoption.Undo(t.Context(), deadletter.Principal{Name: "eve"}, 1); err == nil {
		t.Error("a stranger may undo")
	}
}

// TestTheRetriesOfAQueueThatLeavesArePaused checks that retries are paused before the policy is
// deleted, because a letter that fails again would not return to dlo. If the queue comes back, its
// retries continue, unless a person has paused them.
func TestTheRetriesOfAQueueThatLeavesArePaused(t *testing.T) {
	origin := deadletter.Origin{Broker: "main", VHost: "/", Queue: "orders"}
	for name, leave := range map[string]func(o *office) error{
		"leave": func(o *office) error {
			_, err := o.adoption.Leave(t.Context(), deadletter.Local, topology.Wish{Queues: []string{"orders", "mail"}})
			return err
		},
		"undo": func(o *office) error {
			_, err := o.adoption.Undo(t.Context(), deadletter.Local, o.rows[0].ID)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := open()
			apply := func() {
				t.Helper()
				if _, err := o.adoption.Apply(t.Context(), deadletter.Local, o.plan("orders", "mail")); err != nil {
					t.Fatal(err)
				}
			}
			apply()
			if err := leave(o); err != nil || len(o.guards) != 1 || !o.led || o.guards[0].Origin != origin ||
				o.guards[0].By != "local" {
				t.Fatalf("%v, %+v", err, o.guards)
			}
			apply()
			if len(o.guards) > 0 {
				t.Errorf("after the queue came back: %+v", o.guards)
			}
			o.guards = []deadletter.Guard{{Origin: origin, State: deadletter.GuardPaused, Why: "maintenance"}}
			if err := leave(o); err != nil {
				t.Fatal(err)
			}
			apply()
			if len(o.guards) != 1 || o.guards[0].Why != "maintenance" {
				t.Errorf("the pause of a person: %+v", o.guards)
			}
		})
	}
}

// TestWhatLeavesIsNamed removes a queue from its policy, so that the queue leaves dlo. The name of
// this queue is also a glob that matches other queues, but none of the other queues may leave. If a
// later policy cannot be changed, the error must name the queues that have already left.
func TestWhatLeavesIsNamed(t *testing.T) {
	o := open()
	o.snapshot.Queues = append(o.snapshot.Queues, topology.Queue{Name: "*"})
	for _, queue := range []string{"*", "mail", "orders"} {
		if _, err := o.adoption.Apply(t.Context(), deadletter.Local, o.plan(queue)); err != nil {
			t.Fatal(err)
		}
	}
	left, err := o.adoption.Leave(t.Context(), deadletter.Local, topology.Wish{Queues: []string{"*"}})
	if err != nil || !slices.Equal(left, []string{"*"}) || len(o.rows) != 2 {
		t.Errorf("%q, %v, %+v", left, err, o.rows)
	}
	o.snapshot.Policies[1].Priority = 7
	left, err = o.adoption.Leave(t.Context(), deadletter.Local, topology.Wish{Queues: []string{"*"}})
	if !errors.Is(err, deadletter.ErrConflict) ||
		!strings.Contains(err.Error(), "Before that, these queues left: mail") ||
		!slices.Equal(left, []string{"mail"}) {
		t.Errorf("%q, %v", left, err)
	}
}

// TestNobodyElseMayApply checks the errors for a missing permission, an unknown place and an empty
// plan.
func TestNobodyElseMayApply(t *testing.T) {
	o := open()
	plan := o.plan("orders")
	if _, err := o.adoption.Apply(
		t.Context(), deadletter.Principal{Name: "eve"}, plan,
	); !errors.Is(err, deadletter.ErrForbidden) {
		t.Errorf("a stranger: %v", err)
	}
	plan.VHost = "other"
	if _, err := o.adoption.Apply(t.Context(), deadletter.Local, plan); !errors.Is(err, deadletter.ErrNotFound) {
		t.Errorf("another vhost: %v", err)
	}
	if _, err := o.adoption.Apply(
		t.Context(), deadletter.Local, topology.Plan{Broker: "main", VHost: "/"},
	); !errors.Is(err, deadletter.ErrInvalid) {
		t.Errorf("an empty plan: %v", err)
	}
	if len(o.rows)+len(o.snapshot.Policies) > 0 {
		t.Errorf("left: %+v %+v", o.rows, o.snapshot.Policies)
	}
}
