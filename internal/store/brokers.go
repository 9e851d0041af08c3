package store

import "cmp"

// Broker is a broker as the configuration names it.
type Broker struct {
	Name string
	Was  []string // its earlier names
	Same string   // the name of the entry that comes first of those that lead to its broker and vhost; "" = its own
}

// brokers knows what brokers were called. In the file a broker has the name that the store knew
// first, for ever: rows, groups and all else stay its own when it is renamed. Everywhere else it
// has its present name.
type brokers struct {
	list  []Broker
	first map[string]string   // each name, present or earlier -> the one in the file
	now   map[string]string   // each name -> the present one
	all   map[string][]string // present name -> all its names
	same  map[string]string   // present name -> that of the first entry of its broker and vhost
}

func brokersOf(list []Broker) brokers {
	b := brokers{list: list, first: map[string]string{}, now: map[string]string{}, all: map[string][]string{}, same: map[string]string{}}
	for i := range list {
		one := &list[i]
		b.all[one.Name], b.same[one.Name] = append([]string{one.Name}, one.Was...), cmp.Or(one.Same, one.Name)
		for _, name := range b.all[one.Name] {
			b.now[name] = one.Name
		}
		b.call(one, one.Name)
	}
	return b
}

// call notes what a broker is called in the file.
func (b *brokers) call(one *Broker, first string) {
	for _, name := range b.all[one.Name] {
		b.first[name] = first
	}
}

// firstName returns what a broker is called in the file. A name that nobody bears stands for
// itself, as it does in the methods below.
func (b *brokers) firstName(name string) string { return cmp.Or(b.first[name], name) }

// present returns what a broker is called now.
func (b *brokers) present(name string) string { return cmp.Or(b.now[name], name) }

// names returns all names of a broker, by its present one.
func (b *brokers) names(present string) []string {
	if all, ok := b.all[present]; ok {
		return all
	}
	return []string{present}
}

// entry returns the present name of the entry that comes first of those that lead to the broker and
// vhost of a broker.
func (b *brokers) entry(name string) string {
	present := b.present(name)
	return cmp.Or(b.same[present], present)
}

// FirstName returns the name that the store has known a broker by from the start: groups are found
// by it.
func (s *Store) FirstName(broker string) string { return s.known.firstName(broker) }
