package topology

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Want says what a plan should achieve.
type Want struct {
	Queues      []string // the queues whose dead letters should go to Exchange
	Exchange    string   // for example dlo.dlx; it must exist, and route every key to a queue
	AtLeastOnce bool     // quorum queues should dead-letter at least once
	// the broker should retry first in quorum queues, see brokerRetries
	BrokerRetries bool
	Intents       []IntentOf
}

// Wish selects the queues to plan for.
type Wish struct {
	Broker string `json:"broker,omitzero"` // "" = all brokers
	VHost  string `json:"vhost,omitzero"`  // "" = all vhosts
	// names or globs; none = all queues with a finding that a policy cures
	Queues      []string `json:"queues,omitzero"`
	AtLeastOnce bool     `json:"at_least_once,omitzero"` // quorum queues should dead-letter at least once
	// quorum queues should have delayed retry: the broker retries first, and then dlo
	BrokerRetries bool `json:"broker_retries,omitzero"`
}

// Plan is a set of policies that cure findings about queues of one vhost. A plan contains no other
// changes to the vhost.
type Plan struct {
	Broker        string    `json:"broker"`
	VHost         string    `json:"vhost"`
	AtLeastOnce   bool      `json:"at_least_once"`
	BrokerRetries bool      `json:"broker_retries"`
	Policies      []Planned `json:"policies"`
	Refused       []Refusal `json:"refused"`
	Drops         []Drop    `json:"drops,omitzero"` // planned queues that drop messages by design
	// a rule as YAML for dlo's configuration, which discards the dead letters of the queues in
	// Drops; "" if there are none
	Rule string `json:"rule,omitzero"`
}

// Planned is one policy of a plan.
type Planned struct {
	Policy
	Queues []string `json:"queues"` // queues to which the policy applies, without its probe queue
	Type   string   `json:"type"`   // type of the queues: classic or quorum
	// the policy that now applies to the queues, and whose keys the planned policy repeats; "" =
	// none
	Hides   string      `json:"hides"`
	Changes []KeyChange `json:"changes"` // changes of the settings of the queues, in the order of the keys
}

// KeyChange is the change of one key by a planned policy. Before and After are JSON, or "" if the
// key is not set.
type KeyChange struct {
	Key    string `json:"key"`
	Before string `json:"before"`
	After  string `json:"after"`
}

// Words describes the change, for example "max-length: 1000 becomes 7".
func (c KeyChange) Words() string {
	switch {
	case c.Before == "":
		return c.Key + ": " + c.After + " is added"
	case c.After == "":
		return c.Key + ": " + c.Before + " is removed"
	}
	return c.Key + ": " + c.Before + " becomes " + c.After
}

// Refusal is a queue that a plan does not change, and the reason.
type Refusal struct {
	Queue string `json:"queue"`
	Why   string `json:"why"`
}

// These are the limits of one policy. They keep its pattern readable, and far below the limits of
// PCRE.
const (
	maxPlanned = 100  // the maximum number of queues in one policy
	maxPattern = 8000 // the maximum size of a pattern in bytes
)

// maxPriority is the highest priority that a planned policy can have. Tools that people write
// policies with use 32 bits for a priority.
const maxPriority = 1<<31 - 1

// MakePlan plans policies that route the dead letters of queues to an exchange. If a policy for a
// queue is impossible or unwise, the plan refuses the queue and gives the reason.
func MakePlan(s *Snapshot, w Want) Plan {
	variants := s.variants()
	s = variants[len(variants)-1]
	p := &planner{s: s, variants: variants, w: w, net: newNetwork(s), plan: Plan{
		Broker: s.Broker, VHost: s.VHost, AtLeastOnce: w.AtLeastOnce, BrokerRetries: w.BrokerRetries,
		Policies: []Planned{}, Refused: []Refusal{},
	}}
	groups := map[string][]*view{}
	for _, name := range slices.Compact(slices.Sorted(slices.Values(w.Queues))) {
		v, why := p.accept(name)
		if why != "" {
			p.refuse(name, why)
			continue
		}
		// The queues of one policy have the same type and the same priority, and the same policy
		// applies to them now.
		key := fmt.Sprintf("%s\x00%s\x00%d", v.policyName(), v.Kind(), v.priority())
		groups[key] = append(groups[key], v)
	}
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		for _, part := range policyParts(groups[key]) {
			p.add(part)
		}
	}
	p.plan.Rule = p.plan.DropRule()
	return p.plan
}

