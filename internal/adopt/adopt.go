// Package adopt sets the policies of a plan on a broker, proves each policy with a test message,
// and removes policies again. It records each policy in the store before it sets the policy on the
// broker. A crash therefore leaves no policy that dlo does not know.
package adopt

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/payload"
	"github.com/deadletteroffice/dlo/internal/topology"
)

// Store is the part of the store that adoption needs.
type Store interface {
	Declare(ctx context.Context, things []deadletter.Declared, act deadletter.Act) error
	Undeclare(ctx context.Context, ids []int64, act deadletter.Act) error
	Declared(ctx context.Context) ([]deadletter.Declared, error)
	TrialMark(messageID string) string
	Pause(ctx context.Context, g deadletter.Guard) (deadletter.Guard, error)
	Guards(ctx context.Context) ([]deadletter.Guard, error)
	Resume(ctx context.Context, g deadletter.Guard) error
}

// Place is a vhost whose policies dlo can set.
type Place struct {
	Broker, VHost string
	Exchange      string // the exchange to which planned policies route dead letters; "" = the configuration has none
	Intents       []topology.IntentOf
	Managed       func() bool   // whether there is a management API now
	Unready       func() string // why a test message could not arrive now; "" = it could arrive
	Look          func(ctx context.Context) (topology.Snapshot, error)
	// Policy returns the policy that the broker has now under the given name, or nil if there is none.
	// Its errors wrap ErrUnavailable.
	Policy func(ctx context.Context, name string) (*topology.Policy, error)
	Set    func(ctx context.Context, p topology.Policy) error
	Delete func(ctx context.Context, name string) error
	// Probe rejects a message in a temporary queue. It then waits until the channel "arrived" is
	// closed.
	Probe       func(ctx context.Context, queue, kind string, m deadletter.TrialMessage, arrived <-chan struct{}) error
	DeleteProbe func(ctx context.Context, queue string) error
}

// Adoption sets policies and removes them again, one change at a time.
type Adoption struct {
	store   Store
	places  []Place
	changed func(broker, vhost string) // called after each request for a change
	crash   func(point string)         // called at named points, for tests
	log     *slog.Logger

	changing sync.Mutex

	mu      sync.Mutex
	probing map[string]chan struct{} // channels by message id; each is closed when the message has arrived
}

// These are the time limits of one change. A change ends within them even if the client that
// requested it has disconnected.
const (
	changeWait = 2 * time.Minute
	probeWait  = 20 * time.Second // the time limit for the probe of one policy
	giveUpWait = 30 * time.Second // for taking back the policies of a change that failed
)

// recoverEvery is the time between two attempts to remove policies that a crash left unfinished.
const recoverEvery = 10 * time.Second

// New returns an Adoption for the given places. The caller must call Run, because Run removes the
// policies that dlo was setting when it crashed. The Adoption calls "changed" after each request
// for a change of a vhost. The function "crash" is only for tests, and may be nil.
func New(
	store Store, places []Place, changed func(broker, vhost string), crash func(point string), log *slog.Logger,
) *Adoption {
	if crash == nil {
		crash = func(string) {}
	}
	return &Adoption{
		store:   store,
		places:  places,
		changed: changed,
		crash:   crash,
		log:     log,
		probing: map[string]chan struct{}{},
	}
}

