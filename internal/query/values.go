package query

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// readValue parses a value of a field. If the error is an *Error, it contains the position of the
// mistake. Any other error is about the whole value.
func readValue(f Field, t text, now time.Time) (Value, error) {
	raw := t.literal()
	switch f {
	case State:
		return parseEnum(f, string(deadletter.StateNamed(strings.ToLower(raw))))
	case Status:
		if strings.EqualFold(raw, "quiet") { // the former name
			raw = deadletter.StatusNotFailing
		}
		return parseEnum(f, raw)
	case Severity, Doubt, Sort, Via:
		return parseEnum(f, raw)
	case Read:
		// the value has no star and is not "", which stands for a letter whose body has not been
		// read yet
		if len(t.pieces) == 1 && raw != "" {
			return parseEnum(f, raw)
		}
	case Action:
		for _, v := range deadletter.Actions { // people say "discarded" for the action discard
			if strings.EqualFold(raw, v.Past()) {
				raw = string(v)
			}
		}
		return parseEnum(f, strings.ReplaceAll(raw, " ", "-"))
	case Target:
		if name := strings.ToUpper(raw); len(t.pieces) == 1 &&
			(strings.HasPrefix(name, "G-") || strings.HasPrefix(name, "O-")) && strings.Trim(
			name[2:], "0123456789",
		) == "" {
			return literally(name), nil
		}
	case Group:
		id, err := deadletter.ParseGroupID(raw)
		if err != nil {
			return Value{}, errors.New("a group is written G-418")
		}
		return literally(id.String()), nil
	case Op:
		return parseOperation(raw)
	case ID:
		return parseLetter(raw)
	case Attempts:
		return parseNumber(f, raw)
	case Size:
		return parseSize(raw)
	case Age:
		return parseAge(raw, now)
	case Since, Before:
		at, err := parseInstant(raw, now)
		return Value{Raw: raw, Time: at}, err
	case Until:
		at, err := parseInstant(raw, now)
		_, date := time.Parse("2006-01-02", raw)
		if _, named := days[strings.ToLower(raw)]; date == nil || named { // a date includes the whole day
			at = at.AddDate(0, 0, 1)
		}
		return Value{Raw: raw, Time: at}, err
	}
	if n := len(t.pieces); slices.Contains(prefixes, f) && n > 1 && (n > 2 || t.pieces[1] != "") {
		wrong := t.stars[0]
		return Value{}, errorAt(
			wrong,
			`%s takes a whole value or its beginning, for example acme*, so a star goes at the end only; for other parts search the words as free text; a literal star is \*`,
			f,
		)
	}
	return Value{Raw: pattern(t.pieces), Pattern: t.pieces}, nil
}

// literally returns the value that stands for exactly the given text.
func literally(s string) Value { return Value{Raw: s, Pattern: []string{s}} }

// literalValue returns the value that stands for a text in a query on a field. Stars in the text
// are literal. If the field does not accept the text, the value contains the text unchanged, so
// that Parse rejects it.
func literalValue(f Field, s string) Value {
	if f == Words {
		return literally(s)
	}
	v, err := readValue(f, text{pieces: []string{s}}, time.Now().UTC().Truncate(time.Millisecond))
	if err != nil {
		return literally(s)
	}
	return v
}

func parseEnum(f Field, raw string) (Value, error) {
	e := enumerations[f]
	value := strings.ToLower(raw)
	if !slices.Contains(e.values, value) {
		return Value{}, fmt.Errorf(
			"%s %q%s; there are %s", e.none, quotable(raw), didYouMean(value, e.values), strings.Join(e.values, ", "),
		)
	}
	return literally(value), nil
}

// parseOperation parses the id of an operation with an optional result, for example O-77 or
// O-77/came-back.
func parseOperation(raw string) (Value, error) {
	name, result, has := strings.Cut(raw, "/")
	id, err := deadletter.ParseOperationID(name)
	if err != nil {
		return Value{}, errors.New("an operation is written O-77, or O-77/came-back for one of its results")
	}
	v := literally(id.String())
	v.Op = id
	if has {
		results := texts(deadletter.Results)
		i := slices.Index(results, strings.ToLower(result))
		if i < 0 {
			return Value{}, fmt.Errorf(
				"an operation has no result %q%s; there are %s", quotable(result),
				didYouMean(strings.ToLower(result), results), strings.Join(results, ", "),
			)
		}
		v = literally(id.String() + "/" + results[i])
		v.Op, v.Result = id, deadletter.Results[i]
	}
	return v, nil
}

