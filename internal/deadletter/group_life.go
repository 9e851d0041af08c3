package deadletter

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// GroupLife contains the data of a group from which dlo decides about notices, snoozes and the
// status of the group.
type GroupLife struct {
	ID     GroupID
	Status GroupStatus
	Chosen Severity // severity that a person chose; "" = severity of the letters
	// severity that a person chose; otherwise the highest severity since the group began to need
	// people
	Severity Severity
	Deaths   int // number of letters that have begun to need people so far
	Snooze   Snooze
	Snoozed  int // value of Deaths when the snooze began
	Resolved Resolution
	Back     Back
	Episode  int    // number of the group's present incident, counted from 1
	Told     int    // value of Deaths when people were last notified; 0 = people do not know of the group at present
	Key      string // key of the notices about the group
	ToldAt   time.Time
	ToldAs   Severity
	Channels []string  // channels on which people were notified
	Began    time.Time // start of the incident, which other groups may share
	Deploy   int64     // last deploy before the group began to need people; 0 = none
	Heard    bool      // machines were notified that the group needs people, but not yet that it no longer does
}

// GroupDeath is the death of a letter in a group. Because of this death, the letter needs people.
type GroupDeath struct {
	// time of death by the clock of the broker, in whole seconds; if the headers do not contain it,
	// the time at which dlo saw the letter
	At       time.Time
	Version  string // version of the consumer that rejected the letter; "" = not reported
	Severity Severity
	Channels []string
}

// updateEvery is the minimum time between two updates to people about the same group, even if the
// group grows fast.
const updateEvery = 15 * time.Minute

// Died records that letters of the group died and now need people. All these deaths are from one
// transaction. Died returns the notice that must be sent, or nil if none must be. The notice has
// the highest severity of these letters.
//
// The parameter "needy" is true if other letters of the group already needed people. In that case,
// the severity of the other letters counts too, because otherwise one new letter with a lower
// severity would lower the severity of the whole group.
//
// The parameter "after" is the operation whose letters of the group all stayed quiet until now, or
// 0 if there is none. If there is one, the group has come back.
func (g *GroupLife) Died(deaths []GroupDeath, needy bool, after OperationID, now time.Time) (notice *Notice) {
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
	case g.Status == GroupResolved && !slices.ContainsFunc(deaths, g.regresses):
		return nil
	case g.Status == GroupResolved:
		g.Status, g.Back, kind = GroupRegressed, Back{Since: now}, NoticeRegressed
	case g.Status == GroupSnoozed && (g.Snooze.After == 0 || g.Deaths-g.Snoozed < g.Snooze.After):
		return nil
	case g.Status == GroupSnoozed:
		g.Wake()
	case after != 0:
		g.Status, g.Back, kind = GroupRegressed, Back{Since: now, After: after}, NoticeRegressed
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
	return g.noticeNow(kind, now)
}

// Chose records the severity that a person chose for a group. It returns a notice for the people
// who know of the group, or nil if none must be sent.
func (g *GroupLife) Chose(s Severity, now time.Time) *Notice {
	g.Severity = s
	if g.Told == 0 || s == g.ToldAs {
		return nil
	}
	louder := s.Louder(g.ToldAs)
	if g.ToldAs = s; !louder {
		return nil
	}
	return g.noticeNow(NoticeUpdated, now)
}

// union returns the elements of a list. They are followed by those elements of "more" that are not
// in the list.
func union(list, more []string) []string {
	out := slices.Clone(list)
	for _, m := range more {
		if !slices.Contains(out, m) {
			out = append(out, m)
		}
	}
	return out
}

// regresses reports whether a letter died after the group was resolved. If the resolution and the
// death both name a numeric version of the consumer, such as 2026.11.20-2, regresses compares these
// versions. Other versions have no order, so it compares the time of the resolution with the time
// of death. The time of receipt does not count, because a letter that died before the resolution
// may be received after it.
func (g *GroupLife) regresses(d GroupDeath) bool {
	if numbered(d.Version) && numbered(g.Resolved.Version) {
		return CompareVersions(d.Version, g.Resolved.Version) >= 0
	}
	return d.At.After(g.Resolved.At)
}

func (g *GroupLife) noticeNow(kind NoticeKind, now time.Time) *Notice {
	g.Told, g.ToldAt, g.ToldAs, g.Heard = max(g.Deaths, 1), now, g.Severity, true
	return g.notice(kind)
}

