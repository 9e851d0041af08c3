package deadletter

import (
	"context"
	"net/netip"
	"slices"
	"time"
)

// Act is one row of the audit. It records something that a person did, or that dlo did
// automatically. Events of single letters are recorded in the histories of the letters.
type Act struct {
	ID        int64       `json:"id"`
	At        time.Time   `json:"at"`
	Kind      string      `json:"kind"` // one of Acts, such as requeue or resolved
	Actor     string      `json:"actor"`
	Through   Way         `json:"through"`   // page, api, cli or dlo; "" = not recorded
	Address   string      `json:"address"`   // address from which a person sent the request; "" = not recorded
	Operation OperationID `json:"operation"` // "" = none
	Detail    string      `json:"detail"`
	Targets   []Target    `json:"targets"` // empty = not recorded
	// number of letters, groups or other objects that were requested; null = not recorded
	Asked Amount `json:"asked"`
	// number that was completed; while an operation runs, the number so far; null = not recorded
	Done Amount `json:"done"`

	// The following fields describe the operation to which the act belongs.
	Action Verb `json:"-"`
	// query that selected the letters of the operation; "" = the letters were chosen by id
	Query string `json:"query"`
	Total int    `json:"total"` // number of letters of the operation
}

// Once returns the act for a request that concerned a single object and was carried out.
func Once(kind, actor, detail string, targets ...Target) Act {
	return Act{Kind: kind, Actor: actor, Detail: detail, Targets: targets, Asked: 1, Done: 1}
}

// These are the kinds of acts in the audit, except the actions on letters.
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

	ActEdited      = "edited" // edit of a single letter; an edit of several letters is an operation
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
	ActChannelTested   = "channel tested"
	ActDrainStarted    = "drain started"
	ActDrainStopped    = "drain stopped"
	ActDrainEnded      = "drain ended"
	ActDrainResolved   = "drain resolved"
	ActRetention       = "retention"
	ActStoreAccepted   = "store accepted"
	ActStoreRestored   = "restored"
	ActBackup          = "backup"
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

// ActBreaker returns the kind of the act that records the new state of a breaker.
func ActBreaker(s GuardState) string { return "breaker " + string(s) }

// Acts lists all kinds of acts. These are the actions on letters, the acts on operations and
// groups, the automatic changes to groups, and the acts on everything else.
var Acts = slices.Concat(texts(Actions), []string{
	ActCancelled, ActPaused, ActResumed, ActRate, ActStopped, ActDone,
	ActMerged, ActSplit, ActSnoozed, ActReopened, ActAssigned, ActUnassigned, ActSeverity, ActTicket, ActNote,
	ActUndone, ActRegrouped,
	string(GroupOpen), string(GroupEscalating), string(GroupRegressed), ActResolved,
	ActEdited, ActRevealed, ActImport, ActTypePicked, ActPickRemoved,
	ActRedirect, ActRedirectRemoved, ActRetriesPaused, ActRetriesResumed, ActBreaker(GuardTripped),
	ActBreaker(GuardProbing), ActBreaker(GuardRamping), ActBreakerClosed,
	ActRulesApplied, ActRulesLoaded, ActSchemaUploaded, ActSchemaLoaded, ActSchemaRemoved, ActViewSaved, ActViewRemoved,
	ActDeploy, ActDigest, ActChannelTested,
	ActDrainStarted, ActDrainStopped, ActDrainEnded, ActDrainResolved, ActRetention, ActStoreAccepted, ActStoreRestored,
	ActBackup,
	ActBrokerRenamed, ActTrialStarted, ActPolicyApplied, ActPolicyUndone,
	ActConfigured, ActTokenAdded, ActTokenRevoked, ActTokenMoved, ActDenied, ActUserAdded, ActUserReset, ActUserRemoved,
	ActPasswordSet, ActSignedIn, ActSignInFailed, ActSignedOut,
})

func texts[T ~string](names []T) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = string(n)
	}
	return out
}

// Target is an object to which an act applies.
type Target struct {
	Kind TargetKind `json:"kind"`
	// G-418, O-77, the id of a letter, the name of a queue; "" if there is only one such object
	Name  string `json:"name"`
	Title string `json:"title,omitzero"` // present title of a group
}

// String returns the target as text for tables, such as "group G-418".
func (t Target) String() string {
	if t.Name == "" {
		return string(t.Kind)
	}
	return string(t.Kind) + " " + t.Name
}

// TargetKind is the kind of object that an act applies to.
type TargetKind string

const (
	TargetLetter        TargetKind = "letter"
	TargetLetters       TargetKind = "letters" // several letters, named by how they were selected
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
	TargetChannel       TargetKind = "channel"
	TargetStore         TargetKind = "store"
	TargetToken         TargetKind = "token"
	TargetUser          TargetKind = "user"
	TargetConfiguration TargetKind = "configuration"
	TargetRoute         TargetKind = "route" // an HTTP request, such as POST /operations
)

// GroupTarget returns the target for an act on a group.
func GroupTarget(id GroupID) Target { return Target{Kind: TargetGroup, Name: id.String()} }

// Way says how an act was requested: on a page, through the API or on the command line. WayService
// stands for an act that dlo did automatically.
type Way string

const (
	WayPage    Way = "page"
	WayAPI     Way = "api"
	WayCLI     Way = "cli"
	WayService Way = "dlo" // automatic
)

// Ways lists all ways.
var Ways = []Way{WayPage, WayAPI, WayCLI, WayService}

type wayKey struct{}

// Through returns a context that says in which way a request was sent: on a page, through the API
// or on the command line. All code that handles the request can read this with WayOf.
func Through(ctx context.Context, w Way) context.Context {
	return context.WithValue(ctx, wayKey{}, w)
}

// WayOf returns the way that Through stored in a context. It returns "" if there is none.
func WayOf(ctx context.Context) Way {
	w, _ := ctx.Value(wayKey{}).(Way)
	return w
}

type addressKey struct{}

// FromAddress returns a context that contains the address from which a request was sent, so that
// the audit can record it.
func FromAddress(ctx context.Context, address string) context.Context {
	return context.WithValue(ctx, addressKey{}, address)
}

// AddressOf returns the address that FromAddress stored in a context. It returns "" if there is
// none.
func AddressOf(ctx context.Context) string {
	a, _ := ctx.Value(addressKey{}).(string)
	return a
}

// Network returns the key under which requests from an address are counted. For an IPv6 address,
// this is its /64 network, because one subscriber has the whole network (RFC 6177). For any other
// address, it is the address itself.
func Network(address string) string {
	if ip, err := netip.ParseAddr(address); err == nil && ip.Is6() {
		if net, err := ip.Prefix(64); err == nil {
			return net.String()
		}
	}
	return address
}
