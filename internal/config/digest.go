package config

import (
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// TimeOfDay is a local time of day, in minutes after midnight.
type TimeOfDay int

// QuietHours contains the hours in which notices of severity "notify" wait. If Days is empty, there
// are no quiet hours.
type QuietHours struct {
	From, To TimeOfDay
	Zone     string         // time zone, e.g. Europe/Berlin
	Days     []time.Weekday // days on which quiet hours begin
}

// Digest says when the digest is sent, and to which channels. Without channels, only the page shows
// the digest.
type Digest struct {
	At     TimeOfDay
	Days   []time.Weekday
	Zone   string
	Notify []string
}

// Problems says which channels are notified of problems of dlo itself. If it names no channels, the
// channels of all rules with severity "page" are notified.
type Problems struct {
	Notify []string
}

func (d *decoder) quietHours(n *yaml.Node, q *QuietHours) {
	d.mapping(n, "quiet_hours", keys{
		"from": func(n *yaml.Node) { d.timeOfDay(n, &q.From) },
		"to":   func(n *yaml.Node) { d.timeOfDay(n, &q.To) },
		"zone": func(n *yaml.Node) { d.zone(n, &q.Zone) },
		"days": func(n *yaml.Node) { d.days(n, &q.Days) },
	})
	if len(q.Days) > 0 && q.From == q.To {
		d.mistake(n, "quiet hours from %s to the same time would never end, or never begin", q.From)
	}
}

func (d *decoder) digest(n *yaml.Node, g *Digest) {
	d.mapping(n, "digest", keys{
		"at":     func(n *yaml.Node) { d.timeOfDay(n, &g.At) },
		"days":   func(n *yaml.Node) { d.days(n, &g.Days) },
		"zone":   func(n *yaml.Node) { d.zone(n, &g.Zone) },
		"notify": func(n *yaml.Node) { d.channelNames(n, &g.Notify) },
	})
}

// String returns the time in the form of the file, e.g. 08:30.
func (t TimeOfDay) String() string {
	return time.Date(0, 1, 1, int(t)/60, int(t)%60, 0, 0, time.UTC).Format("15:04")
}

func (d *decoder) timeOfDay(n *yaml.Node, into *TimeOfDay) {
	v, ok := d.scalar(n, "a time such as \"08:30\"")
	if !ok {
		return
	}
	at, err := time.Parse("15:04", v)
	if err != nil || len(v) != len("15:04") {
		d.mistake(n, "%q is not a time such as \"08:30\", in quotes", v)
		return
	}
	*into = TimeOfDay(at.Hour()*60 + at.Minute())
}

func (d *decoder) zone(n *yaml.Node, into *string) {
	v, ok := d.scalar(n, "a time zone such as Europe/Berlin")
	if !ok {
		return
	}
	if _, err := time.LoadLocation(v); err != nil || v == "" || v == "Local" {
		d.mistake(n, "%q is not a time zone; it looks like Europe/Berlin or UTC", v)
		return
	}
	*into = v
}

var weekdays = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

func (d *decoder) days(n *yaml.Node, into *[]time.Weekday) {
	*into = nil
	d.list(n, func(n *yaml.Node) {
		v, ok := d.scalar(n, "a day such as mon")
		at := slices.Index(weekdays, strings.ToLower(v))
		switch {
		case !ok:
		case at < 0:
			d.mistake(n, "%q is not one of mon, tue, wed, thu, fri, sat, sun", v)
		case slices.Contains(*into, time.Weekday(at)):
			d.mistake(n, "%s is listed twice", v)
		default:
			*into = append(*into, time.Weekday(at))
		}
	})
}
