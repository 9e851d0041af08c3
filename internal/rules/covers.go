package rules

import "slices"

// Covers says whether every letter that fits other is known to fit m as well, clause by clause:
// true is certain, false is not.
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
		if !c[0].cover(c[1]) {
			return false
		}
	}
	if m.NoSchema && !other.NoSchema && !(Patterns{""}).cover(other.Type) { // what has no type at all, no schema reads
		return false
	}
	return m.Attempts.cover(other.Attempts) && m.Age.cover(other.Age) && coverNamed(m.Header, other.Header) && coverNamed(m.Field, other.Field)
}

// coverNamed says whether each clause of list is met by one of other: what a letter has no header
// for, no pattern fits.
func coverNamed(list, other []Named) bool {
	for _, n := range list {
		if !slices.ContainsFunc(other, func(o Named) bool { return n.Name == o.Name && n.Want.cover(o.Want) }) {
			return false
		}
	}
	return true
}

// Never returns the clause that no letter can fit, such as "age", and why; "" when none is known.
func (m *Match) Never() (clause, why string) {
	switch {
	case len(m.Attempts.spans()) == 0:
		return "attempts", "no number of attempts is " + m.Attempts.String()
	case len(m.Age.spans()) == 0:
		return "age", "no age is " + m.Age.String()
	}
	return "", ""
}
