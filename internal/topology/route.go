package topology

import (
	"slices"
	"strings"
)

// network finds out which queues a message reaches.
type network struct {
	queues    map[string]*Queue
	exchanges map[string]*Exchange
	from      map[string][]*Binding // the bindings of each source exchange
	to        map[string][]*Binding // the bindings of each destination queue
	into      map[string][]*Binding // the bindings of each destination exchange
	rules     map[string]rule       // for exchanges that were asked for: the policy that applies
	headers   bool                  // a binding has arguments, which may ask for the reason of a death
	s         *Snapshot
}

func newNetwork(s *Snapshot) *network {
	n := &network{
		queues: map[string]*Queue{}, exchanges: map[string]*Exchange{}, rules: map[string]rule{}, s: s,
		from: map[string][]*Binding{}, to: map[string][]*Binding{}, into: map[string][]*Binding{},
	}
	for i := range s.Queues {
		n.queues[s.Queues[i].Name] = &s.Queues[i]
	}
	for _, x := range predeclared {
		n.exchanges[x.Name] = &x
	}
	for i := range s.Exchanges {
		n.exchanges[s.Exchanges[i].Name] = &s.Exchanges[i]
	}
	for _, of := range s.Bindings {
		b := &of
		if b.Source == "" {
			continue // a binding of the default exchange, which every queue has
		}
		b.words, n.headers = wordsOf(b.Key), n.headers || len(b.Arguments) > 0
		n.from[b.Source] = append(n.from[b.Source], b)
		if b.To == "queue" {
			n.to[b.Destination] = append(n.to[b.Destination], b)
		} else {
			n.into[b.Destination] = append(n.into[b.Destination], b)
		}
	}
	return n
}

// predeclared contains the exchanges that exist in every vhost, and that definitions files omit.
var predeclared = []Exchange{
	{Name: "", Type: "direct"},
	{Name: "amq.direct", Type: "direct"},
	{Name: "amq.fanout", Type: "fanout"},
	{Name: "amq.topic", Type: "topic"},
	{Name: "amq.headers", Type: "headers"},
	{Name: "amq.match", Type: "headers"},
	{Name: "amq.rabbitmq.trace", Type: "topic"},
}

// routed says which queues a message reaches.
type routed struct {
	queues []string // queues that the message reaches
	// queues and exchanges that bindings name but that do not exist; only a definitions file can
	// show this
	missing []string
	maybe   []string // queues that the message may reach, behind exchanges that dlo does not judge
	unknown []string // the names of these exchanges
}

// route finds out where a message goes. The message is published to the given exchange with the
// given routing key. The parameter "d" describes a dead letter; nil means any message.
func (n *network) route(exchange, key string, d *death) routed {
	var r routed
	matches := func(x *Exchange, b *Binding) (matches, known bool) { return x.matches(b, key, d) }
	n.follow(exchange, key, matches, &r, map[passed]bool{}, false)
	return r
}

// matcher reports whether a binding of an exchange matches a message, and whether that is known.
type matcher func(x *Exchange, b *Binding) (matches, known bool)

// passed is an exchange on the way of a message. The field "may" is true if it is not known whether
// the message comes to the exchange.
type passed struct {
	exchange string
	may      bool
}

// follow adds to r what a message reaches through an exchange. The parameter "may" is true if it is
// not known whether the message comes to the exchange.
func (n *network) follow(exchange, key string, matches matcher, r *routed, seen map[passed]bool, may bool) {
	x := n.exchanges[exchange]
	if x == nil || seen[passed{exchange, may}] || seen[passed{exchange, false}] {
		return
	}
	seen[passed{exchange, may}] = true
	found, sure := false, false // whether a binding may match the message, and whether one does
	reach := func(queue string, may bool) {
		list := &r.queues
		if may {
			list = &r.maybe
		}
		if !slices.Contains(*list, queue) {
			*list = append(*list, queue)
		}
	}
	if exchange == "" {
		if n.queues[key] != nil {
			reach(key, may)
		}
		return
	}
	for _, b := range n.from[exchange] {
		fits, known := matches(x, b)
		if known && !fits {
			continue
		}
		found, sure = true, sure || known
		if !known {
			r.unknown = append(r.unknown, exchange)
		}
		switch {
		case b.To == "exchange":
			n.follow(b.Destination, key, matches, r, seen, may || !known)
		case n.queues[b.Destination] != nil:
			reach(b.Destination, may || !known)
		case known && !may:
			r.missing = append(r.missing, b.Destination)
		}
	}
	if sure {
		return
	}
	others, known := n.alternate(x)
	if !known {
		r.unknown = append(r.unknown, exchange)
	}
	for _, other := range others {
		n.follow(other, key, matches, r, seen, may || found || !known)
	}
}

