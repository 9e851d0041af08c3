package query

import (
	"fmt"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Error is a mistake in a query, together with its position.
type Error struct {
	Pos  int    // offset of the first wrong byte, counted from 0
	Want string // what is wrong at Pos, and how to write it
}

func (e *Error) Error() string { return fmt.Sprintf("at character %d: %s", e.Pos+1, e.Want) }

// Unwrap returns ErrInvalid, because every mistake in a query is an ErrInvalid.
func (e *Error) Unwrap() error { return deadletter.ErrInvalid }

func errorAt(pos int, format string, args ...any) *Error {
	return &Error{pos, fmt.Sprintf(format, args...)}
}

// quotable returns a part of a query in a form that is safe in an error text.
func quotable(s string) string { return deadletter.Visible(deadletter.Cut(s, 40)) }

// didYouMean returns " (did you mean X?)" for the most similar name. If no name is similar enough,
// it returns "".
func didYouMean(to string, names []string) string {
	to = deadletter.Cut(to, 40)
	best, fewest := "", max(1, len(to)/3)+1
	for _, n := range names {
		if d := distance(to, n); d < fewest {
			best, fewest = n, d
		}
	}
	if best == "" {
		return ""
	}
	return " (did you mean " + best + "?)"
}

// distance returns how many byte changes turn a into b (optimal string alignment). One change
// inserts, deletes or replaces a byte, or swaps two neighbouring bytes.
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
