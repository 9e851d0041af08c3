package drill

import (
	"context"
	"slices"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Failure describes a failure: how it is caused, what must be reported, and what cures it. To add
// one, add an entry to the failures in the file of its kind.
type Failure struct {
	Name  string // for --only
	Does  string // description of what is done
	wants sign
	wave  int  // failures of one wave run concurrently
	admin bool // requires an administrator of the broker

	// What the main dlo, on which most failures are tested, is given for it.
	inbox string // a further inbox
	own   string // an inbox that dlo declares with its exchange, in its own broker entry
	work  string // a queue whose dead letters go to dlo
	rule  string // rule for its letters, without name and match

	before func(ctx context.Context, g *ground) error // sets up the preconditions; not timed
	make   func(ctx context.Context, g *ground) error // the failure itself
	cure   func(ctx context.Context, g *ground, told problem) error
	mended func(ctx context.Context, g *ground) bool // nil = check that the problem is gone
}

// sign is the expected report of a failure.
type sign struct {
	office   string                 // which dlo says it; "" = the one that most failures are tried on
	kind     deadletter.ProblemKind // of a problem; "" = none
	severity deadletter.Severity
	broker   string   // of the problem; "" = any
	about    string   // its queue or inbox; "" = any
	says     string   // a part of its title, text or cure
	also     []string // further parts
	page     string   // a part of what Overview shows, if not the title
	status   int      // of /readyz, if not 200
	group    string   // instead of a problem, letters of this queue need people: Overview shows their group, the notice their queue
	quiet    bool     // nobody may be notified, as dlo recovers on its own
	exit     int      // dlo does not start: it exits with this code and a reason
}

// at returns the name of the dlo that reports the failure.
func (s *sign) at() string {
	if s.office == "" {
		return mainOffice
	}
	return s.office
}

// Waves run in this order: first all failures that concern one queue or one dlo; then those that
// close connections, after which dlo checks everything immediately and not at its usual minute;
// then the user's rights; then its password.
const (
	waveClosed = 1
	waveRights = 2
	waveAway   = 3
	lastWave   = waveAway
)

// failures lists all failures that a drill causes.
var failures = slices.Concat(policyFailures, goneFailures, letterFailures, officeFailures, storeFailures, userFailures)

// NotMade lists the kinds of problems that no drill causes, with the reasons.
var NotMade = []struct {
	Kind deadletter.ProblemKind
	Why  string
}{
	{deadletter.ProblemMissing, "dlo has to be killed with letters in hand, in the middle of a commit, which would end the drill; near-limit is told before"},
	{deadletter.ProblemBlocked, "a memory or disk alarm is one of the whole broker, and stops everybody who publishes to it"},
	{deadletter.ProblemAge, "letters have to be days old"},
	{deadletter.ProblemStoreDamaged, "a store has to be broken, and stays so"},
}

// List returns the failures that a drill causes and the kind of problem reported for each; "" =
// none.
func List() (list []struct{ Name, Does, Kind string }) {
	for _, f := range failures {
		list = append(list, struct{ Name, Does, Kind string }{f.Name, f.Does, string(f.wants.kind)})
	}
	return list
}
