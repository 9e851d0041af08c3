package api

import "time"

// AuditEntry is a recorded action, in GET /audit.
type AuditEntry struct {
	ID        int64     `json:"id"`
	At        time.Time `json:"at"`
	Kind      string    `json:"kind"`
	Actor     string    `json:"actor"`
	Through   string    `json:"through"` // page, api, cli or dlo; "" = not recorded
	Address   string    `json:"address"` // from which the person acted; "" = not recorded
	Operation string    `json:"operation"`
	Total     int       `json:"total"` // letters in the operation
	Query     string    `json:"query"`
	Detail    string    `json:"detail"`
	Targets   []Target  `json:"targets"` // none = not recorded
	Asked     *int      `json:"asked"`   // number of letters, groups or things; null = not recorded
	Done      *int      `json:"done"`
}

// Target is the object of an audited action.
type Target struct {
	Kind  string `json:"kind"`
	Name  string `json:"name"`
	Title string `json:"title,omitempty"` // of a group
}

// String formats the target for tables, such as "group G-418".
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