// Choose returns the queues for which a policy is planned. If the parameter "globs" contains names
// or globs, these are the queues that they select. A name that selects nothing is returned too, so
// that the plan refuses it.
//
// Without names or globs, Choose returns the queues with a finding that a policy cures. If the only
// such finding says that a queue dead-letters at most once, the queue is included only if the
// parameter "atLeastOnce" is true.
func Choose(s *Snapshot, found []Finding, globs []string, atLeastOnce bool) []string {
	var list []string
	for _, f := range found {
		if len(globs) == 0 && f.Plannable && (atLeastOnce || !f.Weak()) {
			list = append(list, f.Curable()...)
		}
	}
	for _, g := range globs {
		n := len(list)
		exact := slices.ContainsFunc(s.Queues, func(q Queue) bool { return q.Name == g })
		for _, q := range s.Queues {
			if !exact && deadletter.Glob(g, q.Name, false) && q.isDurableWork() && !deadletter.OwnQueue(q.Name) {
				list = append(list, q.Name)
			}
		}
		if len(list) == n {
			list = append(list, g)
		}
	}
	return list
}

type planner struct {
	s        *Snapshot
	variants []*Snapshot // the vhost as each version would read it that a file may be from
	w        Want
	net      *network
	plan     Plan
}

func (p *planner) refuse(queue, why string) {
	p.plan.Refused = append(p.plan.Refused, Refusal{queue, why})
}

// accept returns a queue if a policy can be planned for it. Otherwise it returns the reason why
// not.
func (p *planner) accept(name string) (*view, string) {
	q := p.net.queues[name]
	reached := p.net.route(p.w.Exchange, name, nil).queues
	switch {
	case !p.s.complete():
		return nil, "dlo could not read all of the vhost; `dlo topology check` shows what is missing"
	case p.w.Exchange == "":
		return nil, "the configuration of the broker has no dead-letter exchange"
	case !p.net.takesAll(p.w.Exchange):
		return nil, textf(
			"exchange %s does not exist in this vhost, or does not route every key to a queue. `dlo serve` declares dlo.dlx and its queue in each vhost of its configuration",
			p.w.Exchange,
		)
	case q == nil:
		return nil, "there is no such queue"
	case deadletter.OwnQueue(name):
		return nil, "it is a queue of dlo"
	case q.isFederation():
		return nil, "it belongs to a federation link, which declares and deletes it"
	case slices.Contains(reached, name):
		return nil, textf("exchange %s leads to it", p.w.Exchange)
	case !utf8.ValidString(name):
		return nil, "the name is not valid UTF-8, and a policy cannot carry it"
	case safeName(name) != name || safeName(p.s.VHost) != p.s.VHost:
		return nil, "the name of the queue or of the vhost has invisible characters, so nobody could read the command that sets the policy"
	case p.net.queues[name+"\n"] != nil:
		return nil, "another queue has the same name with a line feed at the end, and the pattern would match that queue too"
	case intentFor(p.w.Intents, name) == IntentNever:
		return nil, "the setting intents in the configuration says that none of its messages are kept"
	case !q.isDurableWork():
		return nil, textf("its type is %s, and it does not dead-letter or is deleted with its connection", q.Kind())
	}
	v := p.net.viewOf(q)
	if why := p.hidesUnknown(v); why != "" {
		return nil, why
	}
	key, hinders, hindered := v.atLeastOnceHindrance()
	_, limited := v.DeliveryLimit(p.s.Version)
	version := p.s.Version
	if version != p.variants[0].Version { // the file has none
		version = ""
	}
	others := slices.DeleteFunc(slices.Clone(v.Queues), func(to string) bool { return slices.Contains(reached, to) })
	switch {
	case v.Exchange.From == FromArgument && v.Set:
		return nil, textf(
			"it was declared with the argument x-dead-letter-exchange %s, which overrides every policy",
			v.Exchange.Text,
		)
	case v.Exchange.From == FromOperator && v.Set:
		return nil, textf(
			"operator policy %s sets its dead-letter exchange, which overrides every policy", v.Exchange.Policy,
		)
	case v.Set && v.Exchange.Text == p.w.Exchange && len(v.policy.tied) == 0 && !p.makesAtLeastOnce(v) &&
		!p.makesRetries(v):
		return nil, "its dead letters already go to " + safeName(p.w.Exchange)
	case len(others) > 0:
		return nil, textf(
			"its dead letters already go to %s. To take them over, let dlo drain that queue", nameList(others),
		)
	case p.w.AtLeastOnce && v.Kind() == Quorum && hindered:
		return nil, textf(
			"it cannot dead-letter at least once: %s %s, which overrides every policy. Plan it without at-least-once",
			hinders.setBy(key), hinders.Text,
		)
	case p.makesRetries(v) && (numberOf(version) < numberOf("4.3") || version == "4.3.0"):
		return nil, textf(
			"policies can set delayed retry since RabbitMQ 4.3.1, and this is %s. Plan it without broker-retries",
			cmp.Or(safeName(version), "an unknown version"),
		)
	case p.makesRetries(v) && !limited:
		return nil, "it has no delivery limit, so the broker would retry a message for ever. Plan it without broker-retries"
	case v.priority() > maxPriority:
		return nil, textf(
			"a matching policy has the priority %d, and a policy cannot have a higher one", v.priority()-1,
		)
	}
	return v, ""
}

