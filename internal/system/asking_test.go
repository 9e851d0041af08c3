package system

import (
	"fmt"
	"strings"
)

// What the tests ask the file of a store, from outside and beside the program. The names of tables
// are written here where that is enough; a condition that only one test has is written in that
// test.

// letters returns how many letters are in one of the states; all without any.
func (p *child) letters(states ...string) int {
	p.t.Helper()
	if len(states) == 0 {
		return p.count("letters", "")
	}
	return p.count("letters", "state IN ('"+strings.Join(states, "', '")+"')")
}

// events returns how many events of a kind are in the history.
func (p *child) events(kind string) int {
	p.t.Helper()
	return p.count("events", "kind = $1", kind)
}

// count returns how many rows of a table, or of a join, meet a condition; all where it is "".
func (p *child) count(of, where string, args ...any) int {
	p.t.Helper()
	if where != "" {
		where = " WHERE " + where
	}
	return p.ask(fmt.Sprintf("SELECT count(*) FROM %s%s", of, where), args...)
}
