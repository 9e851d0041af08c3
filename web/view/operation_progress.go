package view

import (
	"fmt"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// progress contains the numbers of letters of an operation, added up for the progress bar.
type progress struct {
	Total, Done, ToGo, Cancelled int // Done + ToGo + Cancelled = Total
	Good, Back, Bad, Skipped     int // Good + Back + Bad + Skipped = Done
}

func progressOf(counts map[deadletter.Result]int) progress {
	var p progress
	for r, n := range counts {
		p.Total += n
		switch r {
		case deadletter.ResultPending, deadletter.ResultReleased:
			p.ToGo += n
		case deadletter.ResultConfirmed, deadletter.ResultQuiet, deadletter.ResultUnverified, deadletter.ResultChanged:
			p.Good += n
		case deadletter.ResultCameBack:
			p.Back += n
		case deadletter.ResultReturned, deadletter.ResultFailed, deadletter.ResultInDoubt:
			p.Bad += n
		case deadletter.ResultCancelled:
			p.Cancelled += n
		default:
			p.Skipped += n
		}
	}
	p.Done = p.Total - p.ToGo - p.Cancelled
	return p
}

// done returns the number of letters that the operation completed. If the parameter "sends" is
// true, letters that came back are included, because they were sent.
func (p progress) done(sends bool) int {
	if sends {
		return p.Good + p.Back
	}
	return p.Good
}

// segment is one coloured part of a bar. The width of the whole bar is 100.
type segment struct{ Class, X, Width string }

// segments returns the parts of a bar side by side. Each part that is not empty is at least 0.4
// wide, so that one failure in 100,000 is visible.
func (p progress) segments() []segment {
	var out []segment
	x := 0.0
	for _, part := range []struct {
		class string
		n     int
	}{{"f-good", p.Good}, {"f-warn", p.Back}, {"f-dead", p.Bad}, {"f-mute", p.Skipped}} {
		if part.n == 0 || p.Total == 0 {
			continue
		}
		width := min(max(float64(part.n)*100/float64(p.Total), 0.4), 100-x)
		out = append(out, segment{part.class, fmt.Sprintf("%.2f", x), fmt.Sprintf("%.2f", width)})
		x += width
	}
	return out
}
