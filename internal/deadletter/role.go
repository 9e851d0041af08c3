package deadletter

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Role is a set of rights that a grant gives. The roles are in ascending order, and each role
// includes the rights of all lower roles.
type Role int

// These are the roles. The role with the fewest rights comes first. The zero value permits nothing.
const (
	RoleViewer   Role = iota + 1 // see what failed, where, when and why, but no bodies and headers
	RoleReader                   // see bodies and headers, but no masked values
	RoleOperator                 // requeue, hold, discard and restore letters, and decide about groups
	// edit and requeue letters, change schemas and bindings, redirect queues, drain queues and
	// import letters
	RoleEditor
	// change policies on brokers, declare whether the store is a copy, save settings, and change who
	// may do what
	RoleAdmin
)

var roleNames = []string{"", "viewer", "reader", "operator", "editor", "admin"}

// RoleNames returns the names of all roles. The role with the fewest rights comes first.
func RoleNames() []string { return slices.Clone(roleNames[1:]) }

// ParseRole parses the name of a role. If no role has this name, the error wraps ErrInvalid.
func ParseRole(s string) (Role, error) {
	if i := slices.Index(roleNames, s); i > 0 {
		return Role(i), nil
	}
	return 0, fmt.Errorf(
		"%w: there is no role %q; the roles are %s", ErrInvalid, Visible(Cut(s, 60)), strings.Join(roleNames[1:], ", "),
	)
}

func (r Role) valid() bool { return r >= RoleViewer && r <= RoleAdmin }

// String returns the name of the role. For a value that is not a role, it returns "none".
func (r Role) String() string {
	if !r.valid() {
		return "none"
	}
	return roleNames[r]
}

// MarshalJSON encodes the role as its name.
func (r Role) MarshalJSON() ([]byte, error) { return json.Marshal(r.String()) }

// UnmarshalJSON decodes the name of a role.
func (r *Role) UnmarshalJSON(text []byte) (err error) {
	var name string
	if err := json.Unmarshal(text, &name); err != nil {
		return err
	}
	*r, err = ParseRole(name)
	return err
}

// need says what a principal needs to perform an action. The field "least" is the lowest role that
// permits the action. The field "words" describes the action, for a person who may not perform it.
type need struct {
	least Role
	words string
}

// verbs maps each verb to the right that its action needs. If a verb is missing, nobody may perform
// its action.
var verbs = map[Verb]need{
	VerbView:   {RoleViewer, "see letters"},
	VerbRead:   {RoleReader, "see bodies and headers"},
	VerbReveal: {RoleReader, "see masked data"}, // also needs Reveal in the grant

	VerbOwnViews: {RoleViewer, "save views"},

	VerbRequeue:    {RoleOperator, "requeue letters"},
	VerbRetryNow:   {RoleOperator, "retry letters now"},
	VerbReschedule: {RoleOperator, "reschedule letters"},
	VerbDiscard:    {RoleOperator, "discard letters"},
	VerbRestore:    {RoleOperator, "restore letters"},
	VerbHold:       {RoleOperator, "hold letters"},
	VerbRelease:    {RoleOperator, "release letters"},
	VerbPurge:      {RoleOperator, "purge letters"}, // also needs Purge in the grant
	VerbCancel:     {RoleOperator, "steer operations"},
	VerbGuard:      {RoleOperator, "pause or resume retries"},
	VerbTriage:     {RoleOperator, "decide on groups"},
	VerbTell:       {RoleOperator, "send the digest, and test channels"},
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

	VerbAdopt:    {RoleAdmin, "change policies on a broker"},
	VerbStore:    {RoleAdmin, "decide about the store"},
	VerbBackup:   {RoleAdmin, "take a backup"}, // also needs Reveal in the grant
	VerbSettings: {RoleAdmin, "save settings"},
	VerbAccess:   {RoleAdmin, "see or change who may do what"},
}
