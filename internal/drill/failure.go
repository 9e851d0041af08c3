package drill

import (
	"context"
	"slices"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Failure is something that goes wrong: how it is made, what people are to be told, and what cures
// it. A new one is one more entry of failures, in the file of its kind.
type Failure struct {
	Name  string // for --only
	Does  string // what is done, in words
	wants sign
	wave  int  // those of a wave are made at once
	admin bool // it takes an administrator of the broker

	// What the dlo that most failures are tried on has for it.
	inbox string // a further inbox
	own   string // an inbox that dlo declares, with an exchange, in an entry of its own
	work  string // a queue whose letters come to dlo
	rule  string // for them, without its name and match

	before func(ctx context.Context, g *ground) error // brings about what has to be there; it is not timed
	make   func(ctx context.Context, g *ground) error // the failure itself
	cure   func(ctx context.Context, g *ground, told problem) error
	mended func(ctx context.Context, g *ground) bool // nil: the problem is gone
}

// sign is what people are to be told of a failure.
type sign struct {
	office   string                 // which dlo says it; "" = the one that most failures are tried on
	kind     deadletter.ProblemKind // of a problem; "" = none
	severity deadletter.Severity
	broker   string   // of the problem; "" = any
	about    string   // its queue or inbox; "" = any
	says     string   // a part of its title, text or cure
	also     []string // further parts
	page     string   // a part of what Overview says, where that is not the title
	status   int      // of /readyz, where that is not 200
	group    string   // no problem: letters of this queue need people, so Overview has their group, and the notice its queue
	quiet    bool     // nobody is to be told, as it goes on by itself
	exit     int      // dlo does not start, and says why with this exit code
}

// office is the dlo that says it.
func (s *sign) at() string {
	if s.office == "" {
		return mainOffice
	}
	return s.office
}

// waves: all that concerns one queue or one dlo; then what closes connections, after which dlo
// looks at everything at once and not in its minute; then the rights of the user; then its
// password.
const (
	waveClosed = 1
	waveRights = 2
	waveAway   = 3
	lastWave   = waveAway
)

// failures are all that a drill makes.
var failures = slices.Concat(policyFailures, goneFailures, letterFailures, officeFailures, storeFailures, userFailures)

// NotMade are the kinds of problems that no drill makes, and why.
var NotMade = []struct {
	Kind deadletter.ProblemKind
	Why  string
}{
	{deadletter.ProblemMissing, "dlo has to be killed with letters in hand, in the middle of a commit, which would end the drill; near-limit is told before"},
	{deadletter.ProblemBlocked, "a memory or disk alarm is one of the whole broker, and stops everybody who publishes to it"},
	{deadletter.ProblemAge, "letters have to be days old"},
	{deadletter.ProblemStoreDamaged, "a store has to be broken, and stays so"},
}

// List is what a drill makes, and the kind of problem that is told of it; "" = none.
func List() (list []struct{ Name, Does, Kind string }) {
	for _, f := range failures {
		list = append(list, struct{ Name, Does, Kind string }{f.Name, f.Does, string(f.wants.kind)})
	}
	return list
}
