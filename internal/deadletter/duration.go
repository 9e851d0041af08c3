package deadletter

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ParseDuration parses a duration in the form of Go, such as 1h30m or 250ms, or a number of days,
// such as 30d.
func ParseDuration(v string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(v, "d"); ok {
		n, err := strconv.Atoi(days)
		if err == nil && n >= 0 && n <= 100_000 {
			return time.Duration(n) * 24 * time.Hour, nil
		}
	}
	got, err := time.ParseDuration(v)
	if err != nil {
		return 0, fmt.Errorf("%q is not a duration; it looks like 250ms, 10s, 1h30m or 30d", v)
	}
	return got, nil
}