// Run removes policies that dlo had recorded but not yet proved when it crashed. It runs until ctx
// ends.
func (a *Adoption) Run(ctx context.Context) error {
	for {
		if err := a.recover(ctx); err != nil && ctx.Err() == nil {
			a.log.Warn("policies that were being set when dlo stopped could not be taken back yet", "err", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(recoverEvery):
		}
	}
}

// recover removes the policies that a crash left unfinished. The store records them as policies
// that dlo was about to set, although dlo is not setting any policy now.
func (a *Adoption) recover(ctx context.Context) error {
	a.changing.Lock()
	defer a.changing.Unlock()
	all, err := a.store.Declared(ctx)
	if err != nil {
		return err
	}
	var failed []error
	for _, d := range all {
		if d.Sure || d.Kind != deadletter.DeclaredPolicy {
			continue
		}
		if p := a.place(d.Broker, d.VHost); p != nil {
			failed = append(
				failed, a.takeBack(ctx, p, &d, deadletter.Service, "dlo ended before the policy was proved"),
			)
		}
	}
	return errors.Join(failed...)
}

// place returns the Place of a vhost. It returns nil if dlo has no management API for the vhost.
func (a *Adoption) place(broker, vhost string) *Place {
	for i := range a.places {
		if a.places[i].Broker == broker && a.places[i].VHost == vhost && a.places[i].Managed() {
			return &a.places[i]
		}
	}
	return nil
}

// allowed checks whether the principal may change the policies of a vhost, and returns the Place of
// this vhost. It returns an error if the principal may not, or if dlo cannot set policies in the
// vhost.
func (a *Adoption) allowed(by deadletter.Principal, broker, vhost string) (*Place, error) {
	if err := deadletter.Allow(by, deadletter.VerbAdopt, deadletter.Origin{Broker: broker, VHost: vhost}); err != nil {
		return nil, err
	}
	p := a.place(broker, vhost)
	if p == nil {
		return nil, fmt.Errorf(
			"%w: vhost %s of broker %s is not in the configuration, or has no management URL there",
			deadletter.ErrNotFound, deadletter.Visible(vhost), deadletter.Visible(broker),
		)
	}
	return p, nil
}

// Apply sets the policies of a plan, checks that they take effect, and proves each with a test
// message. If one of these steps fails, it removes all policies of the plan again. The error wraps
// ErrConflict if the vhost has changed since the plan was made. It can also wrap ErrForbidden,
// ErrInvalid, ErrNotFound or ErrUnavailable.
func (a *Adoption) Apply(ctx context.Context, by deadletter.Principal, plan topology.Plan) (topology.Applied, error) {
	out := topology.Applied{Broker: plan.Broker, VHost: plan.VHost}
	p, err := a.allowed(by, plan.Broker, plan.VHost)
	if err != nil {
		return out, err
	}
	if len(plan.Policies) == 0 {
		return out, fmt.Errorf("%w: the plan has no policy", deadletter.ErrInvalid)
	}
	a.changing.Lock()
	defer a.changing.Unlock()
	// if the client disconnects, the change continues, so that it is either finished or taken back
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), changeWait)
	defer cancel()
	defer a.changed(p.Broker, p.VHost)
	if err := p.checkUnchanged(ctx, &plan); err != nil {
		return out, err
	}
	if out.Policies, err = a.apply(ctx, by, p, &plan); err == nil {
		a.resume(ctx, by, p, plan.Queues())
	}
	return out, err
}

// apply first records that the policies of a plan will be set. It then sets the policies, proves
// them with test messages, and records that they are set. If a step fails, it removes the policies
// again.
func (a *Adoption) apply(
	ctx context.Context, by deadletter.Principal, p *Place, plan *topology.Plan,
) ([]topology.Proof, error) {
	rows, err := a.record(ctx, by, plan)
	if err != nil {
		return nil, err
	}
	a.crash("adopt: recorded")
	proofs, err := a.setPolicies(ctx, p, plan)
	if err != nil {
		return nil, a.giveUp(ctx, p, rows, by, err)
	}
	for i := range rows {
		rows[i].Sure = true
	}
	if err := a.store.Declare(ctx, rows, a.newAct(deadletter.ActPolicyApplied, by, rows, "")); err != nil {
		return nil, a.giveUp(ctx, p, rows, by, err)
	}
	return proofs, nil
}

// checkUnchanged checks that a vhost has not changed since a plan was made. For this, it makes the
// plan again and compares the two plans.
func (p *Place) checkUnchanged(ctx context.Context, plan *topology.Plan) error {
	s, err := p.Look(ctx)
	if err != nil {
		return fmt.Errorf("%w: %w", deadletter.ErrUnavailable, err)
	}
	now := topology.MakePlan(&s, topology.Want{
		Queues:        plan.Queues(),
		Exchange:      p.Exchange,
		AtLeastOnce:   plan.AtLeastOnce,
		BrokerRetries: plan.BrokerRetries,
		Intents:       p.Intents,
	})
	if changed := plan.Differences(&now); len(changed) > 0 {
		return fmt.Errorf(
			"%w: the vhost has changed since the plan was made. Make the plan again. %s", deadletter.ErrConflict,
			strings.Join(changed, "; "),
		)
	}
	return nil
}

