package deadletter

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// GroupLife is what decides how a group goes on: what people chose, and what its letters did.
type GroupLife struct {
	ID       GroupID
	Status   GroupStatus
	Chosen   Severity // by a person; "" = as its letters say
	Severity Severity // as chosen, else of the loudest letter since it began to need people
	Deaths   int      // letters that came to need people, ever
	Snooze   Snooze
	Snoozed  int // Deaths when it was put off
	Resolved Resolution
	Episode  int    // how often people were told of it anew, from 1
	Told     int    // Deaths when people were told of it last; 0 = they are not told at the moment
	Key      string // of what they are told
	ToldAt   time.Time
	ToldAs   Severity
	Channels []string  // where they were told
	Began    time.Time // when the incident began that they are told of, which others may share
	Deploy   int64     // after which it began to need people; 0 = none
	Heard    bool      // machines heard that it needs people, and not yet that it needs nobody
}

// GroupDeath is a letter of a group that came to need people.
type GroupDeath struct {
	At       time.Time // when it died, whole seconds by the clock of its broker; where its headers do not say, when dlo saw it
	Version  string    // of the consumer that gave it up; "" = not said
	Severity Severity
	Channels []string
}

// updateEvery is how long people are left alone about a group that they were told of, however fast
// it grows.
const updateEvery = 15 * time.Minute

// Died takes in letters of one commit that came to need people, and returns what they are to be
// told; nil = nothing. The severity is that of the loudest of them and, where others of the group
// need people already (needy), of those before them: a group does not fall silent because a letter
// dies for which a quieter rule holds.
func (g *GroupLife) Died(deaths []GroupDeath, needy bool, now time.Time) (notice *Notice) {
	if len(deaths) == 0 {
		return nil
	}
	g.Deaths += len(deaths)
	if !needy || g.Status == GroupResolved {
		g.Severity = ""
	}
	var channels []string
	for _, d := range deaths {
		if d.Severity.Louder(g.Severity) {
			g.Severity = d.Severity
		}
		channels = union(channels, d.Channels)
	}
	if g.Chosen != "" {
		g.Severity = g.Chosen
	}
	kind := NoticeOpened
	switch {
	case g.Status == GroupResolved && !slices.ContainsFunc(deaths, g.regressing):
		return nil
	case g.Status == GroupResolved:
		g.Status, kind = GroupRegressed, NoticeRegressed
	case g.Status == GroupSnoozed && (g.Snooze.After == 0 || g.Deaths-g.Snoozed < g.Snooze.After):
		return nil
	case g.Status == GroupSnoozed:
		g.Wake()
	}
	louder := g.Told > 0 && g.Severity.Louder(g.ToldAs)
	switch {
	case g.Severity == SeverityDigest || g.Severity == "", len(channels) == 0 && g.Told == 0:
		return nil
	case g.Told == 0:
		g.Alone(now)
		g.Channels = nil
	case louder:
	case now.Sub(g.ToldAt) >= updateEvery && g.Deaths >= 2*g.Told:
		kind = NoticeUpdated
	default:
		return nil
	}
	g.Channels = union(g.Channels, channels)
	return g.tell(kind, now)
}

// Chose takes in the severity that a person chose, and returns what people are told who know of the
// group already; nil = nothing.
func (g *GroupLife) Chose(s Severity, now time.Time) *Notice {
	g.Severity = s
	if g.Told == 0 || s == g.ToldAs {
		return nil
	}
	louder := s.Louder(g.ToldAs)
	if g.ToldAs = s; !louder {
		return nil
	}
	return g.tell(NoticeUpdated, now)
}

// union is a list with what it did not have of another.
func union(list, more []string) []string {
	out := slices.Clone(list)
	for _, m := range more {
		if !slices.Contains(out, m) {
			out = append(out, m)
		}
	}
	return out
}

// regressing says that a letter died after the group was resolved: by the time of its death, as one
// that died before may arrive later, and by the version of its consumer where both are numbers,
// such as 2026.11.20-2: others have no order.
func (g *GroupLife) regressing(d GroupDeath) bool {
	if numbered(d.Version) && numbered(g.Resolved.Version) {
		return CompareVersions(d.Version, g.Resolved.Version) >= 0
	}
	return d.At.After(g.Resolved.At)
}

func (g *GroupLife) tell(kind NoticeKind, now time.Time) *Notice {
	g.Told, g.ToldAt, g.ToldAs, g.Heard = max(g.Deaths, 1), now, g.Severity, true
	return g.notice(kind)
}

// Alone makes an incident of its own of what people are told of the group.
func (g *GroupLife) Alone(now time.Time) {
	g.Key, g.Began = fmt.Sprintf("%s/%d", g.ID, g.Episode), now
}

// Leave is Alone for a group that is told of in an incident with others.
func (g *GroupLife) Leave(now time.Time) {
	g.Episode++
	g.Alone(now)
}

