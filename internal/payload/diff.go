package payload

import (
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// DiffOp says whether a line of a diff was kept, removed or added.
type DiffOp string

// Values of a DiffOp.
const (
	Same    DiffOp = "same"
	Removed DiffOp = "removed"
	Added   DiffOp = "added"
	// stands for Left omitted unchanged lines; at the end of a diff, for Left omitted lines of any
	// kind
	LeftOut DiffOp = "left out"
)

// DiffLine is one line of a diff.
type DiffLine struct {
	Op    DiffOp
	Spans []Span // the parts of the line, without its line end
	Left  int    // number of omitted lines
}

// Span is a part of a line. If the line has a counterpart in the other text, Changed is true only
// for the words that differ. Otherwise, Changed is true for all spans of the line.
type Span struct {
	Text    string
	Changed bool
}

const (
	diffContext  = 3   // unchanged lines that are shown around a change
	maxDiffLines = 400 // the maximum number of lines in one diff
	// maximum number of differing lines; if there are more, everything between the first and the
	// last difference counts as changed
	maxDiffSteps = 600
	maxDiffWords = 40_000   // maximum number of pairs of words that are compared in one line
	maxWordsOf   = 64 << 10 // a longer line, in bytes, is not split into words
	maxSpan      = 2_000    // maximum number of bytes of a changed span; for an unchanged span, a fifth of it
)

// diff compares two texts line by line, and changed lines word by word. The size of its result is
// limited: it omits unchanged lines far from a change, the middle of long spans, and everything
// beyond maxDiffLines. It marks each omission. It returns nil if the texts are equal.
func diff(before, after string) []DiffLine {
	if before == after {
		return nil
	}
	a, b := strings.Split(before, "\n"), strings.Split(after, "\n")
	w := &diffWriter{}
	head, tail := commonEnds(a, b)
	w.addSame(a[:head])
	from, to := 0, 0
	middle, other := a[head:len(a)-tail], b[head:len(b)-tail]
	for _, m := range commonRuns(middle, other) {
		w.addChanged(middle[from:m.a], other[to:m.b])
		w.addSame(middle[m.a : m.a+m.n])
		from, to = m.a+m.n, m.b+m.n
	}
	w.addChanged(middle[from:], other[to:])
	w.addSame(a[len(a)-tail:])
	w.flush(true)
	if left := len(w.lines) - maxDiffLines; left > 0 {
		w.lines = append(w.lines[:maxDiffLines:maxDiffLines], DiffLine{Op: LeftOut, Left: left})
	}
	return w.lines
}

// run is a sequence of n elements that are equal in both lists. It begins at the index a in one
// list, and at b in the other.
type run struct{ a, b, n int }

// commonRuns returns the longest common subsequence of two lists as runs. It uses Myers's greedy
// algorithm ("An O(ND) Difference Algorithm", 1986). If more than maxDiffSteps steps are needed, it
// returns no runs.
func commonRuns(a, b []string) []run {
	var trace [][]int
	size := min(len(a)+len(b), maxDiffSteps)
	at := map[int]int{1: 0} // for each diagonal, the furthest position in a
	found := -1
search:
	for d := 0; d <= size; d++ {
		row := make([]int, 2*d+1)
		next := make(map[int]int, d+1)
		for k := -d; k <= d; k += 2 {
			x := at[k-1] + 1
			if k == -d || k != d && at[k-1] < at[k+1] {
				x = at[k+1]
			}
			for x < len(a) && x-k < len(b) && a[x] == b[x-k] {
				x++
			}
			next[k], row[k+d] = x, x
			if x >= len(a) && x-k >= len(b) {
				trace = append(trace, row)
				found = d
				break search
			}
		}
		maps.Copy(at, next)
		trace = append(trace, row)
	}
	if found < 0 {
		return nil
	}
	var runs []run
	x, y := len(a), len(b)
	for d := found; d >= 0; d-- {
		k := x - y
		px, py := 0, 0
		if d > 0 {
			before := func(k int) int {
				if k < -(d-1) || k > d-1 {
					return -1
				}
				return trace[d-1][k+d-1]
			}
			if pk := k - 1; k != -d && (k == d || before(k-1) >= before(k+1)) {
				px, py = before(pk), before(pk)-pk
				runs = append(runs, run{px + 1, py, x - px - 1})
			} else {
				px, py = before(k+1), before(k+1)-k-1
				runs = append(runs, run{px, py + 1, x - px})
			}
		} else {
			runs = append(runs, run{0, 0, x})
		}
		x, y = px, py
	}
	slices.Reverse(runs)
	return slices.DeleteFunc(runs, func(r run) bool { return r.n == 0 })
}

type diffWriter struct {
	lines []DiffLine
	kept  []string // unchanged lines that are not written yet
}

func (w *diffWriter) addSame(lines []string) { w.kept = append(w.kept, lines...) }

// flush writes the unchanged lines that have been collected since the last change. It omits those
// that are far from a change.
func (w *diffWriter) flush(last bool) {
	head, tail := diffContext, diffContext
	if len(w.lines) == 0 {
		head = 0
	}
	if last {
		tail = 0
	}
	left := len(w.kept) - head - tail
	for i, line := range w.kept {
		switch {
		case left < 2 || i < head || i >= head+left:
			w.lines = append(w.lines, DiffLine{Op: Same, Spans: []Span{{Text: shortSpan(line, maxSpan/5)}}})
		case i == head:
			w.lines = append(w.lines, DiffLine{Op: LeftOut, Left: left})
		}
	}
	w.kept = nil
}

func (w *diffWriter) addChanged(removed, added []string) {
	if len(removed)+len(added) == 0 {
		return
	}
	w.flush(false)
	pairs := min(len(removed), len(added), maxDiffLines) // further pairs would be omitted anyway
	spans := make([][2][]Span, pairs)
	for i := range spans {
		spans[i][0], spans[i][1] = diffWords(removed[i], added[i])
	}
	write := func(op DiffOp, lines []string, side int) {
		for i, line := range lines {
			s := []Span{{shortSpan(line, maxSpan), true}}
			if i < pairs {
				s = spans[i][side]
			}
			w.lines = append(w.lines, DiffLine{Op: op, Spans: s})
		}
	}
	write(Removed, removed, 0)
	write(Added, added, 1)
}

// commonEnds returns how many elements a and b have in common at the beginning. It also returns how
// many of the remaining elements they have in common at the end.
func commonEnds(a, b []string) (head, tail int) {
	for head < min(len(a), len(b)) && a[head] == b[head] {
		head++
	}
	for tail < min(len(a), len(b))-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	return head, tail
}

// diffWords finds the parts of two lines that differ.
func diffWords(before, after string) (removed, added []Span) {
	before, after, left, right := trimCommonEnds(before, after)
	a, b := wordsOf(before), wordsOf(after)
	head, tail := commonEnds(a, b)
	ma, mb := a[head:len(a)-tail], b[head:len(b)-tail]
	var runs []run
	if len(ma)*len(mb) <= maxDiffWords {
		runs = commonRuns(ma, mb)
	}
	var x, y spans
	x.add([]string{left}, false)
	y.add([]string{left}, false)
	x.add(a[:head], false)
	y.add(b[:head], false)
	i, j := 0, 0
	for _, r := range append(runs, run{len(ma), len(mb), 0}) {
		x.add(ma[i:r.a], true)
		y.add(mb[j:r.b], true)
		x.add(ma[r.a:r.a+r.n], false)
		y.add(mb[r.b:r.b+r.n], false)
		i, j = r.a+r.n, r.b+r.n
	}
	x.add(a[len(a)-tail:], false)
	y.add(b[len(b)-tail:], false)
	x.add([]string{right}, false)
	y.add([]string{right}, false)
	return x.short(), y.short()
}

// trimCommonEnds removes the common parts at both ends of two long lines. It removes only whole
// words.
func trimCommonEnds(before, after string) (a, b, left, right string) {
	if len(before)+len(after) <= maxWordsOf {
		return before, after, "", ""
	}
	head := 0
	for head < min(len(before), len(after)) && before[head] == after[head] {
		head++
	}
	head = strings.LastIndexByte(before[:head], ' ') + 1
	tail := 0
	for tail < min(len(before), len(after))-head && before[len(before)-1-tail] == after[len(after)-1-tail] {
		tail++
	}
	if i := strings.IndexByte(before[len(before)-tail:], ' '); i >= 0 {
		tail -= i
	} else {
		tail = 0
	}
	return before[head : len(before)-tail], after[head : len(after)-tail], before[:head], before[len(before)-tail:]
}

// spans collects words into spans.
type spans []Span

func (s *spans) add(words []string, changed bool) {
	text := strings.Join(words, "")
	if text == "" {
		return
	}
	if n := len(*s); n > 0 && (*s)[n-1].Changed == changed {
		(*s)[n-1].Text += text
		return
	}
	*s = append(*s, Span{text, changed})
}

func (s spans) short() []Span {
	for i := range s {
		limit := maxSpan / 5
		if s[i].Changed {
			limit = maxSpan
		}
		s[i].Text = shortSpan(s[i].Text, limit)
	}
	return s
}

// shortSpan omits the middle of a long text.
func shortSpan(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	head, _ := cut(s, limit/2)
	from := len(s) - limit/2
	for from < len(s) && !utf8.RuneStart(s[from]) {
		from++
	}
	return head + "…" + s[from:]
}

// wordsOf splits a line into words, which consist of letters and digits, and into the single
// characters between them.
func wordsOf(line string) []string {
	if len(line) > maxWordsOf {
		return []string{line}
	}
	var list []string
	from, inWord := 0, false
	for i, r := range line {
		word := unicode.IsLetter(r) || unicode.IsDigit(r)
		if i > from && !(word && inWord) {
			list = append(list, line[from:i])
			from = i
		}
		inWord = word
	}
	if from < len(line) {
		list = append(list, line[from:])
	}
	return list
}
