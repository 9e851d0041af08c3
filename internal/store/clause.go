package store

import (
	"fmt"
	"strings"
)

// clause is an SQL condition. Its text contains a ? for each argument.
type clause struct {
	text string
	args []any
}

// allOf joins conditions with AND.
func allOf(clauses ...clause) clause { return joinClauses(" AND ", "1", clauses) }

// anyOf joins conditions with OR.
func anyOf(clauses ...clause) clause { return joinClauses(" OR ", "0", clauses) }

func joinClauses(operator, none string, clauses []clause) clause {
	var texts []string
	var args []any
	for _, c := range clauses {
		if c.text != "" {
			texts, args = append(texts, c.text), append(args, c.args...)
		}
	}
	switch len(texts) {
	case 0:
		return clause{text: none}
	case 1:
		return clause{texts[0], args}
	}
	return clause{"(" + strings.Join(texts, operator) + ")", args}
}

func negated(c clause) clause { return clause{"NOT " + "(" + c.text + ")", c.args} }

// inList returns the SQL condition "column IN (values)". Without values, the condition matches no
// row.
func inList(column string, values []any) clause {
	if len(values) == 0 {
		return clause{text: "0"}
	}
	return clause{column + " IN (?" + strings.Repeat(", ?", len(values)-1) + ")", values}
}

// numberPlaceholders replaces the question marks in a condition with $1, $2, and so on. Every
// question mark is a placeholder, because the text never contains values.
func numberPlaceholders(text string) string {
	var b strings.Builder
	n := 0
	for _, r := range text {
		if r == '?' {
			n++
			fmt.Fprintf(&b, "$%d", n)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}
