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
	Missing  []string // queues that bindings in a file name but that are missing in the file
	Lost     []string // keys with which messages reach the queue but its dead letters reach no queue
	Again    bool     // a letter that was requeued to the queue by its name is lost when it dies again
	Unsure   bool     // an exchange routes by headers, or is of an unknown type
}

// path follows the dead letters of a queue.
func (n *network) path(e *Effect) Path {
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
	keys := n.published(e.Queue.Name)
	if p.Fixed {
		keys = []publishedKey{{key: p.Key.Text}}
	}
	all := n.takesAll(p.Exchange.Text)
	for _, k := range keys {
		r := n.route(p.Exchange.Text, k.key)
		p.Unsure = p.Unsure || r.unsure
		for _, q := range r.queues {
			if !slices.Contains(p.Queues, q) {
				p.Queues = append(p.Queues, q)
			}
		}
		p.Missing = append(p.Missing, r.missing...)
		if len(r.queues) > 0 || r.unsure || all {
			continue
		}
		p.Lost = append(p.Lost, k.said())
		p.Again = p.Again || k.from == nil && !p.Fixed
	}
	if p.Again && len(p.Lost) == 1 && len(p.Queues) > 0 {
		p.Lost = nil // only requeued letters are lost
	}
	return p
}
