package system

import (
	"database/sql"
	"fmt"
	"strings"
	"time"
)

// The functions in this file run queries on the store's file without the program. If possible,
// tests name tables only here. A condition that only one test needs is in that test.

// letters returns the number of letters in the given states. Without states, it returns the number
// of all letters.
func (p *child) letters(states ...string) int {
	p.t.Helper()
	if len(states) == 0 {
		return p.count("letters", "")
	}
	return p.count("letters", "state IN ('"+strings.Join(states, "', '")+"')")
}

// events returns the number of events of a kind in the history.
func (p *child) events(kind string) int {
	p.t.Helper()
	return p.count("events", "kind = $1", kind)
}

// count returns the number of rows in a table or join for which the SQL condition is true. With an
// empty condition, it counts all rows.
func (p *child) count(tables, where string, args ...any) int {
	p.t.Helper()
	if where != "" {
		where = " WHERE " + where
	}
	return p.ask(fmt.Sprintf("SELECT count(*) FROM %s%s", tables, where), args...)
}

// leftBehind describes the letters and attempts in the store, for the log of a failed test.
func (p *child) leftBehind() string {
	db, err := sql.Open("sqlite", "file:"+p.store+"?mode=ro&_pragma=busy_timeout(10000)")
	if err != nil {
		return err.Error()
	}
	defer db.Close()
	var lines strings.Builder
	for _, question := range []string{
		`SELECT 'letters ' || state || CASE WHEN operation IS NULL THEN '' ELSE ' of an operation' END || CASE
			WHEN waits_in IS NULL THEN '' ELSE ' in ' || waits_in END,
			count(*), min(due_at), max(due_at), max(changed_at) FROM letters GROUP BY 1`,
		`SELECT 'attempts ' || outcome, count(*), min(at), max(at), max(closed_at) FROM attempts GROUP BY 1`,
		`SELECT 'pauses ' || reason, count(*), min(at), max(at), NULL FROM pauses GROUP BY 1`,
		`SELECT 'breakers ' || state || ' ' || why, count(*), min(since), max(until), NULL FROM breakers GROUP BY 1`,
		`SELECT 'operations ' || state || ' ' || phase || ' ' || why,
			count(*), min(created_at), max(created_at), max(finished_at) FROM operations GROUP BY 1`,
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
