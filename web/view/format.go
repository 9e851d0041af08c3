package view

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Count formats n with commas between thousands, for example 1,341.
func Count[T ~int](n T) string { return deadletter.Count(n) }

// AtLeast formats a count. If the count is not exact, it appends "+", for example "10,000+".
func AtLeast(n int, exact bool) string {
	if exact {
		return Count(n)
	}
	return Count(n) + "+"
}

// Compact formats n in at most four characters for narrow places, for example 940, 4.1k, 312k or
// 1.2M.
func Compact(n int) string {
	for _, unit := range []struct {
		size int
		name string
	}{{1_000_000_000, "G"}, {1_000_000, "M"}, {1_000, "k"}} {
		if n < unit.size {
			continue
		}
		whole, tenth := n/unit.size, n%unit.size*10/unit.size
		if whole < 10 && tenth > 0 {
			return fmt.Sprintf("%d.%d%s", whole, tenth, unit.name)
		}
		return strconv.Itoa(whole) + unit.name
	}
	return strconv.Itoa(n)
}

// LetterCount returns "1 letter" or "1,341 letters".
func LetterCount(n int) string { return Number(n, "letter", "letters") }

// Number formats n with the noun in its singular or plural form.
func Number(n int, one, many string) string { return deadletter.Plural(n, one, many) }

// plural returns the first of two words if n is 1, and otherwise the second.
func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// Size formats a number of bytes, for example 340 B, 1.2 KiB or 16 MiB.
func Size(n int) string {
	if n < 1024 {
		return strconv.Itoa(n) + " B"
	}
	value := float64(n)
	for _, unit := range []string{"KiB", "MiB", "GiB"} {
		if value /= 1024; value < 1023.5 || unit == "GiB" {
			if value < 9.95 {
				return fmt.Sprintf("%.1f %s", value, unit)
			}
			return fmt.Sprintf("%.0f %s", value, unit)
		}
	}
	return ""
}

// UTC formats a time in full to the second, for example 2026-11-20 06:52:14 UTC. For the zero time,
// it returns "".
func UTC(t time.Time) string {
	return unlessZero(t, "2006-01-02 15:04:05 UTC")
}

// Clock formats a time as briefly as its distance from now allows, for example 06:52:14.208, 11-19
// 06:52:14 or 2025-11-19. A time of today has milliseconds if they are known.
func Clock(now, t time.Time) string {
	t, now = t.UTC(), now.UTC()
	clock := "15:04:05"
	if t.Nanosecond() >= int(time.Millisecond) {
		clock = "15:04:05.000"
	}
	switch {
	case t.IsZero():
		return "unknown"
	case t.Year() == now.Year() && t.YearDay() == now.YearDay():
		return t.Format(clock)
	case t.Year() == now.Year():
		return t.Format("01-02 15:04:05")
	}
	return t.Format("2006-01-02")
}

// hourMinute formats a time for a sentence, for example 09:14, Thu 09:14 or 2026-11-13.
func hourMinute(now, t time.Time) string {
	t, now = t.UTC(), now.UTC()
	switch {
	case t.Year() == now.Year() && t.YearDay() == now.YearDay():
		return t.Format("15:04")
	case now.Sub(t).Abs() < 6*24*time.Hour:
		return t.Format("Mon 15:04")
	}
	return t.Format("2006-01-02")
}

// Stamp formats a time for the HTML attribute datetime. For the zero time, it returns "".
func Stamp(t time.Time) string {
	return unlessZero(t, time.RFC3339Nano)
}

// unlessZero formats a time in UTC. For the zero time, it returns "".
func unlessZero(t time.Time, layout string) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(layout)
}

// isNear reports whether a time is less than an hour from now. Such a time is shown relative to
// now, and any other time as a clock time.
func isNear(now, t time.Time) bool { return t.Sub(now).Abs() < time.Hour }

