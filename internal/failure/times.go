package failure

import (
	"strconv"
	"time"
)

// timeRFC3339 parses a time in the most common form of ISO 8601. The second may have any number of
// fractional digits: for example, the round-trip format of .NET has seven.
func timeRFC3339(text string) time.Time {
	if len(text) > 64 {
		return time.Time{}
	}
	at, _ := time.Parse(time.RFC3339Nano, text)
	return storable(at)
}

// timeNServiceBus parses NServiceBus's format, which has a colon before the microseconds:
// "2026-11-20 10:11:12:123456 Z".
func timeNServiceBus(text string) time.Time {
	const colon = len("2006-01-02 15:04:05")
	if len(text) <= colon || len(text) > 64 || text[colon] != ':' {
		return time.Time{}
	}
	at, _ := time.Parse("2006-01-02 15:04:05.999999 Z", text[:colon]+"."+text[colon+1:])
	return storable(at)
}

// timeUnixMilli parses milliseconds since 1970, written as text.
func timeUnixMilli(text string) time.Time {
	ms, err := strconv.ParseInt(text[:min(len(text), 20)], 10, 64)
	if err != nil || ms <= 0 {
		return time.Time{}
	}
	return storable(time.UnixMilli(ms))
}

// storable returns a time in UTC. If the time cannot be stored and shown, it returns the zero time.
func storable(at time.Time) time.Time {
	if y := at.Year(); y < 1970 || y > 9999 {
		return time.Time{}
	}
	return at.UTC()
}
