package drill

import (
	"context"
	"slices"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Failure describes a failure: what causes it, how dlo should report it, and what cures it. To add
// a failure, add an entry to the list in the file for its kind.
type Failure struct {
	Name  string // name for --only
	Does  string // description of what the drill does
	wants sign
	wave  int  // failures of the same wave are caused at the same time
	admin bool // true if it needs an administrator of the broker

	// The drill causes most failures at its main dlo. The following fields are settings that a
	// failure adds to the configuration of the main dlo.
	inbox string // a further inbox
	own   string // an inbox with a broker entry of its own; dlo declares the inbox and its exchange
	work  string // a queue whose dead letters go to dlo
	rule  string // the rule for letters of the queue in the field "work", without name and match

	before func(ctx context.Context, g *ground) error // prepares the failure; its time does not count
	make   func(ctx context.Context, g *ground) error // causes the failure
	cure   func(ctx context.Context, g *ground, told problem) error
	// reports whether the cure has taken effect; nil = the problem must be gone
	mended func(ctx context.Context, g *ground) bool
}

// sign describes how the drill expects dlo to report a failure, for example as which kind of
// problem and with which status of /readyz.
type sign struct {
	office   string                 // name of the dlo that reports it; "" = the main dlo, which most failures use
	kind     deadletter.ProblemKind // kind of the problem; "" = there is no problem
	severity deadletter.Severity
	broker   string   // broker of the problem; "" = any broker
	about    string   // queue or inbox of the problem; "" = any
	says     string   // text that must be in the title, the text or the cure of the problem
	also     []string // further texts that must be there
	page     string   // text that Overview must show; "" = the title of the problem
	status   int      // status of /readyz; 0 = 200
	// instead of a problem: the queue whose letters need people; Overview then shows their group,
	// and the notice shows the queue
	group string
	quiet bool // true if nobody may get a notice, because dlo recovers automatically
	exit  int  // exit code with which dlo refuses to start; 0 = dlo starts
}

// officeName returns the name of the dlo that should report the failure.
func (s *sign) officeName() string {
	if s.office == "" {
		return mainOffice
	}
	return s.office
}

// The drill causes the failures in several waves, one wave after another. Failures that concern one
// queue or one dlo are in wave 0, which is the first.
//
// The failures in waveClosed close connections. When dlo has reconnected, it checks everything
// immediately, so the drill need not wait up to a minute for the next check. The failures in
// waveRights remove rights of the user. The failure in waveAway changes the user's password.
const (
	waveClosed = 1
	waveRights = 2
	waveAway   = 3
	lastWave   = waveAway
)

// failures are all failures that a drill can cause.
var failures = slices.Concat(policyFailures, goneFailures, letterFailures, officeFailures, storeFailures, userFailures)

// NotMade are the kinds of problems that no drill causes, with the reasons.
var NotMade = []struct {
	Kind deadletter.ProblemKind
	Why  string
}{
	{
		deadletter.ProblemMissing,
		"dlo has to be killed with letters in hand, in the middle of a commit, which would end the drill; near-limit is told before",
	},
	{
		deadletter.ProblemBlocked,
		"a memory or disk alarm is one of the whole broker, and stops everybody who publishes to it",
	},
	{deadletter.ProblemAge, "letters have to be days old"},
	{deadletter.ProblemDelayedRetry, "only RabbitMQ 4.3 and later have delayed retry"},
	{deadletter.ProblemLimitsUnknown, "the management API has to be missing, which ends the drill"},
	{deadletter.ProblemUnknownSetting, "RabbitMQ refuses a setting that it does not know itself"},
	{deadletter.ProblemStoreTwice, "a second dlo has to run on a copy of the store"},
	{deadletter.ProblemStoreUnguarded, "it comes with the loss of a right on dlo.epoch.*, which is about rights"},
	{deadletter.ProblemStoreDamaged, "a store has to be broken, and stays so"},
}

// List returns the failures that a drill can cause. Kind is the kind of problem that dlo reports
// for the failure. If dlo reports none, Kind is "".
func List() (list []struct{ Name, Does, Kind string }) {
	for _, f := range failures {
		list = append(list, struct{ Name, Does, Kind string }{f.Name, f.Does, string(f.wants.kind)})
	}
	return list
}
