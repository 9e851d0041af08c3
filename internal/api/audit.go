package api

import (
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// AuditEntry is a recorded action. The response to GET /audit contains it.
type AuditEntry struct {
	ID        int64                  `json:"id"`
	At        time.Time              `json:"at"`
	Kind      string                 `json:"kind"`
	Actor     string                 `json:"actor"`
	Through   string                 `json:"through"` // page, api, cli or dlo; "" = not recorded
	Address   string                 `json:"address"` // the address from which the person acted; "" = not recorded
	Operation deadletter.OperationID `json:"operation"`
	Total     int                    `json:"total"` // number of letters in the operation
	Query     string                 `json:"query"`
	Detail    string                 `json:"detail"`
	Targets   []Target               `json:"targets"` // none = not recorded
	// number of letters, groups or other objects that were requested; null = not recorded
	Asked *int `json:"asked"`
	Done  *int `json:"done"`
}

// NewAuditEntry converts an act to the JSON form of the API.
func NewAuditEntry(a deadletter.Act) AuditEntry {
	e := AuditEntry{
		ID:      a.ID,
		At:      a.At,
		Kind:    a.Kind,
		Actor:   a.Actor,
		Through: string(a.Through),
		Address: a.Address,
		Total:   a.Total,
		Query:   a.Query,
		Detail:  a.Detail,
		Targets: []Target{},
		Asked:   recorded(a.Asked),
		Done:    recorded(a.Done),
	}
	e.Operation = a.Operation
	for _, t := range a.Targets {
		e.Targets = append(e.Targets, Target{Kind: string(t.Kind), Name: t.Name, Title: t.Title})
	}
	return e
}

// recorded returns a number of an audit entry, for example the number of letters that were
// requested. It returns nil if the entry does not contain this number.
func recorded(n int) *int {
	if n == deadletter.Unrecorded {
		return nil
	}
	return &n
}

// Target is the object of an audited action.
type Target struct {
	Kind  string `json:"kind"`
	Name  string `json:"name"`
	Title string `json:"title,omitzero"` // title of the group, if the object is a group
}

// String returns the target as text for tables, such as "group G-418".
func (t Target) String() string {
	if t.Name == "" {
		return t.Kind
	}
	return t.Kind + " " + t.Name
}

// Audit is a page of GET /audit.
type Audit struct {
	Entries []AuditEntry `json:"entries"`
	Next    string       `json:"next"`
}
