package deadletter

import (
	"fmt"
	"strconv"
	"strings"
)

// Amount is a number, or UnknownAmount. In JSON, an unknown number is null.
type Amount int

// UnknownAmount stands for a number that nobody has reported or recorded.
const UnknownAmount Amount = -1

// String returns the number, or "" if it is unknown.
func (a Amount) String() string {
	if a < 0 {
		return ""
	}
	return strconv.Itoa(int(a))
}

// Count formats a number with commas, such as 12,480.
func Count[T ~int | int64](v T) string {
	s := strconv.FormatInt(int64(v), 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Plural formats a number together with its noun, such as "1 item" or "2 items".
func Plural[T int | int64](v T, one, many string) string {
	if v == 1 {
		return "1 " + one
	}
	return Count(v) + " " + many
}

// Bytes formats a size in bytes, such as "157 B", "4.0 KiB" or "16 MiB".
func Bytes(n int) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d B", n)
	case n < 1<<20:
		return trimZero(float64(n)/(1<<10)) + " KiB"
	}
	return trimZero(float64(n)/(1<<20)) + " MiB"
}

func trimZero(f float64) string { return strings.TrimSuffix(strconv.FormatFloat(f, 'f', 1, 64), ".0") }