// alternate returns the exchanges that may be the alternate exchange of an exchange, which takes
// the messages that the exchange cannot route. An argument takes precedence over a policy. The
// result "known" is false if policies are unknown or tied, so that another one or none may be it.
func (n *network) alternate(x *Exchange) (names []string, known bool) {
	if name, ok := x.Arguments.Text("alternate-exchange"); ok {
		return []string{name}, true
	}
	r := n.ruleOf(x)
	sure, ok := r.winner.definition().Text("alternate-exchange")
	if ok {
		names = append(names, sure)
	}
	known = r.unread == ""
	for _, p := range slices.Concat(r.tied, r.unsure) {
		name, sets := p.Definition.Text("alternate-exchange")
		if x.Policy != nil || name == sure || r.winner != nil && p.Priority < r.winner.Priority {
			continue
		}
		if known = false; sets {
			names = append(names, name)
		}
	}
	return names, known
}

// ruleOf returns which policy applies to an exchange.
func (n *network) ruleOf(x *Exchange) rule {
	if _, known := n.rules[x.Name]; !known {
		n.rules[x.Name] = n.s.policyFor(n.s.Policies, &Queue{Name: x.Name, Type: ofExchanges}, x.Policy)
	}
	return n.rules[x.Name]
}

// routing returns the type of an exchange that decides how it routes. A delayed exchange routes as
// its argument says.
func (x *Exchange) routing() string {
	if x.Type == "x-delayed-message" {
		kind, _ := x.Arguments.Text("x-delayed-type")
		return kind
	}
	return x.Type
}

// matches reports whether a binding matches a message. The result "known" is false if the exchange
// looks at something that dlo does not know, or if its type is unknown.
func (x *Exchange) matches(b *Binding, key string, d *death) (matches, known bool) {
	switch x.routing() {
	case "fanout":
		return true, true
	case "direct":
		return b.Key == key, true
	case "topic":
		return topicFits(b.words, wordsOf(key)), true
	case "headers":
		return b.matchesHeaders(d)
	}
	return false, false
}

// takesAll reports whether an exchange routes every message to a queue, whatever its routing key
// is.
func (n *network) takesAll(exchange string) bool { return n.anyKey(exchange, map[string]bool{}) }

func (n *network) anyKey(exchange string, seen map[string]bool) bool {
	x := n.exchanges[exchange]
	if x == nil || seen[exchange] {
		return false
	}
	seen[exchange] = true
	for _, b := range n.from[exchange] {
		all, known := true, true
		switch x.routing() {
		case "fanout":
		case "topic":
			all = b.Key == "#"
		case "headers":
			all, known = b.matchesHeaders(nil)
		default:
			continue
		}
		if !all || !known {
			continue
		}
		if b.To == "queue" && n.queues[b.Destination] != nil || b.To == "exchange" && n.anyKey(b.Destination, seen) {
			return true
		}
	}
	return false
}

// routesNames reports whether every routing key that an exchange routes is the name of a queue.
// Such an exchange is meant for messages that were published through the default exchange.
func (n *network) routesNames(x *Exchange) bool {
	others, known := n.alternate(x)
	if !known || len(others) > 0 || x.routing() != "direct" || x.Name != "" && len(n.from[x.Name]) == 0 {
		return false
	}
	return !slices.ContainsFunc(n.from[x.Name], func(b *Binding) bool { return n.queues[b.Key] == nil })
}

// published returns the routing keys with which messages reach a queue. It finds them in the
// bindings of the queue, and returns each key with its binding. A queue without a binding gets
// messages through the default exchange, with its name as the key. So does a queue to which dlo
// requeues letters, so published returns this key, as a guess, for queues with bindings too.
//
// For a topic pattern, published returns one of the keys that the pattern matches. The result
// "unknown" is true if other keys are possible too, for example because a fanout exchange is bound
// to the queue.
func (n *network) published(queue string) (keys []publishedKey, unknown bool) {
	bound := n.to[queue]
	keys = []publishedKey{{key: queue, guessed: len(bound) > 0}}
	for _, b := range bound {
		more, known := n.keysOf(b)
		keys, unknown = append(keys, more...), unknown || !known
	}
	return keys, unknown
}

// publishedKey is a routing key of messages that reach a queue.
type publishedKey struct {
	key  string
	from *Binding // the binding that the key comes from; nil = the default exchange
	// guessed is true if it is unknown whether messages with this key ever come. For example, the
	// key may be the name of a queue that gets its messages from other exchanges, or one of the
	// many keys that a topic pattern matches.
	guessed bool
	set     keySet // all keys of which this one is an example; nil = there is only this key
}

// asBound returns the routing key as it is written in a binding, where it may be a pattern.
func (k publishedKey) asBound() string {
	if k.set == nil {
		return k.key
	}
	return strings.Join(k.set[len(k.set)-1], ".")
}
