package store

import "cmp"

// Broker contains the names of a broker in the configuration.
type Broker struct {
	Name string
	Was  []string // earlier names of the broker
	Same string   // name of the first entry for the same broker and vhost; "" = its own name
}

// brokers maps between the names of brokers. The store file always contains the name under which
// the store first knew a broker. The rows and groups of a broker therefore stay valid if the broker
// is renamed. Everything outside the file uses the broker's present name.
type brokers struct {
	list  []Broker
	first map[string]string   // each present or earlier name -> the name in the store file
	now   map[string]string   // each present or earlier name -> the present name
	all   map[string][]string // present name -> the present name and all earlier names
	// present name -> present name of the first configuration entry for the same broker and vhost
	same map[string]string
}

func brokersOf(list []Broker) brokers {
	b := brokers{
		list:  list,
		first: map[string]string{},
		now:   map[string]string{},
		all:   map[string][]string{},
		same:  map[string]string{},
	}
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

// setFirstName sets the name that stands for a broker in the store file.
func (b *brokers) setFirstName(one *Broker, first string) {
	for _, name := range b.all[one.Name] {
		b.first[name] = first
	}
}

// firstName returns the name that stands for a broker in the store file. If the name is unknown,
// firstName returns it unchanged. The other methods of brokers that look up a name also return an
// unknown name unchanged.
func (b *brokers) firstName(name string) string { return cmp.Or(b.first[name], name) }

func (b *brokers) presentName(name string) string { return cmp.Or(b.now[name], name) }

// names returns all names of the broker with the given present name.
func (b *brokers) names(present string) []string {
	if all, ok := b.all[present]; ok {
		return all
	}
	return []string{present}
}

// entryName returns the present name of the broker and vhost that the given name stands for.
// Several configuration entries may lead to this broker and vhost. In that case, entryName returns
// the name in the first of these entries.
func (b *brokers) entryName(name string) string {
	present := b.presentName(name)
	return cmp.Or(b.same[present], present)
}

// FirstName returns the name under which the store first knew a broker. Groups are looked up under
// this name.
func (s *Store) FirstName(broker string) string { return s.known.firstName(broker) }
