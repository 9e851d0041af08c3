package deadletter

import (
	"fmt"
	"slices"
	"strings"
)

// Principal is the person, token or service that makes a request.
type Principal struct {
	Name   string   // name in the audit, e.g. ana@example.com, token:ci or local
	Grants []Grant  // what the principal may do; empty = nothing
	Frozen []string // brokers on which the configuration forbids changes by anybody
	Fixed  string   // why nobody may change anything; "" = the grants decide
	As     string   // description of the grant with which an admin views the pages; "" = the admin's own grants
}

// Grant gives a principal the rights of a role.
type Grant struct {
	Role   Role `json:"role"`
	Reveal bool `json:"reveal"` // right to see masked values; no role includes it
	Purge  bool `json:"purge"`  // right to purge letters; no role includes it

	// Again is the reason why the grant does not permit its owner three things at present: to see
	// masked values, to purge, and to change who may do what. For example, the owner entered the
	// password too long ago. If there is no such reason, Again is "".
	Again string `json:"-"`

	// The grant is valid only in these places.
	Places
}

// Places says where a grant is valid, with globs for the names of queues, vhosts and brokers. An
// empty list means everywhere.
type Places struct {
	Queues  []string `json:"queues"` // globs; empty = all queues
	VHosts  []string `json:"vhosts"`
	Brokers []string `json:"brokers"`

	// If FromRabbitMQ is true, the grant is valid only for queues to which the person may write in
	// RabbitMQ. The field Written lists these permissions.
	FromRabbitMQ bool      `json:"from_rabbitmq"`
	Written      []Written `json:"-"`
}

// everywhere reports whether the places have no limits.
func (p Places) everywhere() bool {
	return !p.FromRabbitMQ && !slices.ContainsFunc(
		[][]string{p.Queues, p.VHosts, p.Brokers},
		func(globs []string) bool { return len(globs) > 0 && !slices.Contains(globs, "*") },
	)
}

// description describes the places, such as "queues a.* b.*". If the places have no limits, it
// returns "".
func (p Places) description() string {
	var parts []string
	for _, of := range []struct {
		name  string
		globs []string
	}{{"queues", p.Queues}, {"vhosts", p.VHosts}, {"brokers", p.Brokers}} {
		if len(of.globs) > 0 {
			parts = append(parts, of.name+" "+Visible(strings.Join(of.globs, " ")))
		}
	}
	if p.FromRabbitMQ {
		parts = append(parts, "queues that RabbitMQ lets them write to")
	}
	return strings.Join(parts, ", ")
}

// These are the maximum number of globs in each list of a grant, and the maximum length of a glob.
const (
	maxGlobs = 200
	maxGlob  = MaxQueueName // in bytes
)

// NewGrant returns a grant with the rights of a role. If the role, the rights or the places are not
// valid, the error wraps ErrInvalid.
func NewGrant(role string, reveal, purge bool, p Places) (Grant, error) {
	g := Grant{Reveal: reveal, Purge: purge, Places: p}
	var err error
	if g.Role, err = ParseRole(role); err != nil {
		return g, err
	}
	if purge && g.Role < verbs[VerbPurge].least {
		return g, fmt.Errorf("%w: purge needs the role %s or more", ErrInvalid, verbs[VerbPurge].least)
	}
	if reveal && g.Role < verbs[VerbReveal].least {
		return g, fmt.Errorf("%w: reveal needs the role %s or more", ErrInvalid, verbs[VerbReveal].least)
	}
	for _, globs := range [][]string{p.Queues, p.VHosts, p.Brokers} {
		if len(globs) > maxGlobs || slices.ContainsFunc(
			globs, func(glob string) bool { return glob == "" || len(glob) > maxGlob },
		) {
			return g, fmt.Errorf(
				"%w: a grant holds for at most %d globs of queues, vhosts or brokers, each of 1 to %d bytes",
				ErrInvalid, maxGlobs, maxGlob,
			)
		}
	}
	return g, nil
}

// Words describes the grant, such as "operator, reveal, queues a.*".
func (g Grant) Words() string {
	text := g.Role.String()
	if g.Reveal {
		text += ", reveal"
	}
	if g.Purge {
		text += ", purge"
	}
	if where := g.Places.description(); where != "" {
		text += ", " + where
	}
	return text
}

// fullGrant is a grant that permits every action.
var fullGrant = Grant{Role: RoleAdmin, Reveal: true, Purge: true}

// Local is the principal for requests through a loopback address without sign-in. This is everybody
// who has a shell on the machine.
var Local = Principal{Name: "local", Grants: []Grant{fullGrant}}

// Service is dlo itself, for example its scheduler and its classifier. Its actions are not checked,
// because nobody has requested them.
var Service = Principal{Name: "dlo"}

// May reports whether the principal may perform an action in at least one place.
func (p Principal) May(v Verb) bool {
	return p.mayChange(v) && slices.ContainsFunc(p.Grants, func(g Grant) bool { return g.includes(v) })
}

// MayEverywhere reports whether the principal may perform an action at every broker, vhost and
// queue.
func (p Principal) MayEverywhere(v Verb) bool {
	return p.mayChange(v) && slices.ContainsFunc(
		p.Grants, func(g Grant) bool { return g.includes(v) && g.holds(Origin{}) },
	)
}