// hidesUnknown returns the reason why a policy of the plan could take away settings that dlo does
// not know, so that it could not repeat them. It returns "" if there is none.
func (p *planner) hidesUnknown(v *view) string {
	if why := v.unknownPolicy(); why != "" {
		return why
	}
	if len(v.policy.tied) > 0 && v.Queue.Policy == nil {
		return textf(
			"policies %s and %s have the same priority, and the file does not say which one applies. A policy of dlo would take away what it sets",
			v.policyName(), v.policy.tied[0].Name,
		)
	}
	at := slices.IndexFunc(p.s.Queues, func(q Queue) bool { return q.Name == v.Name })
	for _, s := range p.variants[:len(p.variants)-1] { // the last one is p.s
		e := s.EffectOf(&s.Queues[at])
		if e.policyName() != v.policyName() || e.Queue.Kind() != v.Kind() {
			return "the type of the queue, or the policy that applies to it, depends on the version of RabbitMQ. Plan with --broker, or with a file that says its version"
		}
	}
	return ""
}

// policyName returns the name of the policy that applies to a queue; "" = none.
func (e *Effect) policyName() string {
	if e.policy.winner == nil {
		return ""
	}
	return e.policy.winner.Name
}

// unknownPolicy returns the reason why dlo does not know what a queue gets from its policy, or ""
// if it does. Only one policy applies to a queue, so another policy would take that away.
func (e *Effect) unknownPolicy() string {
	const stays = "A policy of dlo would hide it, and take away what it sets"
	if len(e.policy.unsure) > 0 {
		return textf(
			"dlo cannot evaluate the pattern of policy %s, so it may apply to the queue. %s", e.policy.unsure[0].Name,
			stays,
		)
	}
	if e.policy.unread != "" {
		return textf("policy %s applies to it, and dlo could not read that policy. %s", e.policy.unread, stays)
	}
	if keys := e.unknownKeys(); len(keys) > 0 {
		return textf(
			"the broker reports that a policy sets %s %s, and dlo knows no policy that does. %s", keys[0],
			compact(e.reported[keys[0]]), stays,
		)
	}
	return ""
}

// brokerRetries are the keys of a policy with which a quorum queue holds back for 5 s x n what its
// consumers failed to do n times, at most 5 min (since 4.3.1). At the delivery limit the message
// dies, and dlo takes it.
var brokerRetries = Definition{
	"delayed-retry-type": "failed", "delayed-retry-min": json.Number("5000"), "delayed-retry-max": json.Number("300000"),
}

// makesRetries reports whether the plan gives delayed retry to a queue that does not have it now.
func (p *planner) makesRetries(v *view) bool {
	delay, _ := v.DelayedRetry()
	return p.w.BrokerRetries && v.Kind() == Quorum && delay == 0
}

// makesAtLeastOnce reports whether the plan changes a queue so that it dead-letters at least once.
// If the queue already does so now, the result is false.
func (p *planner) makesAtLeastOnce(v *view) bool {
	_, works := v.atLeastOnce()
	return p.w.AtLeastOnce && v.Kind() == Quorum && !works
}

// priority returns the priority that makes a policy certain to apply to a queue. It is one above
// the highest priority of the policies that match or may match the queue.
func (v *view) priority() int {
	n := 0
	for _, p := range slices.Concat([]*Policy{v.policy.winner, v.policy.ignored}, v.policy.tied, v.policy.unsure) {
		if p != nil {
			n = max(n, p.Priority+1)
		}
	}
	return n
}

