package store

import "cmp"

// Broker is a broker in the configuration.
type Broker struct {
	Name string
	Was  []string // its earlier names
	Same string   // name of the first entry for the same broker and vhost; "" = its own name
}

// brokers maps between the names of brokers. In the file, a broker always has the name under which
// the store first knew it. If the broker is renamed, its rows, groups and everything else therefore
// stay valid. Outside the file, a broker always has its present name.
type brokers struct {
	list  []Broker
	first map[string]string   // each name, present or earlier -> the name in the file
	now   map[string]string   // each name, present or earlier -> the present name
	all   map[string][]string // present name -> all its names
	same  map[string]string   // present name -> present name of the first entry for its broker and vhost
}

func brokersOf(list []Broker) brokers {
	b := brokers{list: list, first: map[string]string{}, now: map[string]string{}, all: map[string][]string{}, same: map[string]string{}}
	for i := range list {
		one := &list[i]
		b.all[one.Name], b.same[one.Name] = append([]string{one.Name}, one.Was...), cmp.Or(one.Same, one.Name)
		for _, name := range b.all[one.Name] {
			b.now[name] = one.Name
		}
		b.setFirstName(one, one.Name)
	}
	return b
}

// setFirstName sets the name that a broker has in the file.
func (b *brokers) setFirstName(one *Broker, first string) {
	for _, name := range b.all[one.Name] {
		b.first[name] = first
	}
}

// firstName returns a broker's name in the file. This method and the methods below return an
// unknown name unchanged.
func (b *brokers) firstName(name string) string { return cmp.Or(b.first[name], name) }

// present returns a broker's present name.
func (b *brokers) present(name string) string { return cmp.Or(b.now[name], name) }

// names returns all names of the broker with the given present name.
func (b *brokers) names(present string) []string {
	if all, ok := b.all[present]; ok {
		return all
	}
	return []string{present}
}

// entry returns the present name of the first configuration entry that refers to the same broker
// and vhost as the given name.
func (b *brokers) entry(name string) string {
	present := b.present(name)
	return cmp.Or(b.same[present], present)
}

// FirstName returns the name under which the store first knew a broker. Groups are looked up under
// this name.
func (s *Store) FirstName(broker string) string { return s.known.firstName(broker) }
