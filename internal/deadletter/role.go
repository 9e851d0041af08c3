package deadletter

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Role is the set of permissions that a grant gives. Each role includes the roles before it.
type Role int

// These are the roles, from the fewest permissions to the most. The zero value permits nothing.
const (
	RoleViewer   Role = iota + 1 // see what failed where, when and why, without bodies and headers
	RoleReader                   // see bodies and headers, with masked data hidden
	RoleOperator                 // requeue, hold, discard and restore letters; decide on groups
	RoleEditor                   // edit and requeue, change schemas and bindings, redirect queues, take letters in
	RoleAdmin                    // change policies on brokers, the store's identity, and who may do what
)

var roleNames = []string{"", "viewer", "reader", "operator", "editor", "admin"}

// RoleNames lists the names of all roles, from the fewest permissions to the most.
func RoleNames() []string { return slices.Clone(roleNames[1:]) }

// ParseRole reads the name of a role. The error wraps ErrInvalid.
func ParseRole(s string) (Role, error) {
	if i := slices.Index(roleNames, s); i > 0 {
		return Role(i), nil
	}
	return 0, fmt.Errorf("%w: there is no role %q; the roles are %s", ErrInvalid, Visible(Cut(s, 60)), strings.Join(roleNames[1:], ", "))
}

func (r Role) valid() bool { return r >= RoleViewer && r <= RoleAdmin }

// String returns the name of the role, or "none".
func (r Role) String() string {
	if !r.valid() {
		return "none"
	}
	return roleNames[r]
}

// MarshalJSON writes the name of the role.
func (r Role) MarshalJSON() ([]byte, error) { return json.Marshal(r.String()) }

// UnmarshalJSON reads the name of a role.
func (r *Role) UnmarshalJSON(text []byte) (err error) {
	var name string
	if err := json.Unmarshal(text, &name); err != nil {
		return err
	}
	*r, err = ParseRole(name)
	return err
}

// need describes the permission that a verb needs. It has the lowest role that includes the verb.
// The field "words" says what the verb does, for the message to a person who may not do it.
type need struct {
	least Role
	words string
}

// verbs holds the permission that each verb needs. A verb without a row is denied to everybody.
var verbs = map[Verb]need{
	VerbView:   {RoleViewer, "see letters"},
	VerbRead:   {RoleReader, "see bodies and headers"},
	VerbReveal: {RoleReader, "see masked data"}, // also requires Reveal in the grant

	VerbOwnViews: {RoleViewer, "save views"},

	VerbRequeue:    {RoleOperator, "requeue letters"},
	VerbRetryNow:   {RoleOperator, "retry letters now"},
	VerbReschedule: {RoleOperator, "reschedule letters"},
	VerbDiscard:    {RoleOperator, "discard letters"},
	VerbRestore:    {RoleOperator, "restore letters"},
	VerbHold:       {RoleOperator, "hold letters"},
	VerbRelease:    {RoleOperator, "release letters"},
	VerbPurge:      {RoleOperator, "purge letters"}, // also requires Purge in the grant
	VerbCancel:     {RoleOperator, "steer operations"},
	VerbGuard:      {RoleOperator, "pause or resume retries"},
	VerbTriage:     {RoleOperator, "decide on groups"},
	VerbTell:       {RoleOperator, "send the digest"},
	VerbConnect:    {RoleOperator, "connect now"},
	VerbTry:        {RoleOperator, "send a trial letter"},
	VerbDeploy:     {RoleOperator, "mark deploys"},
	VerbAnnotate:   {RoleOperator, "report why letters were rejected"},
	VerbViews:      {RoleOperator, "change saved views"},

	VerbEdit:     {RoleEditor, "edit letters"},
	VerbTypes:    {RoleEditor, "change schemas and types"},
	VerbRedirect: {RoleEditor, "redirect letters"},
	VerbDrain:    {RoleEditor, "drain a queue"},
	VerbImport:   {RoleEditor, "import letters"},

	VerbAdopt:  {RoleAdmin, "change policies on a broker"},
	VerbStore:  {RoleAdmin, "decide about the store"},
	VerbAccess: {RoleAdmin, "see or change who may do what"},
}
