package rules

import "slices"

// Covers reports whether every letter that matches "other" also matches m. For example, a rule for
// the queues billing.* covers a rule for the queue billing.pdf. Covers compares the two clause by
// clause. The result true is certain. The result false only means that this comparison shows no
// such relation.
func (m *Match) Covers(other *Match) bool {
	for _, c := range [][2]Patterns{
		{m.Queue, other.Queue},
		{m.VHost, other.VHost},
		{m.Broker, other.Broker},
		{m.Exchange, other.Exchange},
		{m.Key, other.Key},
		{m.Reason, other.Reason},
		{m.Type, other.Type},
		{m.Error.lower(), other.Error.lower()},
	} {
		if !c[0].covers(c[1]) {
			return false
		}
	}
	// a letter without a type is a letter that no schema reads
	if m.NoSchema && !other.NoSchema && !(Patterns{""}).covers(other.Type) {
		return false
	}
	return m.Attempts.covers(other.Attempts) && m.Age.covers(other.Age) && coverNamed(m.Header, other.Header) &&
		coverNamed(m.Field, other.Field)
}

// coverNamed reports whether every letter that fulfils the conditions in "other" also fulfils those
// in "list". It returns true if, for each condition in "list", the list "other" contains a
// condition on the same name that is equal or stricter. A letter without a header fulfils no
// condition on this header.
func coverNamed(list, other []Named) bool {
	for _, n := range list {
		if !slices.ContainsFunc(other, func(o Named) bool { return n.Name == o.Name && n.Want.covers(o.Want) }) {
			return false
		}
	}
	return true
}

// Never returns the name of a clause that no letter can match, such as "age", and the reason. If it
// finds no such clause, it returns "".
func (m *Match) Never() (clause, why string) {
	switch {
	case len(m.Attempts.spans()) == 0:
		return "attempts", "no number of attempts is " + m.Attempts.String()
	case len(m.Age.spans()) == 0:
		return "age", "no age is " + m.Age.String()
	}
	return "", ""
}
