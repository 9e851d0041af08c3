package deadletter

import (
	"context"
	"net/netip"
	"slices"
	"time"
)

// Act is one row of the audit: something that a person did, or that dlo did on its own. Events of
// single letters are recorded in their histories.
type Act struct {
	ID        int64
	At        time.Time
	Kind      string // one of Acts
	Actor     string
	Through   Way         // "" = not recorded
	Address   string      // address from which the person sent the request; "" = not recorded
	Operation OperationID // 0 = none
	Targets   []Target    // empty = not recorded
	Detail    string
	Asked     int // requested number of letters, groups or things, or Unrecorded
	Done      int // number completed, or Unrecorded; while an operation runs, the number so far

	// These fields describe the operation's action.
	Action Verb
	Query  string // query that selected the operation's letters; "" = the letters were chosen by id
	Total  int    // letters of the operation
}

// Unrecorded stands for a number in an act that was not recorded.
const Unrecorded = -1

// Once returns a completed act on one thing.
func Once(kind, actor, detail string, targets ...Target) Act {
	return Act{Kind: kind, Actor: actor, Detail: detail, Targets: targets, Asked: 1, Done: 1}
}

// These are the kinds of acts other than the actions on letters, as they appear in the audit.
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

	ActEdited      = "edited" // one letter was edited; an edit of several letters is an operation
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
	ActPolicyApplied   = "policy applied"
	ActPolicyUndone    = "policy undone"
	ActConfigured      = "configuration changed"
	ActTokenAdded      = "token added"
	ActTokenRevoked    = "token revoked"
	ActTokenMoved      = "token at new address"
	ActDenied          = "denied"
	ActUserAdded       = "user added"
	ActUserReset       = "user reset"
	ActUserRemoved     = "user removed"
	ActPasswordSet     = "password set"
	ActSignedIn        = "signed in"
	ActSignInFailed    = "sign-in failed"
	ActSignedOut       = "signed out"
)

// ActBreaker returns the kind of act for a breaker of retries that entered state s.
func ActBreaker(s GuardState) string { return "breaker " + string(s) }

// Acts lists all kinds of acts. These are the actions on letters, the acts on operations, groups
// and everything else, and the automatic changes to groups.
var Acts = slices.Concat(texts(Actions), []string{
	ActCancelled, ActPaused, ActResumed, ActRate, ActStopped, ActDone,
	ActMerged, ActSplit, ActSnoozed, ActReopened, ActAssigned, ActUnassigned, ActSeverity, ActTicket, ActNote, ActUndone, ActRegrouped,
	string(GroupOpen), string(GroupEscalating), string(GroupRegressed), ActResolved,
	ActEdited, ActRevealed, ActImport, ActTypePicked, ActPickRemoved,
	ActRedirect, ActRedirectRemoved, ActRetriesPaused, ActRetriesResumed, ActBreaker(GuardTripped), ActBreaker(GuardProbing), ActBreaker(GuardRamping), ActBreakerClosed,
	ActRulesApplied, ActRulesLoaded, ActSchemaUploaded, ActSchemaLoaded, ActSchemaRemoved, ActViewSaved, ActViewRemoved, ActDeploy, ActDigest,
	ActDrainStarted, ActDrainStopped, ActDrainEnded, ActDrainResolved, ActRetention, ActStoreAccepted, ActStoreRestored, ActBrokerRenamed, ActTrialStarted, ActPolicyApplied, ActPolicyUndone,
	ActConfigured, ActTokenAdded, ActTokenRevoked, ActTokenMoved, ActDenied, ActUserAdded, ActUserReset, ActUserRemoved, ActPasswordSet, ActSignedIn, ActSignInFailed, ActSignedOut,
})

func texts[T ~string](names []T) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = string(n)
	}
	return out
}

// Target is the object of an act.
type Target struct {
	Kind  TargetKind
	Name  string // G-418, O-77, the id of a letter, the name of a queue; "" if only one such object exists
	Title string // a group's current title
}

// TargetKind is the kind of object that an act applies to.
type TargetKind string

const (
	TargetLetter        TargetKind = "letter"
	TargetLetters       TargetKind = "letters" // named by their selection
	TargetOperation     TargetKind = "operation"
	TargetGroup         TargetKind = "group"
	TargetQueue         TargetKind = "queue"
	TargetBroker        TargetKind = "broker"
	TargetDrain         TargetKind = "drain"
	TargetDeploy        TargetKind = "deploy"
	TargetSchema        TargetKind = "schema"
	TargetBinding       TargetKind = "binding"
	TargetView          TargetKind = "view"
	TargetRedirect      TargetKind = "redirect" // named by the queue whose letters are redirected
	TargetRules         TargetKind = "rules"
	TargetDigest        TargetKind = "digest"
	TargetStore         TargetKind = "store"
	TargetToken         TargetKind = "token"
	TargetUser          TargetKind = "user"
	TargetConfiguration TargetKind = "configuration"
	TargetRoute         TargetKind = "route" // a request, such as POST /operations
)

// GroupTarget returns a target that names the group.
func GroupTarget(id GroupID) Target { return Target{Kind: TargetGroup, Name: id.String()} }

// Way says how an act was requested: on a page, through the API or on the command line. It also
// marks acts that dlo did automatically.
type Way string

const (
	WayPage    Way = "page"
	WayAPI     Way = "api"
	WayCLI     Way = "cli"
	WayService Way = "dlo" // automatic, not requested
)

// Ways lists all ways.
var Ways = []Way{WayPage, WayAPI, WayCLI, WayService}

type wayKey struct{}

// Through stores a way in the context of a request, so that everything that acts for the request
// can read it.
func Through(ctx context.Context, w Way) context.Context {
	return context.WithValue(ctx, wayKey{}, w)
}

// WayOf returns the way of the request that a context belongs to, or "" if none was set.
func WayOf(ctx context.Context) Way {
	w, _ := ctx.Value(wayKey{}).(Way)
	return w
}

type addressKey struct{}

// FromAddress stores the address of a request in its context, so that the audit can record it.
func FromAddress(ctx context.Context, address string) context.Context {
	return context.WithValue(ctx, addressKey{}, address)
}

// AddressOf returns the address of the request that a context belongs to, or "" if none was set.
func AddressOf(ctx context.Context) string {
	a, _ := ctx.Value(addressKey{}).(string)
	return a
}

// Network returns the key by which the requests of an address are counted. For IPv6, this is the
// /64 network of the address, because one subscriber has the whole network (RFC 6177).
func Network(address string) string {
	if ip, err := netip.ParseAddr(address); err == nil && ip.Is6() {
		if net, err := ip.Prefix(64); err == nil {
			return net.String()
		}
	}
	return address
}