// Alone puts the group into a new incident of its own. An incident is a set of groups about which
// people are notified together.
func (g *GroupLife) Alone(now time.Time) {
	g.Key, g.Began = fmt.Sprintf("%s/%d", g.ID, g.Episode), now
}

// Leave starts a new incident that consists only of this group, if the group shared its incident
// with other groups before.
func (g *GroupLife) Leave(now time.Time) {
	g.Episode++
	g.Alone(now)
}

// JoinWithin is the time after the start of an incident within which other groups can join it.
const JoinWithin = time.Minute

func (g *GroupLife) notice(kind NoticeKind) *Notice {
	return &Notice{Kind: kind, Key: g.Key, Group: g.ID, Severity: g.ToldAs, Channels: g.Channels}
}

// Escalate records that the group grows faster than before. It returns a notice only if people
// already know of the group, and otherwise nil.
func (g *GroupLife) Escalate(now time.Time) *Notice {
	if g.Status != GroupNew && g.Status != GroupOpen && g.Status != GroupRegressed {
		return nil
	}
	g.Status = GroupEscalating
	if g.Told == 0 {
		return nil
	}
	return g.noticeNow(NoticeEscalated, now)
}

// Wake ends a snooze. After that, people are notified of further deaths again.
func (g *GroupLife) Wake() {
	g.Status, g.Snooze, g.Snoozed = GroupOpen, Snooze{}, 0
}

// Close records that the group needs nobody for now. It returns a notice for the people who know of
// the group. If nobody knows of it, Close returns nil.
func (g *GroupLife) Close() *Notice {
	if g.Told == 0 {
		return nil
	}
	n := g.notice(NoticeResolved)
	g.Forget()
	return n
}

// Quiet records that no letter has died in the group for a while, so that the group needs nobody
// for now. Letters of the group may still wait for people. Quiet returns a notice for the people
// who know of the group and a notice for machines. If nobody knows of the group, it returns nil.
func (g *GroupLife) Quiet() []*Notice {
	n := g.Close()
	if n == nil {
		return nil
	}
	n.Kind = NoticeQuiet
	return []*Notice{n, g.event(EventGroupQuiet, n.Severity)}
}

// CloseSettled records that the group needs nobody any more. It returns up to two notices. The
// first one is for the people who know of the group; it is nil if nobody knows of the group. The
// second one is for machines; it is returned only if machines know of the group.
func (g *GroupLife) CloseSettled() []*Notice {
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

// Forget records that people no longer know of the group, so that the next notice starts a new
// incident.
func (g *GroupLife) Forget() {
	g.Episode++
	g.Told, g.Key, g.ToldAt, g.ToldAs, g.Channels, g.Began, g.Deploy = 0, "", time.Time{}, "", nil, time.Time{}, 0
}

// Hand is called when the group g is merged into the group "to". The incident under which people
// were notified about g then becomes the incident of "to", with the same key. If people already
// know of the group "to", Hand instead returns the notice that ends the incident of g.
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

// TakeOver is called when a group gets the letters of the group "from" and continues that group. It
// takes over people's choices, the notices that were sent, and the key that people know.
func (g *GroupLife) TakeOver(from *GroupLife) {
	id, episode := g.ID, g.Episode
	*g = *from
	g.ID, g.Episode = id, episode
	from.Heard = false
	if from.Told > 0 {
		from.Forget()
	}
}

// numbered reports whether a version consists only of numbers, so that it can be compared with
// others.
func numbered(v string) bool {
	return v != "" && strings.Trim(strings.TrimPrefix(v, "v"), "0123456789.-") == "" &&
		strings.ContainsAny(v, "0123456789") && len(v) < 40
}

// CompareVersions returns -1 if the version a is older than b, 0 if they are equal, and 1 if a is
// newer. Numbers are compared by their values, and other parts as text. Therefore 2026.9.30 is
// older than 2026.11.2.
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
	return strings.Compare(a, b) // at most one of the versions has a part left
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

// versionPart splits a version after its first part, which consists either of digits only or of
// other characters only.
func versionPart(v string) (part, rest string) {
	i := 1
	for i < len(v) && digit(v[i]) == digit(v[0]) {
		i++
	}
	return v[:i], v[i:]
}
