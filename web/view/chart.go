package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Histogram counts letters by the time they were received. The field Links contains one link for
// each bar, which leads to the letters that the bar counts. A link that would be too long is "".
type Histogram struct {
	deadletter.Histogram
	Links []string
}

// shape is one SVG path of a chart. It contains all parts of the bars that have the same class. If
// each part were a rectangle of its own, the page would be too long.
type shape struct{ Class, Path string }

// outcomes are the parts of a bar from bottom to top. Each has its CSS class and its name.
var outcomes = []struct {
	class, name string
	of          func(b deadletter.Bar) int
}{
	{"f-dead", "Dead or held", func(b deadletter.Bar) int { return b.Dead }},
	{"f-retry", "Still waiting", func(b deadletter.Bar) int { return b.Waiting }},
	{"f-rec", "Quiet", func(b deadletter.Bar) int { return b.Recovered }},
	{"f-mute", "Discarded", func(b deadletter.Bar) int { return b.Discarded }},
}

// outcomesIn returns the indices of the outcomes that occur in the bars. The legend lists only
// these.
func outcomesIn(bars []deadletter.Bar) []int {
	var out []int
	for i, o := range outcomes {
		if slices.ContainsFunc(bars, func(b deadletter.Bar) bool { return o.of(b) > 0 }) {
			out = append(out, i)
		}
	}
	return out
}

// frame is the position of a chart within its drawing.
type frame struct{ left, top, width, height float64 }

// barShapes returns the shapes of all bars, with the outcomes of a bar on top of each other. The
// parameter "peak" is the number of letters for which a bar has the full height. Every part that is
// not 0 has a height of at least 1.
func barShapes(bars []deadletter.Bar, peak int, f frame) []shape {
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
			fmt.Fprintf(
				&paths[k], "M%s %sh%sv%sh-%sz", number(f.left+float64(i)*step), number(y), number(width), number(h),
				number(width),
			)
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

// largestBar returns the largest number of letters in one bar.
func largestBar(bars []deadletter.Bar) int {
	most := 0
	for _, b := range bars {
		most = max(most, b.Total())
	}
	return most
}

// ceiling returns the smallest round number that is at least n and that four grid lines divide
// evenly.
func ceiling(n int) int {
	for unit := 1; ; unit *= 10 {
		for _, step := range []int{1, 2, 5} {
			if 4*step*unit >= n {
				return 4 * step * unit
			}
		}
	}
}

// tick is a label or a mark on the time axis.
type tick struct {
	X, Text string
	At      time.Time
	Kind    string // the format of the time for the script: time, date, or day (both)
	Anchor  string // the SVG attribute text-anchor of the label
}

// ticks returns at most 7 labels for the time axis. They are dates if the chart covers more than 49
// hours. The end of the axis has no label, because the chart writes "now" there.
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
		x, at := f.left+float64(i)*step, h.Bars[i].At.UTC() // the start of the bar
		if x > f.left+f.width-nowRoom {                     // the chart writes "now" here
			break
		}
		t := tick{X: number(x), Text: at.Format(layout), At: at, Kind: "time", Anchor: "middle"}
		switch {
		case layout == dayLayout:
			t.Kind = "date"
		case at.YearDay() != day: // the first label of a day shows the date
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
	nowRoom   = 60 // the room for "now" at the end of the axis
)

// deployMark is a line at the time of a deploy. Label is the version beside the line, or "" if
// there is no room for it.
type deployMark struct{ X, Title, Label, LabelX, Anchor string }

// letterWidth is about the width of a letter of a label in a chart.
const letterWidth = 6.5

// marks returns the lines of the deploys that happened within the time range of a chart. The
// deploys begin with the newest. A label is to the right of its line if it fits there, otherwise to
// its left, and never on another label.
func marks(h deadletter.Histogram, deploys []deadletter.Deploy, f frame) []deployMark {
	if len(h.Bars) == 0 {
		return nil
	}
	span := h.Step * time.Duration(len(h.Bars))
	var out []deployMark
	room := f.left + f.width // where the label that was placed last begins
	for _, d := range deploys {
		at := d.At.Sub(h.Bars[0].At)
		if span <= 0 || at < 0 || at > span {
			continue
		}
		x, label := f.left+f.width*float64(at)/float64(span), line(cmp.Or(d.Version, d.Service), 20)
		width := letterWidth * float64(utf8.RuneCountInString(label))
		m := deployMark{X: number(x), Title: deployName(d) + ", " + Stamp(d.At)}
		switch {
		case x+3+width <= room:
			m.Label, m.LabelX, m.Anchor, room = label, number(x+3), "start", x-3
		case x-3 <= room && x-3-width >= f.left:
			m.Label, m.LabelX, m.Anchor, room = label, number(x-3), "end", x-3-width
		}
		out = append(out, m)
	}
	return out
}

// barLink returns the link of the bar with index i, or "" if the bar has none.
func (h Histogram) barLink(i int) string {
	if i < len(h.Links) {
		return h.Links[i]
	}
	return ""
}

// barEnd returns the time at which the bar with index i ends.
func barEnd(h deadletter.Histogram, i int) time.Time {
	if i+1 < len(h.Bars) {
		return h.Bars[i+1].At
	}
	return h.To
}

// barInterval returns the time interval of the bar with index i, encoded for a form.
func barInterval(h deadletter.Histogram, i int) string {
	return Stamp(h.Bars[i].At) + "/" + Stamp(barEnd(h, i))
}

// dayTime formats a time in UTC with its day, such as 20 Nov 06:45.
func dayTime(t time.Time) string { return t.UTC().Format("2 Jan 15:04") }

// inWords returns a description of a chart in words for people who cannot see it.
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
	return fmt.Sprintf(
		"%s received from %s to %s UTC, in steps of %s; the peak is %s, from %s.", LetterCount(total), dayTime(h.From),
		dayTime(h.To), Duration(h.Step), Count(peak), dayTime(at),
	)
}

// perStep returns the words for the time that one bar of a chart covers, for example "per 15 min".
func perStep(h deadletter.Histogram) string {
	if h.Step <= 0 {
		return "lately" // the chart is empty
	}
	return "per " + Duration(h.Step)
}

func largest(values []int) int {
	if len(values) == 0 {
		return 0
	}
	return slices.Max(values)
}

// curve draws values from left to right in a box 100 wide and 24 high. It returns the SVG path of
// the line, the path of the area below the line, and the last point.
func curve(values []int) (path, area, x, y string) {
	if len(values) < 2 {
		return "", "", "", ""
	}
	peak := max(largest(values), 1)
	for i, v := range values {
		x, y = number(1+98*float64(i)/float64(len(values)-1)), number(22-19*float64(v)/float64(peak))
		switch level := i > 0 && v == values[i-1]; {
		case i == 0:
			path = "M" + x + " " + y
		case !level:
			path += "L" + x + " " + y
		case i == len(values)-1 || v != values[i+1]: // the end of a level stretch
			path += "H" + x
		}
	}
	return path, path + "V23H1Z", x, y
}
