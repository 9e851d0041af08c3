package topology

import "slices"

// Path is where the dead letters of a queue go.
type Path struct {
	Set      bool    // an exchange is set
	Exchange Setting // it
	Key      Setting // the routing key that replaces the message's own
	Fixed    bool    // Key is set
	Exists   bool    // the exchange exists
	Bound    bool    // the exchange has a binding or an alternate exchange
	Queues   []string
	Guessed  []string // those of Queues that only messages with a guessed key reach
	Missing  []string // queues that bindings in a file name but that are missing in the file
	Dangles  bool     // a key leads only to queues that are missing
	Lost     []string // keys with which messages reach the queue but its dead letters reach no queue
	Again    bool     // a letter that was requeued to the queue by its name is lost when it dies again
	AnyKey   bool     // messages have keys that dlo does not know, and dead letters keep these keys
	OnlyName bool     // of the unknown keys (AnyKey), the exchange seems to route only the queue's own name
	Unsure   bool     // an exchange routes by headers, or is of an unknown type

	hops []hop
}

// hop is a queue that dead letters reach with one routing key.
type hop struct {
	publishedKey
	to string
}

// path follows the dead letters of a queue. The dead letters of other queues come with the keys in
// carried.
func (n *network) path(e *Effect, carried []publishedKey) Path {
	var p Path
	p.Exchange, p.Set = e.Text("dead-letter-exchange")
	if !p.Set || e.Queue.Kind() == Stream {
		p.Set = false
		return p
	}
	p.Key, p.Fixed = e.Text("dead-letter-routing-key")
	x := n.exchanges[p.Exchange.Text]
	p.Exists = x != nil
	if !p.Exists {
		return p
	}
	if p.Exchange.Text != "" {
		other, ok := n.alternate(x)
		p.Bound = len(n.from[x.Name]) > 0 || ok && n.exchanges[other] != nil
	} else {
		p.Bound = true
	}
	keys, unknown := n.published(e.Queue.Name)
	if p.Fixed {
		keys, carried = []publishedKey{{key: p.Key.Text}}, nil
	}
	p.AnyKey = unknown && !p.Fixed
	all := n.takesAll(p.Exchange.Text)
	for _, k := range keys {
		r := n.route(p.Exchange.Text, k.key)
		p.Unsure = p.Unsure || r.unsure
		p.Missing = append(p.Missing, r.missing...)
		p.reach(k, r.queues, e.Queue.Name)
		if len(r.queues) > 0 || r.unsure || all {
			continue
		}
		if len(r.missing) > 0 {
			p.Dangles = true
			continue
		}
		p.Lost = append(p.Lost, k.said())
		p.Again = p.Again || k.from == nil && !p.Fixed
	}
	for _, k := range carried {
		p.reach(k, n.route(p.Exchange.Text, k.key).queues, e.Queue.Name)
	}
	p.OnlyName = p.AnyKey && !p.Unsure && !all && len(p.Lost) == 0 && !p.Dangles && n.routesNames(x)
	if p.AnyKey {
		for _, b := range n.from[p.Exchange.Text] { // some of the unknown keys may be those of its bindings
			p.reach(publishedKey{b.Key, b, true}, n.route(p.Exchange.Text, b.Key).queues, e.Queue.Name)
		}
	}
	if p.Again && len(p.Lost) == 1 && len(p.Queues) > 0 {
		p.Lost = nil // only requeued letters are lost
	}
	return p
}

// reach adds queues that dead letters with a key reach. A guessed key does not prove that a queue
// dead-letters to itself.
func (p *Path) reach(k publishedKey, queues []string, self string) {
	for _, q := range queues {
		if k.guessed && q == self {
			continue
		}
		p.hops = append(p.hops, hop{k, q})
		known := slices.Contains(p.Queues, q)
		if !known {
			p.Queues = append(p.Queues, q)
		}
		switch at := slices.Index(p.Guessed, q); {
		case k.guessed && !known:
			p.Guessed = append(p.Guessed, q)
		case !k.guessed && at >= 0:
			p.Guessed = slices.Delete(p.Guessed, at, at+1)
		}
	}
}
