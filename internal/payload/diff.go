package payload

import (
	"strings"
	"unicode"
	"unicode/utf8"

	edits "znkr.io/diff"
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
	Op    DiffOp `json:"op"`
	Spans []Span `json:"spans"`         // the parts of the line, without its line end
	Left  int    `json:"left,omitzero"` // number of omitted lines
}

// Span is a part of a line. If the line has a counterpart in the other text, Changed is true only
// for the words that differ. Otherwise, Changed is true for all spans of the line.
type Span struct {
	Text    string `json:"text"`
	Changed bool   `json:"changed,omitzero"`
}

const (
	maxDiffLines = 400      // the maximum number of lines in one diff
	maxExact     = 10_000   // more lines or words are compared by a faster method that may find less in common
	maxWordsOf   = 64 << 10 // a longer line, in bytes, is not split into words
	maxSpan      = 2_000    // maximum number of bytes of a changed span; for an unchanged span, a fifth of it
)

// Diff compares two texts line by line, and changed lines word by word. The size of its result is
// limited: it omits unchanged lines far from a change, the middle of long spans, and everything
// beyond maxDiffLines. It marks each omission. It returns nil if the texts are equal.
func Diff(before, after string) []DiffLine {
	if before == after {
		return nil
	}
	a, b := strings.Split(before, "\n"), strings.Split(after, "\n")
	var lines []DiffLine
	shown := 0 // lines of a
	for _, h := range hunks(a, b) {
		lines = appendOmitted(lines, a[shown:h.PosX])
		lines = appendHunk(lines, h.Edits)
		shown = h.EndX
	}
	lines = appendOmitted(lines, a[shown:])
	if left := len(lines) - maxDiffLines; left > 0 {
		lines = append(lines[:maxDiffLines:maxDiffLines], DiffLine{Op: LeftOut, Left: left})
	}
	return lines
}

// hunks returns the differences of two lists, by default each with three elements around it. The
// time that it takes is limited.
func hunks(a, b []string, options ...edits.Option) []edits.Hunk[string] {
	if len(a)+len(b) > maxExact {
		options = append(options, edits.Fast())
	}
	return edits.Hunks(a, b, options...)
}

// appendOmitted appends unchanged lines that are far from a change. Several are left out.
func appendOmitted(to []DiffLine, lines []string) []DiffLine {
	switch len(lines) {
	case 0:
		return to
	case 1:
		return append(to, sameLine(lines[0]))
	}
	return append(to, DiffLine{Op: LeftOut, Left: len(lines)})
}

func sameLine(line string) DiffLine {
	return DiffLine{Op: Same, Spans: []Span{{Text: shortSpan(line, maxSpan/5)}}}
}

func appendHunk(to []DiffLine, hunk []edits.Edit[string]) []DiffLine {
	var removed, added []string
	for i, e := range hunk {
		switch e.Op {
		case edits.Delete:
			removed = append(removed, e.X)
		case edits.Insert:
			added = append(added, e.Y)
		}
		if e.Op == edits.Match || i == len(hunk)-1 {
			to = appendChanged(to, removed, added)
			removed, added = nil, nil
		}
		if e.Op == edits.Match {
			to = append(to, sameLine(e.X))
		}
	}
	return to
}

// appendChanged appends lines that were replaced by others. The first of them are compared with the
// first of the others, and so on.
func appendChanged(to []DiffLine, removed, added []string) []DiffLine {
	old, now := make([]DiffLine, len(removed)), make([]DiffLine, len(added))
	for i, line := range removed {
		old[i] = DiffLine{Op: Removed, Spans: []Span{{shortSpan(line, maxSpan), true}}}
	}
	for i, line := range added {
		now[i] = DiffLine{Op: Added, Spans: []Span{{shortSpan(line, maxSpan), true}}}
	}
	for i := range min(len(old), len(now), maxDiffLines) { // further lines are omitted anyway
		old[i].Spans, now[i].Spans = diffWords(removed[i], added[i])
	}
	return append(append(to, old...), now...)
}

// diffWords finds the parts of two lines that differ.
func diffWords(before, after string) (removed, added []Span) {
	a, b := wordsOf(before), wordsOf(after)
	if a == nil || b == nil {
		head, tail := commonEnds(before, after)
		a = []string{before[:head], before[head : len(before)-tail], before[len(before)-tail:]}
		b = []string{a[0], after[head : len(after)-tail], a[2]}
	}
	var x, y spans
	i := 0
	for _, h := range hunks(a, b, edits.Context(0)) {
		same := strings.Join(a[i:h.PosX], "")
		x.add(same, false)
		y.add(same, false)
		x.add(strings.Join(a[h.PosX:h.EndX], ""), true)
		y.add(strings.Join(b[h.PosY:h.EndY], ""), true)
		i = h.EndX
	}
	x.add(strings.Join(a[i:], ""), false)
	y.add(strings.Join(a[i:], ""), false)
	return x, y
}

// commonEnds returns how many bytes two lines have in common at the beginning, and how many of the
// rest at the end. It does not cut within a rune.
func commonEnds(a, b string) (head, tail int) {
	shorter := min(len(a), len(b))
	for head < shorter && a[head] == b[head] {
		head++
	}
	for head > 0 && head < shorter && !(utf8.RuneStart(a[head]) && utf8.RuneStart(b[head])) {
		head--
	}
	for tail < shorter-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	for tail > 0 && !utf8.RuneStart(a[len(a)-tail]) {
		tail--
	}
	return head, tail
}

// spans collects the parts of a line.
type spans []Span

func (s *spans) add(text string, changed bool) {
	limit := maxSpan / 5
	if changed {
		limit = maxSpan
	}
	if text != "" {
		*s = append(*s, Span{shortSpan(text, limit), changed})
	}
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
// characters between them. A line that is too long is not split: the result is nil.
func wordsOf(line string) []string {
	if len(line) > maxWordsOf {
		return nil
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
