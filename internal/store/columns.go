package store

import (
	"database/sql"
	"fmt"
	"strings"
	"time"
)

// column is a column of a SELECT, with the variable into which its value is read.
type column struct {
	text string // in SQL
	into any    // for sql.Rows.Scan
}

// columns are the columns of a query, together with the variables of a struct into which each row
// is read. The list in the SELECT and the scan of the rows both come from columns, so they always
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

// scan reads each row and calls fn. It closes rows and returns the first error.
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

// instant reads milliseconds since 1970 into a time; NULL is the zero time.
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

// lasting reads milliseconds into a duration.
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