// JoinWithin is how long after the beginning of an incident other groups join it.
const JoinWithin = time.Minute

func (g *GroupLife) notice(kind NoticeKind) *Notice {
	return &Notice{Kind: kind, Key: g.Key, Group: g.ID, Severity: g.ToldAs, Channels: g.Channels}
}

// Escalate says that the group grows faster than it did. Nobody is told of what they did not have
// to know before.
func (g *GroupLife) Escalate(now time.Time) *Notice {
	if g.Status != GroupNew && g.Status != GroupOpen && g.Status != GroupRegressed {
		return nil
	}
	g.Status = GroupEscalating
	if g.Told == 0 {
		return nil
	}
	return g.tell(NoticeEscalated, now)
}

// Wake ends a snooze: what dies from now on is told again.
func (g *GroupLife) Wake() {
	g.Status, g.Snooze, g.Snoozed = GroupOpen, Snooze{}, 0
}

// Close says that the group needs nobody for now. It returns what people who were told of it are
// told; nil = they were not.
func (g *GroupLife) Close() *Notice {
	if g.Told == 0 {
		return nil
	}
	n := g.notice(NoticeResolved)
	g.Forget()
	return n
}

// Quiet is Close for a group of which no letter has died for a while; letters of it may wait for
// people.
func (g *GroupLife) Quiet() []*Notice {
	n := g.Close()
	if n == nil {
		return nil
	}
	n.Kind = NoticeQuiet
	return []*Notice{n, g.event(EventGroupQuiet, n.Severity)}
}

// Settle is Close for a group that needs nobody any more, of which machines hear too.
func (g *GroupLife) Settle() []*Notice {
	severity, n := g.ToldAs, g.Close()
	if !g.Heard {
		return []*Notice{n}
	}
	g.Heard = false
	return []*Notice{n, g.event(EventGroupResolved, severity)}
}

func (g *GroupLife) event(kind NoticeKind, s Severity) *Notice {
	return &Notice{Kind: kind, Key: g.ID.String(), Group: g.ID, Severity: cmp.Or(s, g.Severity)}
}

// Forget says that people are not told of the group any more.
func (g *GroupLife) Forget() {
	g.Episode++
	g.Told, g.Key, g.ToldAt, g.ToldAs, g.Channels, g.Began, g.Deploy = 0, "", time.Time{}, "", nil, time.Time{}, 0
}

// Hand gives what people are told of a group to the one that it is merged into, which goes on under
// the key that they know. When they are told of that one already, it returns the end of this one.
func (g *GroupLife) Hand(to *GroupLife) *Notice {
	if to.Chosen == "" && g.Severity.Louder(to.Severity) {
		to.Severity = g.Severity
	}
	to.Heard, g.Heard = to.Heard || g.Heard, false
	if g.Told == 0 || to.Told > 0 {
		return g.Close()
	}
	to.Told, to.Key, to.ToldAt, to.ToldAs, to.Channels = max(to.Deaths, 1), g.Key, g.ToldAt, g.ToldAs, g.Channels
	to.Began, to.Deploy = g.Began, g.Deploy
	g.Forget()
	return nil
}

// TakeOver makes a group whose letters come out of another go on as that one: what was chosen, and
// what people were told, which goes on under the key that they know.
func (g *GroupLife) TakeOver(from *GroupLife) {
	id, episode := g.ID, g.Episode
	*g = *from
	g.ID, g.Episode = id, episode
	from.Heard = false
	if from.Told > 0 {
		from.Forget()
	}
}

// numbered says that a version is made of numbers only, so that it has an order.
func numbered(v string) bool {
	return v != "" && strings.Trim(strings.TrimPrefix(v, "v"), "0123456789.-") == "" && strings.ContainsAny(v, "0123456789") && len(v) < 40
}

// CompareVersions returns -1, 0 or 1, as version a is older than b, the same, or newer: numbers by
// their value, everything else as text, so 2026.9.30 is older than 2026.11.2.
func CompareVersions(a, b string) int {
	a, b = strings.TrimPrefix(a, "v"), strings.TrimPrefix(b, "v")
	for a != "" && b != "" {
		var x, y string
		x, a = versionPart(a)
		y, b = versionPart(b)
		if x == y {
			continue
		}
		if digit(x[0]) && digit(y[0]) {
			x, y = strings.TrimLeft(x, "0"), strings.TrimLeft(y, "0")
			if c := cmp.Compare(len(x), len(y)); c != 0 {
				return c
			}
		}
		if c := strings.Compare(x, y); c != 0 {
			return c
		}
	}
	return strings.Compare(a, b) // the rest of one of them
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

// versionPart cuts the first run of digits, or of anything else, off a version.
func versionPart(v string) (part, rest string) {
	i := 1
	for i < len(v) && digit(v[i]) == digit(v[0]) {
		i++
	}
	return v[:i], v[i:]
}