// When formats a time for a sentence. Near times are relative, for example "4 min ago" or "in 8 s".
// Other times are formatted like "at 09:14 UTC", "on Thu at 09:14 UTC" or "on 2026-11-13".
func When(now, t time.Time) string {
	if t.IsZero() || isNear(now, t) {
		return Ago(now, t)
	}
	text := hourMinute(now, t)
	if day, clock, ok := strings.Cut(text, " "); ok {
		return "on " + day + " at " + clock + " UTC"
	} else if strings.Contains(text, ":") {
		return "at " + text + " UTC"
	}
	return "on " + text
}

// Ago formats the distance of the time t from now, for example "just now", "42 s ago", "2 h ago",
// "3 d ago" or "in 8 s". If the distance is 90 days or more, it returns the date.
func Ago(now, t time.Time) string {
	switch d := now.Sub(t); {
	case t.IsZero():
		return "unknown"
	case d.Abs() >= 90*24*time.Hour:
		return t.UTC().Format("2006-01-02")
	case d >= time.Second:
		return roughDuration(d) + " ago"
	case d >= 0:
		return "just now"
	case d > -time.Second:
		return "now"
	default:
		return "in " + roughDuration(-d)
	}
}

func roughDuration(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%d min", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", d/time.Hour)
	}
	return fmt.Sprintf("%d d", d/(24*time.Hour))
}

// TypedDuration formats a duration as people type it, for example 2m instead of 2m0s.
func TypedDuration(d time.Duration) string {
	text := strings.Replace(d.String(), "m0s", "m", 1)
	if hours, ok := strings.CutSuffix(text, "h0m"); ok {
		return hours + "h"
	}
	return text
}

// Duration formats a duration with its two largest units, for example 3 ms, 0.2 s, 10.5 s, 1 min 44
// s, 2 h 5 min or 3 d 4 h.
func Duration(d time.Duration) string {
	if d < 0 {
		return "-" + Duration(-d)
	}
	two := func(big, small time.Duration, bigName, smallName string) string {
		text := fmt.Sprintf("%d %s", d/big, bigName)
		if rest := d % big / small; rest > 0 {
			text += fmt.Sprintf(" %d %s", rest, smallName)
		}
		return text
	}
	switch {
	case d < 100*time.Millisecond:
		return fmt.Sprintf("%d ms", d/time.Millisecond)
	case d < time.Minute:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", d.Truncate(100*time.Millisecond).Seconds()), ".0") + " s"
	case d < time.Hour:
		return two(time.Minute, time.Second, "min", "s")
	case d < 24*time.Hour:
		return two(time.Hour, time.Minute, "h", "min")
	}
	return two(24*time.Hour, time.Hour, "d", "h")
}

// Percent divides "part" by "whole" and formats the result as a percentage with one decimal, for
// example 60.6%. It never rounds up to 100% or down to 0%.
func Percent(part, whole int) string {
	switch {
	case whole <= 0 || part <= 0:
		return "0%"
	case part >= whole:
		return "100%"
	}
	tenths := min(max((part*1000+whole/2)/whole, 1), 999)
	return fmt.Sprintf("%d.%d%%", tenths/10, tenths%10)
}

// typeParts splits the full name of a protobuf message, for example into "acme.notify.v1." and
// "EmailRequested".
func typeParts(name string) (prefix, last string) {
	name = line(name, 200)
	dot := strings.LastIndexByte(name, '.')
	return name[:dot+1], name[dot+1:]
}

// upperFirst returns a phrase with its first letter capitalised. The phrase is one of dlo's own and
// not "".
func upperFirst(phrase string) string { return strings.ToUpper(phrase[:1]) + phrase[1:] }

// enumerated joins a list as in a sentence, for example "a, b and c".
func enumerated(list []string) string {
	if len(list) < 2 {
		return strings.Join(list, "")
	}
	return strings.Join(list[:len(list)-1], ", ") + " and " + list[len(list)-1]
}
