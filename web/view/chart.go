package view

import (
	"fmt"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Histogram is letters by time of receipt. Links leads each bar to the list narrowed to it; empty
// where a link would be too long to repeat.
type Histogram struct {
	deadletter.Histogram
	Links []string
}

// shape is one path of a chart: everything of one class, as a page with a rectangle for each part
// of each bar would be too long.
type shape struct{ Class, Path string }

// outcomes are the parts of a bar from the bottom up, with their class and their name.
var outcomes = []struct {
	class, name string
	of          func(b deadletter.Bar) int
}{
	{"f-dead", "Dead or held", func(b deadletter.Bar) int { return b.Dead }},
	{"f-retry", "Still waiting", func(b deadletter.Bar) int { return b.Waiting }},
	{"f-rec", "Quiet", func(b deadletter.Bar) int { return b.Recovered }},
	{"f-mute", "Discarded", func(b deadletter.Bar) int { return b.Discarded }},
}

// present returns the outcomes that occur, so that a legend names nothing that is not there.
func present(bars []deadletter.Bar) []int {
	var out []int
	for i, o := range outcomes {
		for _, b := range bars {
			if o.of(b) > 0 {
				out = append(out, i)
				break
			}
		}
	}
	return out
}

// frame is the place of a chart inside its drawing.
type frame struct{ left, top, width, height float64 }

// stacked lays the outcomes of every bar on top of each other; peak is the number that fills the
// height. What is not 0 is at least 1 high.
func stacked(bars []deadletter.Bar, peak int, f frame) []shape {
	if len(bars) == 0 || peak <= 0 {
		return nil
	}
	paths := make([]strings.Builder, len(outcomes))
	step := f.width / float64(len(bars))
	width := step - min(2, step/4)
	for i, b := range bars {
		y := f.top + f.height
		for k, o := range outcomes {
			n := o.of(b)
			if n == 0 {
				continue
			}
			h := min(max(float64(n)/float64(peak)*f.height, 1), y-f.top)
			y -= h
			fmt.Fprintf(&paths[k], "M%s %sh%sv%sh-%sz", number(f.left+float64(i)*step), number(y), number(width), number(h), number(width))
		}
	}
	var out []shape
	for k := range outcomes {
		if path := paths[k].String(); path != "" {
			out = append(out, shape{outcomes[k].class, path})
		}
	}
	return out
}

func number(v float64) string { return strings.TrimSuffix(fmt.Sprintf("%.1f", v), ".0") }

// fullest is the largest number of letters in one bar.
func fullest(bars []deadletter.Bar) int {
	most := 0
	for _, b := range bars {
		most = max(most, b.Total())
	}
	return most
}

// ceiling is the first round number not below n that four lines divide evenly.
func ceiling(n int) int {
	for unit := 1; ; unit *= 10 {
		for _, step := range []int{1, 2, 5} {
			if 4*step*unit >= n {
				return 4 * step * unit
			}
		}
	}
}

// tick is a label of the time axis, or a mark on it.
type tick struct {
	X, Text string
	At      time.Time
	Kind    string // how its time is written, for the script: time, date, or day, which is both
	Anchor  string // end of the text that is at X
}

// ticks writes at most 7 times below a chart, days where the bars are long. Its end is now, which
// the chart writes itself.
func ticks(h deadletter.Histogram, f frame) []tick {
	if len(h.Bars) == 0 {
		return nil
	}
	every := (len(h.Bars) + 6) / 7
	step := f.width / float64(len(h.Bars))
	layout := "15:04"
	if h.Step*time.Duration(len(h.Bars)) > 49*time.Hour {
		layout = dayLayout
	}
	var out []tick
	day := -1
	for i := 0; i < len(h.Bars); i += every {
		x, at := f.left+float64(i)*step, h.Bars[i].At.UTC() // where the bar begins
		if x > f.left+f.width-nowRoom {                     // the end says "now"
			break
		}
		t := tick{X: number(x), Text: at.Format(layout), At: at, Kind: "time", Anchor: "middle"}
		switch {
		case layout == dayLayout:
			t.Kind = "date"
		case at.YearDay() != day: // the first of a day has its date
			t.Kind, t.Text = "day", dayTime(at)
		}
		if day = at.YearDay(); i == 0 {
			t.X, t.Anchor = number(f.left), "start"
		}
		out = append(out, t)
	}
	return out
}

const (
	dayLayout = "2 Jan"
	nowRoom   = 60 // of the axis, before its end
)

// marks are the places of deploys in a chart, among its bars, with their names.
func marks(h deadletter.Histogram, deploys []deadletter.Deploy, f frame) []tick {
	if len(h.Bars) == 0 {
		return nil
	}
	span := h.Step * time.Duration(len(h.Bars))
	var out []tick
	for _, d := range deploys {
		if at := d.At.Sub(h.Bars[0].At); span > 0 && at >= 0 && at <= span {
			out = append(out, tick{X: number(f.left + f.width*float64(at)/float64(span)), Text: strings.TrimSpace(line(d.Service, 60)+" "+line(d.Version, 60)) + ", " + Stamp(d.At)})
		}
	}
	return out
}

// at is bar i's link; "" = none.
func (h Histogram) at(i int) string {
	if i < len(h.Links) {
		return h.Links[i]
	}
	return ""
}

// end is where bar i ends.
func end(h deadletter.Histogram, i int) time.Time {
	if i+1 < len(h.Bars) {
		return h.Bars[i+1].At
	}
	return h.To
}

// between is a bar's interval, as a form sends it.
func between(h deadletter.Histogram, i int) string {
	return Stamp(h.Bars[i].At) + "/" + Stamp(end(h, i))
}

// day writes a moment of a chart in UTC with its day: 20 Nov 06:45.
func dayTime(t time.Time) string { return t.UTC().Format("2 Jan 15:04") }

// inWords is a chart's text alternative.
func inWords(h deadletter.Histogram) string {
	if len(h.Bars) == 0 {
		return "No letters."
	}
	total, peak, at := 0, 0, h.From
	for _, b := range h.Bars {
		total += b.Total()
		if b.Total() > peak {
			peak, at = b.Total(), b.At
		}
	}
	return fmt.Sprintf("%s received from %s to %s UTC, in steps of %s; the peak is %s, from %s.", LetterCount(total), dayTime(h.From), dayTime(h.To), Duration(h.Step), Count(peak), dayTime(at))
}

// perStep is the title of a chart's unit.
func perStep(h deadletter.Histogram) string {
	if h.Step <= 0 {
		return "lately" // there is nothing in it
	}
	return "per " + Duration(h.Step)
}

func most(values []int) int {
	n := 0
	for _, v := range values {
		n = max(n, v)
	}
	return n
}

// curve draws values from left to right in a box of 100 by 24: the line, the area below it, and its
// last point.
func curve(values []int) (path, area, x, y string) {
	if len(values) < 2 {
		return "", "", "", ""
	}
	peak := max(most(values), 1)
	for i, v := range values {
		x, y = number(1+98*float64(i)/float64(len(values)-1)), number(22-19*float64(v)/float64(peak))
		path += map[bool]string{true: "M", false: " L"}[i == 0] + x + " " + y
	}
	return path, path + " L99 23 L1 23 Z", x, y
}