// record writes a record of each policy of a plan to the store, before the policies are set. It
// returns these records.
func (a *Adoption) record(
	ctx context.Context, by deadletter.Principal, plan *topology.Plan,
) ([]deadletter.Declared, error) {
	var rows []deadletter.Declared
	for i := range plan.Policies {
		detail, err := json.Marshal(&plan.Policies[i])
		if err != nil {
			return nil, err
		}
		rows = append(rows, deadletter.Declared{
			Broker: plan.Broker,
			VHost:  plan.VHost,
			Kind:   deadletter.DeclaredPolicy,
			Name:   plan.Policies[i].Name,
			Detail: detail,
			By:     by.Name,
		})
	}
	return rows, a.store.Declare(ctx, rows, deadletter.Act{})
}

// newAct returns the entry for the audit log about a change of policies. The store records this
// entry.
func (a *Adoption) newAct(kind string, by deadletter.Principal, rows []deadletter.Declared, why string) deadletter.Act {
	var names []string
	for _, d := range rows {
		names = append(names, d.Name)
	}
	detail := fmt.Sprintf("policies %s in vhost %s", strings.Join(names, ", "), deadletter.Visible(rows[0].VHost))
	if why != "" {
		detail += ": " + why
	}
	act := deadletter.Once(kind, by.Name, detail, deadletter.Target{
		Kind: deadletter.TargetBroker,
		Name: rows[0].Broker,
	})
	act.Asked, act.Done = deadletter.Amount(len(rows)), deadletter.Amount(len(rows))
	return act
}

// setPolicies sets the policies of a plan and verifies that they apply to their queues. It then
// proves each policy with a test message.
func (a *Adoption) setPolicies(ctx context.Context, p *Place, plan *topology.Plan) ([]topology.Proof, error) {
	for i := range plan.Policies {
		if err := p.Set(ctx, plan.Policies[i].Policy); err != nil {
			return nil, err
		}
		a.crash("adopt: set")
	}
	s, err := p.Look(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", deadletter.ErrUnavailable, err)
	}
	if wrong := plan.Verify(&s); len(wrong) > 0 {
		return nil, fmt.Errorf("%w: %s", deadletter.ErrConflict, strings.Join(wrong, "; "))
	}
	a.crash("adopt: verified")
	var proofs []topology.Proof
	for i := range plan.Policies {
		planned := &plan.Policies[i]
		proof := topology.Proof{Policy: planned.Name, Queues: planned.Queues}
		if proof.Why = p.Unready(); proof.Why == "" {
			if err := a.prove(ctx, p, planned); err != nil {
				return nil, fmt.Errorf(
					"%w: policy %s is set, and the test message did not reach dlo: %w", deadletter.ErrConflict,
					planned.Name, err,
				)
			}
			proof.Proved = true
		}
		proofs = append(proofs, proof)
		a.crash("adopt: proved")
	}
	return proofs, nil
}

// prove sends a message through the temporary queue of a policy, and waits until dlo has stored the
// message.
func (a *Adoption) prove(ctx context.Context, p *Place, planned *topology.Planned) error {
	ctx, cancel := context.WithTimeout(ctx, probeWait)
	defer cancel()
	id, arrived := "dlo-probe-"+string(deadletter.NewToken()), make(chan struct{})
	a.mu.Lock()
	a.probing[id] = arrived
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		delete(a.probing, id)
		a.mu.Unlock()
	}()
	at := time.Now()
	body, err := payload.Trial(
		fmt.Sprintf("Dead Letter Office rejects this message to prove policy %s.", planned.Name), p.Broker,
		deadletter.Service.Name, at,
	)
	if err != nil {
		return err
	}
	return p.Probe(ctx, planned.ProbeQueue(), planned.Type, deadletter.TrialMessage{
		Body: body,
		Properties: deadletter.Properties{
			MessageID:    id,
			AppID:        "dlo",
			ContentType:  payload.TrialContent,
			DeliveryMode: 2,
			Timestamp:    at.Truncate(time.Second),
			Headers:      deadletter.Table{deadletter.HeaderTrial: a.store.TrialMark(id)},
		},
	}, arrived)
}

// Arrived must be called for each letter that dlo itself created, once the letter is stored and
// classified.
func (a *Adoption) Arrived(l *deadletter.Letter) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if arrived := a.probing[l.Arrived.MessageID]; arrived != nil {
		close(arrived)
		delete(a.probing, l.Arrived.MessageID)
	}
}
