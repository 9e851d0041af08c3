package store

import (
	"database/sql"
	"database/sql/driver"
	"fmt"
	"strings"
	"time"
)

// column is one column of an SQL SELECT, together with the variable into which it is read.
type column struct {
	text string // SQL expression
	// pointer for sql.Rows.Scan; it is also an argument with the value to which it points
	into any
}

// name returns the name of a column whose expression is a column of the table l.
func (c column) name() string { return strings.TrimPrefix(c.text, "l.") }

// columns are the columns of a query, together with the variables of a struct into which each row
// is read. Both the SELECT list and the scan of the rows are made from this value, so they always
// agree.
type columns []column

// list returns the column list for a SELECT.
func (c columns) list() string {
	texts := make([]string, len(c))
	for i := range c {
		texts[i] = c[i].text
	}
	return strings.Join(texts, ", ")
}

// names returns the names of the columns, for an INSERT.
func (c columns) names() []string {
	names := make([]string, len(c))
	for i := range c {
		names[i] = c[i].name()
	}
	return names
}

// fromTable returns the assignments of columns to those of the same names in a table, for an
// UPDATE.
func fromTable(table string, names []string) string {
	texts := make([]string, len(names))
	for i, name := range names {
		texts[i] = name + " = " + table + "." + name
	}
	return strings.Join(texts, ", ")
}

// values adds the values of the columns to the arguments of a statement.
func (c columns) values(args ...any) []any {
	for i := range c {
		args = append(args, c[i].into)
	}
	return args
}

// scan reads each row into the variables of the columns, and then calls fn. It closes rows, and it
// returns the first error.
func (c columns) scan(rows *sql.Rows, fn func() error) error {
	into := make([]any, len(c))
	for i := range c {
		into[i] = c[i].into
	}
	return scan(rows, func() error {
		if err := rows.Scan(into...); err != nil {
			return err
		}
		return fn()
	})
}

// instant scans a database column of milliseconds since 1970 into a time. NULL becomes the zero
// time.
type instant struct{ *time.Time }

// Scan implements sql.Scanner.
func (i instant) Scan(value any) error {
	switch v := value.(type) {
	case nil:
		*i.Time = time.Time{}
	case int64:
		*i.Time = time.UnixMilli(v).UTC()
	default:
		return fmt.Errorf("a time is %T, not milliseconds", value)
	}
	return nil
}

// Value implements driver.Valuer.
func (i instant) Value() (driver.Value, error) { return millis(*i.Time), nil }

// lasting scans a database column of milliseconds into a duration.
type lasting struct{ *time.Duration }

// Scan implements sql.Scanner.
func (l lasting) Scan(value any) error {
	ms, ok := value.(int64)
	if !ok {
		return fmt.Errorf("a duration is %T, not milliseconds", value)
	}
	*l.Duration = time.Duration(ms) * time.Millisecond
	return nil
}