// policyParts divides queues into parts that are small enough for one policy each.
func policyParts(all []*view) [][]*view {
	var list [][]*view
	var part []*view
	size := 0
	for _, v := range all {
		n := len(regexp.QuoteMeta(v.Name)) + 1
		if len(part) == maxPlanned || size+n > maxPattern && len(part) > 0 {
			list, part, size = append(list, part), nil, 0
		}
		part, size = append(part, v), size+n
	}
	return append(list, part)
}

// add adds one policy to the plan. The policy is for queues to which the same policy applies now.
// Its setting apply-to has the value "queues", although all of these queues have the same type.
// RabbitMQ 3.10 refuses the newer values, such as "quorum_queues".
func (p *planner) add(queues []*view) {
	v := queues[0]
	before := Definition{}
	planned := Planned{Policy: Policy{Priority: v.priority(), ApplyTo: "queues"}, Type: v.Kind()}
	if w := v.policy.winner; w != nil {
		planned.Hides, before = w.Name, w.Definition
	}
	after := before.With(Definition{"dead-letter-exchange": p.w.Exchange})
	if v.Exchange.Text != p.w.Exchange {
		delete(after, "dead-letter-routing-key") // the key belongs to the previous exchange
	}
	if p.w.AtLeastOnce && v.Kind() == Quorum {
		maps.Copy(after, atLeastOnceKeys)
	}
	if p.makesRetries(v) {
		maps.Copy(after, brokerRetries)
	}
	planned.Definition, planned.Changes = after, changes(before, after)
	for _, q := range queues {
		planned.Queues = append(planned.Queues, q.Name)
	}
	hash := hashOf(planned.Queues)
	planned.Name, planned.Pattern = policyPrefix+hash, patternOf(planned.Queues, hash)
	planned.Priority = planned.priorityWithProbe(p.s)
	if why := p.conflict(&planned.Policy, planned.Queues); why != "" {
		for _, name := range planned.Queues {
			p.refuse(name, why)
		}
		return
	}
	p.plan.Policies = append(p.plan.Policies, planned)
	for _, q := range queues {
		if d, ok := dropOf(q); ok && intentFor(p.w.Intents, q.Name) == IntentFailures {
			p.plan.Drops = append(p.plan.Drops, d)
		}
	}
}

// priorityWithProbe returns a priority that makes the policy apply to its probe queue as well. In
// the probe queue, dlo proves with a test message that the policy works. The name of the probe
// queue begins like those of dlo's own queues, and another policy may be meant for all of these.
// The priority must be higher than that of such a policy.
func (p *Planned) priorityWithProbe(s *Snapshot) int {
	probe, n := Queue{Name: p.ProbeQueue(), Type: p.Type}, p.Priority
	for i := range s.Policies {
		if s.Policies[i].unsupported(s.behaves(), p.Type) != "" {
			continue
		}
		if takes, known := s.matchesQueue(&s.Policies[i], &probe); takes || !known {
			n = max(n, s.Policies[i].Priority+1)
		}
	}
	return n
}

// policyPrefix is the prefix of the names of planned policies. A hash of the queues follows it.
const policyPrefix = "dlo-"

// hashOf returns the hash of a list of queues. This hash is a part of the names of their policy and
// of its probe queue, the temporary queue in which dlo tests the policy.
func hashOf(queues []string) string {
	sum := sha256.Sum256([]byte(strings.Join(queues, "\n")))
	return hex.EncodeToString(sum[:4])
}

// patternOf returns a pattern that matches exactly the given queues, and the temporary queue in
// which dlo tests their policy.
func patternOf(queues []string, hash string) string {
	quoted := make([]string, len(queues), len(queues)+1)
	for i, name := range queues {
		quoted[i] = regexp.QuoteMeta(name)
	}
	return "^(" + strings.Join(append(quoted, regexp.QuoteMeta(deadletter.ProbePrefix+hash)), "|") + ")$"
}

// ProbeQueue returns the name of the temporary queue in which dlo proves that the policy works. The
// policy matches this queue too. dlo can therefore send its test message there, and need not send
// it to a queue of another owner.
func (p *Planned) ProbeQueue() string {
	return deadletter.ProbePrefix + strings.TrimPrefix(p.Name, policyPrefix)
}

