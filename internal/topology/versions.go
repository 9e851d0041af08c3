package topology

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// numberOf returns a number for the first two parts of a version, by which versions can be
// compared.
func numberOf(version string) int {
	parts := append(strings.SplitN(version, ".", 3), "")
	major, _ := strconv.Atoi(parts[0])
	minor, _ := strconv.Atoi(parts[1])
	return major*1000 + minor
}

// sinceVersion4 reports whether a version is 4.0 or later.
func sinceVersion4(version string) bool { return numberOf(version) >= numberOf("4.0") }

// measuredBelow returns the index of the latest measured version that is not later than the given
// one. For an unknown version, that is the latest of all.
func measuredBelow(version string) int {
	later := func(m string) bool { return version != "" && numberOf(m) > numberOf(version) }
	if at := slices.IndexFunc(measured, later); at >= 0 {
		return max(0, at-1)
	}
	return len(measured) - 1
}

// measuredAround returns the measured versions whose behaviour a version may have: the version
// itself if it was measured, otherwise the two that surround it. For an unknown version, these are
// all.
func measuredAround(version string) []string {
	at := measuredBelow(version)
	switch {
	case version == "":
		return measured
	case numberOf(version) > numberOf(measured[at]) && at+1 < len(measured):
		return measured[at : at+2]
	}
	return measured[at : at+1]
}

// as returns the snapshot as a measured version of RabbitMQ would read it from a file. From 4.0 on,
// a queue without a type gets the default type of its vhost, unless it is transient or deleted
// automatically; 3.10.8 ignores the default type when it imports a file (3.10.8, 4.0.5, 4.3.6).
func (s *Snapshot) as(version string) *Snapshot {
	s.timeToMatch() // shared by all versions
	c := *s
	c.like = version
	if c.Version == "" {
		c.Version = version
	}
	c.Queues = slices.Clone(s.Queues)
	for i := range c.Queues {
		q := &c.Queues[i]
		_, typed := q.Arguments.Text("x-queue-type")
		if s.DefaultType != "" && sinceVersion4(version) && q.Type == "" && !typed && q.Durable && !q.AutoDelete &&
			!q.Exclusive {
			q.Type = s.DefaultType
		}
	}
	return &c
}

// variants returns the snapshot as each version would read it that it may be from. A broker reports
// what it does itself, so its snapshot has no variants.
func (s *Snapshot) variants() []*Snapshot {
	if !s.ReadAt.IsZero() || s.Broker != "" || s.Passive || s.like != "" {
		return []*Snapshot{s}
	}
	var list []*Snapshot
	for _, version := range measuredAround(s.Version) {
		list = append(list, s.as(version))
	}
	return list
}

// behaves returns the version of RabbitMQ whose rules apply to the snapshot.
func (s *Snapshot) behaves() string { return cmp.Or(s.like, s.Version) }

// onlyOn says which versions a finding depends on. The parameter "on" has the versions with the
// finding, and "all" has all that were tried.
func (s *Snapshot) onlyOn(on, all []string) string {
	if s.Version != "" {
		return textf("If RabbitMQ %s does what %s does", s.Version, strings.Join(on, " and "))
	}
	newer := slices.IndexFunc(all, sinceVersion4)
	switch {
	case slices.Equal(on, all[:newer]):
		return "On 3.x"
	case slices.Equal(on, all[newer:]):
		return "On 4.x"
	}
	return "On " + strings.Join(on, " and ")
}

// inEach returns the findings of all variants of a vhost. A finding that not all of them have says
// on which versions it is true.
func (s *Snapshot) inEach(of []*inspector) []Finding {
	var list []Finding
	var on [][]string
	var all []string
	at := map[[3]string]int{}
	for _, in := range of {
		all = append(all, in.s.like)
		for _, f := range in.found {
			k := [3]string{string(f.Kind), f.Title, string(f.Severity)}
			if _, known := at[k]; !known {
				at[k] = len(list)
				list, on = append(list, f), append(on, nil)
			}
			on[at[k]] = append(on[at[k]], in.s.like)
		}
	}
	for i := range list {
		if len(on[i]) < len(all) {
			f, versions := &list[i], s.onlyOn(on[i], all)
			if f.Title, f.Sure = versions+": "+f.Title, Likely; f.cause != "" {
				f.cause += "\n" + versions
			}
		}
	}
	return list
}
