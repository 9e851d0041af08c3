package deadletter

import (
	"context"
	"slices"
	"time"
)

// Act is something that a person, or dlo by itself, did: one row of the audit. What happens to
// single letters is in their histories.
type Act struct {
	ID        int64
	At        time.Time
	Kind      string // one of Acts
	Actor     string
	Through   Way         // "" = not recorded
	Operation OperationID // 0 = none
	Targets   []Target    // none = not recorded
	Detail    string
	Asked     int // of how many letters, groups or things it was asked; Unrecorded
	Done      int // with how many of them it was done; Unrecorded; of an operation that is under way, so far

	// Of its operation.
	Action Verb
	Query  string // that selected its letters; "" = chosen ids
	Total  int    // letters
}

// Unrecorded stands for a number of an act that nobody wrote down.
const Unrecorded = -1

// Once is an act on one thing, which was done.
func Once(kind, actor, detail string, targets ...Target) Act {
	return Act{Kind: kind, Actor: actor, Detail: detail, Targets: targets, Asked: 1, Done: 1}
}

// What is done beside the actions on letters, as the audit names it.
const (
	ActCancelled = "cancelled"
	ActPaused    = "paused"
	ActResumed   = "resumed"
	ActRate      = "rate"
	ActStopped   = "stopped"
	ActDone      = "done"

	ActMerged     = "merged"
	ActSplit      = "split"
	ActSnoozed    = "snoozed"
	ActResolved   = "resolved"
	ActReopened   = "reopened"
	ActAssigned   = "assigned"
	ActUnassigned = "unassigned"
	ActSeverity   = "severity"
	ActTicket     = "ticket"
	ActNote       = "note"
	ActUndone     = "undone"
	ActRegrouped  = "regrouped"

	ActEdited      = "edited" // one letter; an edit of several is an operation
	ActRevealed    = "revealed"
	ActImport      = "import"
	ActTypePicked  = "type picked"
	ActPickRemoved = "pick removed"

	ActRedirect        = "redirect"
	ActRedirectRemoved = "redirect removed"
	ActRetriesPaused   = "retries paused"
	ActRetriesResumed  = "retries resumed"
	ActBreakerClosed   = "breaker closed"
	ActRulesApplied    = "rules applied"
	ActRulesLoaded     = "rules loaded"
	ActSchemaUploaded  = "schema uploaded"
	ActSchemaLoaded    = "schema loaded"
	ActSchemaRemoved   = "schema removed"
	ActViewSaved       = "view saved"
	ActViewRemoved     = "view removed"
	ActDeploy          = "deploy"
	ActDigest          = "digest"
	ActDrainStarted    = "drain started"
	ActDrainStopped    = "drain stopped"
	ActDrainEnded      = "drain ended"
	ActDrainResolved   = "drain resolved"
	ActRetention       = "retention"
	ActStoreAccepted   = "store accepted"
	ActStoreRestored   = "restored"
	ActBrokerRenamed   = "broker renamed"
	ActTrialStarted    = "trial started"
)

// ActBreaker is that a breaker that holds retries back came to a state.
func ActBreaker(s GuardState) string { return "breaker " + string(s) }

// Acts lists all kinds of acts: the actions on letters, what is done to operations, groups and
// everything else, and what becomes of groups by itself.
var Acts = slices.Concat(texts(Actions), []string{
	ActCancelled, ActPaused, ActResumed, ActRate, ActStopped, ActDone,
	ActMerged, ActSplit, ActSnoozed, ActReopened, ActAssigned, ActUnassigned, ActSeverity, ActTicket, ActNote, ActUndone, ActRegrouped,
	string(GroupOpen), string(GroupEscalating), string(GroupRegressed), ActResolved,
	ActEdited, ActRevealed, ActImport, ActTypePicked, ActPickRemoved,
	ActRedirect, ActRedirectRemoved, ActRetriesPaused, ActRetriesResumed, ActBreaker(GuardTripped), ActBreaker(GuardProbing), ActBreaker(GuardRamping), ActBreakerClosed,
	ActRulesApplied, ActRulesLoaded, ActSchemaUploaded, ActSchemaLoaded, ActSchemaRemoved, ActViewSaved, ActViewRemoved, ActDeploy, ActDigest,
	ActDrainStarted, ActDrainStopped, ActDrainEnded, ActDrainResolved, ActRetention, ActStoreAccepted, ActStoreRestored, ActBrokerRenamed, ActTrialStarted,
})

func texts[T ~string](names []T) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = string(n)
	}
	return out
}

// Target is what an act was about.
type Target struct {
	Kind  TargetKind
	Name  string // G-418, O-77, the id of a letter, the name of a queue; "" where there is one only
	Title string // of a group, as it is now
}

// TargetKind is what kind of thing an act was about.
type TargetKind string

const (
	TargetLetter    TargetKind = "letter"
	TargetLetters   TargetKind = "letters" // named by what selected them
	TargetOperation TargetKind = "operation"
	TargetGroup     TargetKind = "group"
	TargetQueue     TargetKind = "queue"
	TargetBroker    TargetKind = "broker"
	TargetDrain     TargetKind = "drain"
	TargetDeploy    TargetKind = "deploy"
	TargetSchema    TargetKind = "schema"
	TargetBinding   TargetKind = "binding"
	TargetView      TargetKind = "view"
	TargetRedirect  TargetKind = "redirect" // named by the queue whose letters go elsewhere
	TargetRules     TargetKind = "rules"
	TargetDigest    TargetKind = "digest"
	TargetStore     TargetKind = "store"
)

// GroupTarget is a group as a target.
func GroupTarget(id GroupID) Target { return Target{Kind: TargetGroup, Name: id.String()} }

// Way is how an act came about.
type Way string

const (
	WayPage    Way = "page"
	WayAPI     Way = "api"
	WayCLI     Way = "cli"
	WayService Way = "dlo" // nobody asked for it
)

// Ways lists the ways.
var Ways = []Way{WayPage, WayAPI, WayCLI, WayService}

type wayKey struct{}

// Through puts the way of a request on its context, where it is for all that comes of it.
func Through(ctx context.Context, w Way) context.Context {
	return context.WithValue(ctx, wayKey{}, w)
}

// WayOf is the way of the request that a context belongs to; "" where nobody said it.
func WayOf(ctx context.Context) Way {
	w, _ := ctx.Value(wayKey{}).(Way)
	return w
}