// Without returns a policy that replaces the policy p when the queues "leaving" are removed from
// it. The new policy is for the remaining queues only. The parameter s is the vhost as it is now.
// The new policy gets a priority above that of p, because p still exists when the new policy is
// set.
//
// It is possible that the broker applies another policy, and not p, to one of the remaining queues.
// The new policy would then hide the keys of that policy. In this case, Without returns the reason
// why the queues cannot be removed.
func (p Planned) Without(leaving []string, s *Snapshot) (Planned, string) {
	old := p.Name
	p.Queues = slices.DeleteFunc(slices.Clone(p.Queues), func(q string) bool { return slices.Contains(leaving, q) })
	hash := hashOf(p.Queues)
	p.Name, p.Pattern, p.Priority = policyPrefix+hash, patternOf(p.Queues, hash), p.Priority+1
	net := newNetwork(s)
	for _, name := range p.Queues {
		q := net.queues[name]
		if q == nil {
			continue
		}
		v := view{Queue: q, Effect: s.EffectOf(q)}
		if why := v.unknownPolicy(); why != "" {
			return p, textf("queue %s, which keeps the policy: %s", name, why)
		}
		for _, other := range slices.Concat([]*Policy{v.policy.winner}, v.policy.tied) {
			if other != nil && other.Name != old {
				return p, textf(
					"policy %s applies to queue %s, which shares policy %s with the queues that leave. Undo or delete policy %s first, so that its keys are not hidden",
					other.Name, name, old, other.Name,
				)
			}
		}
		p.Priority = max(p.Priority, v.priority())
	}
	if p.Priority = p.priorityWithProbe(s); p.Priority > maxPriority {
		return p, "the policy of the remaining queues needs a priority that is too high"
	}
	return p, ""
}

// conflict returns the reason why a planned policy must not be set: it would replace another
// policy, or it would apply to a queue that nobody chose. It returns "" if there is no such reason.
func (p *planner) conflict(policy *Policy, chosen []string) string {
	if policy.Priority > maxPriority {
		return "a policy that matches dlo's own queues already has the highest possible priority, so dlo's policy cannot rank above it"
	}
	if slices.ContainsFunc(p.s.Policies, func(other Policy) bool { return other.Name == policy.Name }) {
		return textf("the vhost already has a policy with the name %s. Remove that policy first", policy.Name)
	}
	for i := range p.s.Queues {
		q := &p.s.Queues[i]
		if takes, _ := p.s.matchesQueue(policy, q); takes && !slices.Contains(chosen, q.Name) &&
			!deadletter.IsProbe(q.Name) {
			return textf("its policy would also apply to queue %s", q.Name)
		}
	}
	return ""
}

// replaced returns the definition that applied to the queues before the policy was set.
func (p *Planned) replaced() Definition {
	before := maps.Clone(p.Definition)
	for _, c := range p.Changes {
		if c.Before == "" {
			delete(before, c.Key)
		} else {
			before[c.Key] = json.RawMessage(c.Before)
		}
	}
	return before
}

// changes returns the keys whose values differ between two definitions.
func changes(before, after Definition) []KeyChange {
	var list []KeyChange
	for _, key := range slices.Sorted(maps.Keys(after.With(before))) {
		c := KeyChange{Key: key, Before: before.json(key), After: after.json(key)}
		if c.Before != c.After {
			list = append(list, c)
		}
	}
	return list
}

// json returns the value of a key as JSON; "" if it is not set.
func (d Definition) json(key string) string {
	v, ok := d[key]
	if !ok {
		return ""
	}
	text, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(text)
}

// Verify compares the vhost as it is now with a plan that was applied. It returns one sentence for
// each queue that differs from the plan.
func (p *Plan) Verify(s *Snapshot) []string {
	net := newNetwork(s)
	var wrong []string
	add := func(format string, args ...any) { wrong = append(wrong, textf(format, args...)) }
	for _, planned := range p.Policies {
		exchange, _ := planned.Definition.Text("dead-letter-exchange")
		for _, name := range planned.Queues {
			q := net.queues[name]
			if q == nil {
				add("queue %s is gone", name)
				continue
			}
			v := net.viewOf(q)
			_, works := v.atLeastOnce()
			switch winner := v.policyName(); {
			case winner == "":
				add("no policy applies to queue %s, although policy %s should", name, planned.Name)
			case winner != planned.Name:
				add("policy %s applies to queue %s instead of policy %s", winner, name, planned.Name)
			case v.Exchange.Text != exchange || len(v.Queues) == 0 || len(v.Lost) > 0:
				add("dead letters of queue %s do not reach a queue through exchange %s", name, exchange)
			case p.AtLeastOnce && planned.Type == Quorum && !works:
				add("queue %s does not dead-letter at least once, although policy %s sets it", name, planned.Name)
			}
		}
	}
	return wrong
}
