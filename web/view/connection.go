package view

import (
	"cmp"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// ConnectionPage shows the connections of dlo to its brokers: their state, the inboxes that dlo
// drains, and what dlo is permitted to do.
type ConnectionPage struct {
	Shell
	Inboxes []deadletter.Inbox
}

var rightMarks = map[deadletter.RightState]mark{
	deadletter.RightProved:  {"Works", "check", "good"},
	deadletter.RightRefused: {"Refused", "stop", "bad"},
	deadletter.RightAssumed: {"Assumed", "clock", ""},
}

// connectionMark returns a mark that says whether dlo is connected to a broker and can publish.
func connectionMark(b deadletter.BrokerStatus) mark {
	switch {
	case !b.Connected:
		return mark{"Not connected", "stop", "bad"}
	case b.Blocked != "":
		return mark{"Blocked", "pause", "warn"}
	}
	return mark{"Connected", "check", "good"}
}

// versionWords returns the product and the version of a broker, or "unknown".
func versionWords(b deadletter.BrokerStatus) string {
	if b.Version == "" {
		return "unknown"
	}
	return product(b)
}

// managementWords says how dlo reaches the management API of a broker.
func managementWords(b deadletter.BrokerStatus) string {
	switch {
	case b.ManagementFound != "":
		return "The API was found at " + line(b.ManagementFound, 200) + ", and is not configured."
	case b.Managed:
		return "configured"
	}
	return "No management API is configured or was found. " +
		"dlo cannot tell whether a policy deletes letters from its own queues."
}

// inboxMark returns a mark that says whether an inbox is connected and drained.
func inboxMark(i deadletter.Inbox) mark {
	switch {
	case !i.Connected:
		return mark{"Not connected", "stop", "bad"}
	case !i.Draining:
		return mark{"Not drained", "warn", "warn"}
	}
	return mark{"Connected", "check", "good"}
}

func inboxNote(i deadletter.Inbox) string {
	if !i.Connected {
		return line(cmp.Or(i.Why, i.Note), 300)
	}
	return line(i.Note, 300)
}
