package system

import (
	"database/sql"
	"fmt"
	"strings"
	"time"
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

// leftBehind says where the letters and attempts of a store are when its test has failed.
func (p *child) leftBehind() string {
	db, err := sql.Open("sqlite", "file:"+p.store+"?mode=ro&_pragma=busy_timeout(10000)")
	if err != nil {
		return err.Error()
	}
	defer db.Close()
	var lines strings.Builder
	for _, question := range []string{
		`SELECT 'letters ' || state || CASE WHEN operation IS NULL THEN '' ELSE ' of an operation' END || CASE WHEN waits_in IS NULL THEN '' ELSE ' in ' || waits_in END,
			count(*), min(due_at), max(due_at), max(changed_at) FROM letters GROUP BY 1`,
		`SELECT 'attempts ' || outcome, count(*), min(at), max(at), max(closed_at) FROM attempts GROUP BY 1`,
		`SELECT 'pauses ' || reason, count(*), min(at), max(at), NULL FROM pauses GROUP BY 1`,
		`SELECT 'breakers ' || state || ' ' || why, count(*), min(since), max(until), NULL FROM breakers GROUP BY 1`,
		`SELECT 'operations ' || state || ' ' || phase || ' ' || why, count(*), min(created_at), max(created_at), max(finished_at) FROM operations GROUP BY 1`,
	} {
		rows, err := db.Query(question)
		if err != nil {
			return err.Error()
		}
		for rows.Next() {
			var what string
			var n int
			var times [3]sql.NullInt64
			if err := rows.Scan(&what, &n, &times[0], &times[1], &times[2]); err != nil {
				return err.Error()
			}
			fmt.Fprintf(&lines, "%s: %d", what, n)
			for _, at := range times {
				if at.Valid {
					fmt.Fprintf(&lines, ", %s", time.UnixMilli(at.Int64).UTC().Format("15:04:05.000"))
				}
			}
			lines.WriteString("\n")
		}
		rows.Close()
	}
	return lines.String()
}
