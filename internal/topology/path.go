package topology

import "slices"

// Path says where the dead letters of a queue go.
type Path struct {
	Set      bool    // the queue has a dead-letter exchange
	Exchange Setting // the dead-letter exchange
	Key      Setting // the routing key that replaces the one of the message
	Fixed    bool    // Key is set
	Exists   bool    // the exchange exists
	Bound    bool    // the exchange has a binding or an alternate exchange
	Queues   []string
	Guessed  []string // those of Queues that only messages with a guessed routing key reach
	Missing  []string // queues that bindings of a file name, but that the file does not contain
	Dangles  bool     // for some key, all queues that dead letters would reach are missing
	// the reasons of those deaths whose letters reach no queue, although those of other deaths do
	LostReasons []string
	Lost        []string // routing keys of messages that reach the queue, but whose dead letters reach no queue
	Partly      []string // topic patterns of keys of which some are lost and some are not
	Again       bool     // a letter that dlo requeued to the queue by its name is lost if it dies again
	AnyKey      bool     // some messages have routing keys that dlo does not know, and their dead letters keep these keys
	OnlyName    bool     // AnyKey is true, and the exchange routes only keys that are names of queues
	Unjudged    []string // exchanges that look at something that dlo does not know, or whose type is unknown

	hops []hop
}

// hop is a queue that dead letters with the given routing key reach.
type hop struct {
	publishedKey
	to string
}

// path finds out where the dead letters of a queue go. The parameter "carried" holds the routing
// keys of dead letters that come into this queue from other queues.
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
	others, known := n.alternate(x)
	exist := func(other string) bool { return n.exchanges[other] != nil }
	p.Bound = x.Name == "" || len(n.from[x.Name]) > 0 || !known || slices.ContainsFunc(others, exist)
	deaths := deathsIn(e, n.s.Version, len(carried) > 0)
	if !n.headers { // no exchange asks for the reason of a death
		deaths = deaths[:1]
	}
	keys, unknown := n.published(e.Queue.Name)
	if p.Fixed {
		keys, carried = []publishedKey{{key: p.Key.Text}}, nil
	}
	p.AnyKey = unknown && !p.Fixed
	all := n.takesAll(p.Exchange.Text)
	for _, k := range keys {
		reached, missing := n.reach(&p, e.Queue.Name, k, deaths)
		if reached || all {
			continue
		}
		if missing {
			p.Dangles = true
			continue
		}
		if k.from == nil && k.guessed {
			p.Again = true // only letters that dlo requeues come with this key
			if p.AnyKey && x.routing() == "headers" && len(n.mayReach(x.Name, nil, deaths)) == 0 {
				p.Lost = append(p.Lost, "#") // no binding fits, whatever the key is
			}
			continue
		}
		if k.set != nil {
			if queues := n.mayReach(p.Exchange.Text, k.set, deaths); len(queues) > 0 {
				p.Partly = append(p.Partly, k.asBound())
				p.addReached(k, queues, e.Queue.Name)
				continue
			}
		}
		p.Lost = append(p.Lost, k.asBound())
	}
	for _, k := range carried {
		n.reach(&p, e.Queue.Name, k, deaths)
	}
	p.OnlyName = p.AnyKey && len(p.Unjudged) == 0 && !all && len(p.Lost) == 0 && !p.Dangles && n.routesNames(x)
	if p.AnyKey {
		// a key that dlo does not know may be the key of one of these bindings
		for _, b := range n.from[p.Exchange.Text] {
			k := publishedKey{key: b.Key, from: b, guessed: true}
			for _, d := range deaths {
				fits, known := x.matches(b, b.Key, d)
				switch {
				case !fits || !known:
				case b.To == "exchange":
					p.addReached(k, n.route(b.Destination, b.Key, d).queues, e.Queue.Name)
				case n.queues[b.Destination] != nil:
					p.addReached(k, []string{b.Destination}, e.Queue.Name)
				}
			}
		}
	}
	return p
}

// reach adds the queues that dead letters with the routing key k reach. The result "reached" is
// false if they certainly reach none, and "missing" is true if a queue is missing that they would
// reach.
func (n *network) reach(p *Path, self string, k publishedKey, deaths []*death) (reached, missing bool) {
	var lost []string
	for _, d := range deaths {
		r := n.route(p.Exchange.Text, k.key, d)
		p.addUnknown(k, r, self)
		p.addReached(k, r.queues, self)
		if len(r.queues) == 0 && len(r.unknown) == 0 {
			lost, missing = append(lost, d.reason), missing || len(r.missing) > 0
			p.Missing = append(p.Missing, r.missing...)
		}
	}
	if reached = len(lost) < len(deaths); reached && len(p.LostReasons) == 0 {
		p.LostReasons = lost
	}
	return reached, missing
}

// addUnknown adds the queues that dead letters with the routing key k may reach, and the exchanges
// because of which that is not known.
func (p *Path) addUnknown(k publishedKey, r routed, self string) {
	for _, x := range r.unknown {
		if len(r.queues) == 0 && !slices.Contains(p.Unjudged, x) {
			p.Unjudged = append(p.Unjudged, x)
		}
	}
	k.guessed = true
	p.addReached(k, r.maybe, self)
}

// addReached adds the queues that dead letters with the routing key k reach. The parameter "self"
// is the queue from which the dead letters come.
//
// The key k may be guessed, because the snapshot does not show all keys. A guessed key does not
// prove that a queue dead-letters to itself. Therefore, if k is guessed, addReached leaves out the
// queue "self".
func (p *Path) addReached(k publishedKey, queues []string, self string) {
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
