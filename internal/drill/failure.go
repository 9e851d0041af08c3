package drill

import (
	"context"
	"slices"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Failure describes a failure: its cause, its expected report and its cure. To add a failure, add
// an entry to the list in the file for its kind.
type Failure struct {
	Name  string // for --only
	Does  string // description of the failure
	wants sign
	wave  int  // failures of one wave run concurrently
	admin bool // requires an administrator of the broker

	// Most failures use the main dlo. These fields add to its configuration.
	inbox string // a further inbox
	own   string // an inbox with its own broker entry; dlo declares the inbox and its exchange
	work  string // a queue whose dead letters go to dlo
	rule  string // the rule for letters from work, without name and match

	before func(ctx context.Context, g *ground) error // sets up the preconditions; not timed
	make   func(ctx context.Context, g *ground) error // the failure itself
	cure   func(ctx context.Context, g *ground, told problem) error
	mended func(ctx context.Context, g *ground) bool // nil = the problem must be gone
}

// sign is the expected report of a failure.
type sign struct {
	office   string                 // the dlo that reports it; "" = the main dlo, which most failures use
	kind     deadletter.ProblemKind // kind of the problem; "" = none
	severity deadletter.Severity
	broker   string   // broker of the problem; "" = any
	about    string   // queue or inbox of the problem; "" = any
	says     string   // a part of the problem's title, text or cure
	also     []string // further parts
	page     string   // a part of the text that Overview shows, if it is not the title
	status   int      // status of /readyz; 0 = 200
	group    string   // instead of a problem: queue whose letters need people. Overview shows their group, the notice their queue
	quiet    bool     // nobody may be notified, because dlo recovers automatically
	exit     int      // dlo does not start, but exits with this code and a reason
}

// at returns the name of the dlo that reports the failure.
func (s *sign) at() string {
	if s.office == "" {
		return mainOffice
	}
	return s.office
}

// Waves run in this order. The first wave, 0, has the failures that concern one queue or one dlo.
// waveClosed closes connections. dlo then checks everything immediately instead of waiting up to a
// minute for its next check. waveRights takes rights from the user, and waveAway changes the user's
// password.
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

// List returns the failures that a drill causes. Kind is the kind of problem that dlo reports for
// the failure, or "" if it reports none.
func List() (list []struct{ Name, Does, Kind string }) {
	for _, f := range failures {
		list = append(list, struct{ Name, Does, Kind string }{f.Name, f.Does, string(f.wants.kind)})
	}
	return list
}