// parseLetter parses the id of a letter. It accepts the whole id, or only the 8 digits that pages
// show.
func parseLetter(raw string) (Value, error) {
	if id, err := deadletter.ParseID(raw); err == nil {
		if _, _, ok := id.Split(); !ok {
			return Value{}, errors.New(
				"this UUID is not the id of a letter; write the id of a message as message_id:… or correlation_id:…",
			)
		}
		return literally(string(id)), nil
	}
	short := strings.ToLower(raw)
	if len(short) != 8 || strings.Trim(short, "0123456789abcdef") != "" {
		return Value{}, errors.New("an id is a whole UUID, or the 8 hex digits that pages show, for example a6b18c20")
	}
	return literally(short), nil
}

// splitComparison splits a leading <, <=, > or >= off a text.
func splitComparison(raw string) (Compare, string) {
	for _, c := range []Compare{AtMost, Less, AtLeast, More} {
		if rest, ok := strings.CutPrefix(raw, string(c)); ok {
			return c, rest
		}
	}
	return Equal, raw
}

// splitNumber splits a leading whole number off a text. If the number is missing or too large, it
// returns -1.
func splitNumber(s string) (n int64, rest string) {
	end := len(s) - len(strings.TrimLeft(s, "0123456789"))
	n, err := strconv.ParseInt(s[:end], 10, 64)
	if err != nil {
		return -1, s
	}
	return n, s[end:]
}

func parseNumber(f Field, raw string) (Value, error) {
	c, rest := splitComparison(raw)
	n, rest := splitNumber(rest)
	if n < 0 || rest != "" {
		return Value{}, fmt.Errorf("%s is a number, for example 3, >=3 or <10", f)
	}
	return Value{Raw: raw, Compare: c, Number: n}, nil
}

// units is a map from the units of a size, in lower case, to the number of bytes in each.
var units = map[string]int64{
	"": 1, "b": 1, "kb": 1e3, "mb": 1e6, "gb": 1e9, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30,
}

func parseSize(raw string) (Value, error) {
	c, rest := splitComparison(raw)
	n, rest := splitNumber(rest)
	unit, ok := units[strings.ToLower(rest)]
	if n < 0 || !ok || n > math.MaxInt64/unit {
		return Value{}, errors.New(
			"a size is a whole number with a unit of B, kB, MB, GB, KiB, MiB or GiB, for example >=64KiB",
		)
	}
	return Value{Raw: raw, Compare: c, Number: n * unit}, nil
}

func parseAge(raw string, now time.Time) (Value, error) {
	c, rest := splitComparison(raw)
	d, err := parseDuration(rest)
	if c == Equal || err != nil {
		return Value{}, errors.New(
			"an age is a comparison and a duration in s, m, h, d or w, for example >2h or <=1d12h",
		)
	}
	return Value{Raw: raw, Compare: c, Time: now.Add(-d)}, nil
}

// days is a map from the names of days to their offset from today.
var days = map[string]int{"today": 0, "yesterday": -1}

// parseInstant parses a date, a date with a time, the name of a day, or a duration before now.
func parseInstant(raw string, now time.Time) (time.Time, error) {
	if day, ok := days[strings.ToLower(raw)]; ok {
		return now.UTC().Truncate(24*time.Hour).AddDate(0, 0, day), nil
	}
	if d, err := parseDuration(raw); err == nil {
		return now.Add(-d), nil
	}
	upper := strings.ToUpper(raw) // RFC 3339 allows t and z in lower case
	for _, layout := range []string{
		"2006-01-02T15:04:05Z07:00", "2006-01-02T15:04Z07:00", "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02",
	} {
		// Go also accepts a comma before the fraction of a second, but a comma separates values
		if at, err := time.Parse(layout, upper); err == nil && !strings.Contains(raw, ",") {
			// rounded up, because times of receipt are whole milliseconds, and since and before
			// compare with the start of a millisecond
			return at.UTC().Add(time.Millisecond - 1).Truncate(time.Millisecond), nil
		}
	}
	return time.Time{}, errors.New(
		"a time is written 2026-11-20, 2026-11-20T14:00Z or 2026-11-20T14:00:30+01:00, as today or yesterday, or as how long ago: 90s, 15m, 2h, 3d, 1w",
	)
}

const maxDuration = 100 * 365 * 24 * time.Hour

// parseDuration parses a duration such as "2h" or "1d12h". The result is above zero and at most 100
// years.
func parseDuration(s string) (time.Duration, error) {
	wrong := errors.New("a duration is written 90s, 15m, 2h, 3d, 1w or 1d12h")
	var d time.Duration
	for s != "" {
		n, rest := splitNumber(s)
		if n < 0 || rest == "" {
			return 0, wrong
		}
		unit := map[byte]time.Duration{
			's': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour, 'w': 7 * 24 * time.Hour,
		}[rest[0]]
		if unit == 0 || n > int64((maxDuration-d)/unit) {
			return 0, wrong
		}
		d, s = d+time.Duration(n)*unit, rest[1:]
	}
	if d == 0 {
		return 0, wrong
	}
	return d, nil
}

// searchable reports whether a text contains a letter or a number, so that a search can find it.
func searchable(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) })
}