// mayChange returns false if the action changes something and nobody may change anything. Otherwise
// it returns true, and the grants decide.
func (p Principal) mayChange(v Verb) bool { return p.Fixed == "" || slices.Contains(readVerbs, v) }

// MayToAll reports whether the principal may perform an action on everything at every broker. In
// that case, nobody needs to check single objects. It returns false for a person who must first
// enter the password again.
func (p Principal) MayToAll(v Verb) bool { return len(p.Frozen) == 0 && Allow(p, v, Origin{}) == nil }

// holds reports whether the grant is valid for an origin. If an object belongs to no queue, vhost
// or broker, this part of its origin is empty. A grant that is limited to some queues is not valid
// for an origin without a queue. In the same way, a grant that is limited to some vhosts or brokers
// is not valid for an origin without a vhost or broker.
func (g Grant) holds(o Origin) bool {
	return anyGlobMatches(g.Brokers, o.Broker) && anyGlobMatches(g.VHosts, o.VHost) &&
		anyGlobMatches(g.Queues, o.Queue) &&
		(!g.FromRabbitMQ || slices.ContainsFunc(g.Written, func(w Written) bool { return w.holds(o) }))
}

func anyGlobMatches(globs []string, name string) bool {
	return len(globs) == 0 || slices.ContainsFunc(globs, func(glob string) bool { return Glob(glob, name, false) })
}

func (g Grant) includes(v Verb) bool {
	need, known := verbs[v]
	switch {
	case !known || g.Role < need.least || !g.Role.valid():
		return false
	case v == VerbReveal:
		return g.Reveal
	case v == VerbPurge:
		return g.Purge
	}
	return true
}

// Allow checks every action before it is performed. It returns nil if a principal may perform the
// action v on letters of the origin o. If the origin is empty, the action is on something that
// belongs to no queue. The error wraps ErrDenied and names the principal and the action, or it
// wraps ErrAgain.
func Allow(p Principal, v Verb, o Origin) error {
	return p.allow(v, o, func(g Grant) bool { return g.holds(o) })
}

// Reach checks a request before it is handled. It returns nil if a principal may perform an action
// in at least one place. After that, Allow checks the place itself.
func Reach(p Principal, v Verb) error {
	return p.allow(v, Origin{}, func(Grant) bool { return true })
}

func (p Principal) allow(v Verb, o Origin, holds func(Grant) bool) error {
	if !p.mayChange(v) {
		return fmt.Errorf("%w: nobody may %s, because %s", ErrDenied, verbs[v].words, p.Fixed)
	}
	if o.Broker != "" && slices.Contains(p.Frozen, o.Broker) && !slices.Contains(readVerbs, v) {
		return fmt.Errorf(
			"%w: nobody may %s at broker %s, because read_only is set for it", ErrDenied, verbs[v].words,
			Visible(o.Broker),
		)
	}
	again := ""
	for _, g := range p.Grants {
		switch {
		case !g.includes(v) || !holds(g):
		case g.Again == "" || v != VerbReveal && v != VerbPurge && v != VerbAccess:
			return nil
		default:
			again = g.Again
		}
	}
	if again != "" {
		return fmt.Errorf("%w: to %s, %s", ErrAgain, verbs[v].words, again)
	}
	return deniedError(p, v, o, holds)
}

// readVerbs contains the verbs of actions that change nothing.
var readVerbs = []Verb{VerbView, VerbRead, VerbReveal, VerbBackup}

// ErrAgain is a kind of ErrForbidden. It means that a grant of the principal includes the action,
// but does not permit it at present. The field Again of this grant says why.
var ErrAgain = fmt.Errorf("%w", ErrForbidden)

// Denied returns the error for a principal that may not perform an action anywhere. The error wraps
// ErrDenied.
func Denied(p Principal, v Verb) error {
	return deniedError(p, v, Origin{}, func(Grant) bool { return true })
}

func deniedError(p Principal, v Verb, o Origin, holds func(Grant) bool) error {
	where := ""
	// the person may know the name of the queue only from letters of other people
	if o.Queue != "" && !p.Sees().Includes(o) {
		where = " there"
	} else if o.Queue != "" {
		where = " of queue " + Visible(o.Queue)
	} else if o.Broker != "" {
		where = " at broker " + Visible(o.Broker)
	}
	return fmt.Errorf("%w: %s may not %s%s; %s", ErrDenied, Visible(p.Name), verbs[v].words, where, p.missing(v, holds))
}

// missing describes the right that an action needs, and the role that the grants for which "holds"
// returns true give instead.
func (p Principal) missing(v Verb, holds func(Grant) bool) string {
	if v == VerbReveal || v == VerbPurge {
		return fmt.Sprintf("that needs a grant with %s: true", v)
	}
	text := fmt.Sprintf("that needs the role %s", verbs[v].least)
	var has Role
	for _, g := range p.Grants {
		if holds(g) {
			has = max(has, g.Role)
		}
	}
	switch {
	case has.valid():
		return text + fmt.Sprintf(", and %s has the role %s", Visible(p.Name), has)
	case p.May(v):
		return text + ", and the grants for it are for other queues"
	}
	return text
}
