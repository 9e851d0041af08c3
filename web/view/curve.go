package view

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// Curve contains the times at which the retries of a letter are due. It assumes that the letter
// dies again immediately after each retry.
type Curve struct {
	Count  int     // the number of retries
	Jitter float64 // from 0 to 1
	points []retryPoint
}

// retryPoint is one retry. Its times are in seconds after the first death. They are floating-point
// numbers, because a thousand retries a year apart do not fit into a Duration.
type retryPoint struct {
	n             int // the number of the retry, from 1
	at, low, high float64
}

// NewCurve returns the curve for a number of retries. The function "delay" returns the shortest,
// the planned and the longest delay before retry n. The first retry has n = 0.
func NewCurve(count int, jitter float64, delay func(n int) (low, planned, high time.Duration)) Curve {
	c := Curve{Count: count, Jitter: jitter}
	p := retryPoint{}
	for n := range count {
		low, planned, high := delay(n)
		p = retryPoint{n + 1, p.at + planned.Seconds(), p.low + low.Seconds(), p.high + high.Seconds()}
		c.points = append(c.points, p)
	}
	return c
}

const (
	curveLeft, curveRight = 16.0, 316.0 // the ends of the time axis; the final outcome is to the right of it
	curveTop, curveBottom = 22.0, 138.0
	curveStep             = 9.0 // the minimum distance between points, so that they do not overlap
	curveLabels           = 5   // if there are more points than this, not all have a label
	day24, year           = 24 * 60 * 60.0, 365 * 24 * 60 * 60.0
	// up to curveSpoken retries are all listed; otherwise only the first curveFirst and the last
	curveSpoken, curveFirst = 8, 3
)

// curveTicks are the possible labels of the time axis in seconds.
var curveTicks = []float64{
	.001, .01, .1, 1, 10, 60, 600, 3600, 6 * 3600, day24, 10 * day24, 100 * day24, year, 10 * year, 100 * year,
	1000 * year, 10_000 * year, 100_000 * year,
}

// secondsWords formats seconds for people, for example 10 s, 1 min 50 s or 1,000 years.
func secondsWords(seconds float64) string {
	if seconds >= 2*year {
		return Number(int(seconds/year), "year", "years")
	}
	return Duration(time.Duration(math.Round(seconds*1000)) * time.Millisecond)
}

// axis is the logarithmic time axis of a curve. It begins at the tick before the first retry. It
// ends at the latest time at which the last retry can happen, because jitter makes this time vary.
type axis struct{ from, to float64 }

func (c Curve) axis() axis {
	first, last := c.points[0], c.points[len(c.points)-1]
	a := axis{curveTicks[0], max(last.high, last.at)}
	for _, t := range curveTicks {
		if t < first.at {
			a.from = t
		}
	}
	if a.to < a.from*2 {
		a.to = a.from * 2
	}
	return a
}

func (a axis) x(seconds float64) float64 {
	if seconds <= a.from {
		return curveLeft
	}
	return curveLeft + (curveRight-curveLeft)*min(1, math.Log(seconds/a.from)/math.Log(a.to/a.from))
}

// ticks returns the labels of the axis that fit without touching each other.
func (a axis) ticks() []tick {
	var out []tick
	last := math.Inf(-1)
	for _, t := range curveTicks {
		if x := a.x(t); t >= a.from && t <= a.to && x-last >= 44 {
			out = append(out, tick{X: number(x), Text: secondsWords(t)})
			last = x
		}
	}
	return out
}

// dot is one retry as a point of the chart.
type dot struct {
	X, Y       string
	Band       string // the SVG path of the area of the possible times of the retry; "" without jitter
	Label      string
	LX, LY, At string // the place and the text-anchor of the label
}

// dots returns the retries that the chart draws. It leaves out a retry that is too close to the
// previous one. It always keeps the first and the last retry.
func (c Curve) dots() (dots []dot, line string, endX, endY float64) {
	a := c.axis()
	var shown []retryPoint
	for i, p := range c.points {
		far := len(shown) == 0 || a.x(p.at)-a.x(shown[len(shown)-1].at) >= curveStep
		switch {
		case i == len(c.points)-1 && !far && len(shown) > 1:
			shown[len(shown)-1] = p
		case i == len(c.points)-1 || far:
			shown = append(shown, p)
		}
	}
	step := (curveBottom - curveTop) / float64(len(shown))
	line = "M" + number(curveLeft) + " " + number(curveBottom)
	for i, p := range shown {
		x, y := a.x(p.at), curveBottom-step*float64(i+1)
		line += " L" + number(x) + " " + number(y)
		d := dot{X: number(x), Y: number(y)}
		if from, to := a.x(p.low), a.x(p.high); c.Jitter > 0 {
			d.Band = fmt.Sprintf(
				"M%s %sh%sv16h-%sz", number(from), number(y-8), number(max(to-from, 1)), number(max(to-from, 1)),
			)
		}
		if len(shown) <= curveLabels || i == 0 || i == len(shown)-1 {
			d.Label = Count(p.n) + ": after " + secondsWords(p.at)
			// The line of the chart rises to the right. Therefore a label has room above the line
			// if it stands to the left of its point, and below the line if it stands to the right
			// of its point.
			d.LX, d.LY, d.At = number(x-9), number(y-9), "end"
			if x < (curveLeft+curveRight)/2 {
				d.LX, d.LY, d.At = number(x+10), number(y+13), "start"
			}
		}
		dots = append(dots, d)
		endX, endY = x, y
	}
	return dots, line, endX, endY
}

// undrawnSentence returns a sentence with the number of retries that are not drawn.
func (c Curve) undrawnSentence(drawn int) string {
	if n := c.Count - drawn; n > 0 {
		return Number(n, "retry is", "retries are") + " not drawn: too close to the next."
	}
	return ""
}

// words returns a description of a curve in words. The parameter "outcome" is the outcome after the
// last retry.
func (c Curve) words(outcome string) string {
	if c.Count == 0 {
		return "No retry: " + outcome + " at once."
	}
	said := c.points
	if c.Count > curveSpoken {
		said = c.points[:curveFirst]
	}
	times := make([]string, len(said))
	for i, p := range said {
		times[i] = secondsWords(p.at)
	}
	text := "After " + enumerated(times)
	if rest := c.points[len(said):]; len(rest) > 0 {
		text += ", and so on; retry " + Count(c.Count) + " after " + secondsWords(rest[len(rest)-1].at)
	}
	if c.Jitter > 0 {
		each := ", each with "
		if c.Count == 1 {
			each = ", with "
		}
		text += each + share(c.Jitter) + " jitter"
	}
	return text + "; then " + outcome + "."
}

// enumerated joins a list as in a sentence, for example "a, b and c".
func enumerated(list []string) string {
	if len(list) < 2 {
		return strings.Join(list, "")
	}
	return strings.Join(list[:len(list)-1], ", ") + " and " + list[len(list)-1]
}

// share formats a fraction as a percentage, for example 10% or 12.5%.
func share(v float64) string { return number(v*100) + "%" }
