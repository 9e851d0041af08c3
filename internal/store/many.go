package store

import (
	"iter"
	"slices"
	"strings"
)

// manyRows is how many rows one statement stores at most. Of 500 new letters, 25 rows a statement
// took 9.5 us each and one row 13 us; 50 rows took no less than 25.
const manyRows = 25

// many stores rows of so many values with as few statements as possible. The statement has "rows"
// in place of them. Its parameters have no numbers, because SQLite searches a list for each number
// that it binds. The values "after" are those of the parameters behind the rows.
func (t *tx) many(statement string, width int, values []any, after ...any) error {
	for text, args := range manyAtOnce(statement, width, values, after...) {
		if _, err := t.exec(text, args...); err != nil {
			return err
		}
	}
	return nil
}

// manyAtOnce returns the statements of "many" with their values.
func manyAtOnce(statement string, width int, values []any, after ...any) iter.Seq2[string, []any] {
	return func(yield func(string, []any) bool) {
		before, behind, _ := strings.Cut(statement, "rows")
		for part := range slices.Chunk(values, max(1, manyRows*width)) {
			row := `, (` + strings.Repeat(`, ?`, width)[2:] + `)`
			text := before + strings.Repeat(row, len(part)/width)[2:] + behind
			if !yield(text, append(part[:len(part):len(part)], after...)) {
				return
			}
		}
	}
}
