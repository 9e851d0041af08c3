package rules

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Comparison is a condition on a number that is at least 0.
type Comparison struct {
	Op   string // operator: =, <, <=, > or >=
	Than int64  // number with which to compare; at least 0
	Text string // text in the rule, e.g. ">=3"
}

// Comparisons is a list of comparisons of which at least one must be true. An empty list is true
// for any number.
type Comparisons []Comparison

// ParseComparison parses a comparison such as ">=3". If there is no operator, the comparison is an
// equality. ParseComparison calls "value" to parse the text after the operator.
func ParseComparison(text string, value func(text string) (int64, error)) (Comparison, error) {
	c := Comparison{Op: "=", Text: text}
	rest := strings.TrimSpace(text)
	for _, op := range []string{"<=", ">=", "<", ">", "="} {
		if after, ok := strings.CutPrefix(rest, op); ok {
			c.Op, rest = op, strings.TrimSpace(after)
			break
		}
	}
	var err error
	if c.Than, err = value(rest); err == nil && c.Than < 0 {
		err = fmt.Errorf("%q is below 0", rest)
	}
	return c, err
}

// Hold reports whether one of the comparisons is true for n.
func (c Comparisons) Hold(n int64) bool {
	return len(c) == 0 || slices.ContainsFunc(c, func(one Comparison) bool {
		low, high := one.span()
		return low <= n && n <= high
	})
}

// String returns the comparisons separated by commas.
func (c Comparisons) String() string {
	texts := make([]string, len(c))
	for i := range c {
		texts[i] = c[i].Text
	}
	return strings.Join(texts, ", ")
}

// span returns the first and the last number for which the comparison is true. If there is no such
// number, the result "high" is less than the result "low".
func (c Comparison) span() (low, high int64) {
	switch c.Op {
	case "<":
		return 0, c.Than - 1
	case "<=":
		return 0, c.Than
	case ">":
		if c.Than == math.MaxInt64 {
			return 1, 0
		}
		return c.Than + 1, math.MaxInt64
	case ">=":
		return c.Than, math.MaxInt64
	}
	return c.Than, c.Than
}

// spans returns the ranges of numbers for which at least one of the comparisons is true. The ranges
// are sorted, and adjacent ranges are joined.
func (c Comparisons) spans() [][2]int64 {
	if len(c) == 0 {
		return [][2]int64{{0, math.MaxInt64}}
	}
	var list [][2]int64
	for _, one := range c {
		if low, high := one.span(); low <= high {
			list = append(list, [2]int64{low, high})
		}
	}
	slices.SortFunc(list, func(a, b [2]int64) int { return cmp.Compare(a[0], b[0]) })
	var joined [][2]int64
	for _, s := range list {
		if n := len(joined); n > 0 && s[0]-1 <= joined[n-1][1] {
			joined[n-1][1] = max(joined[n-1][1], s[1])
			continue
		}
		joined = append(joined, s)
	}
	return joined
}

// covers reports whether c is true for every number for which "other" is true. For example, >=3
// covers >=5.
func (c Comparisons) covers(other Comparisons) bool {
	mine := c.spans()
	for _, s := range other.spans() {
		if !slices.ContainsFunc(mine, func(m [2]int64) bool { return m[0] <= s[0] && s[1] <= m[1] }) {
			return false
		}
	}
	return true
}
