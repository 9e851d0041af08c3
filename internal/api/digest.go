package api

import (
	"time"
)

// Digest is a digest.
type Digest struct {
	From      time.Time    `json:"from"`
	To        time.Time    `json:"to"`
	Groups    int          `json:"groups"`
	Letters   int          `json:"letters"`
	New       int          `json:"new"`
	CameBack  int          `json:"came_back"`
	Recovered int          `json:"recovered"`
	Paged     int          `json:"paged"`
	Before    DigestBefore `json:"before"` // the time before, of the same length
	Lines     []DigestLine `json:"lines"`
	More      int          `json:"more"` // groups that are not in lines
}

type DigestBefore struct {
	Groups    int `json:"groups"`
	Letters   int `json:"letters"`
	Recovered int `json:"recovered"`
}

type DigestLine struct {
	Letters    int    `json:"letters"` // that died in the time
	Suggestion string `json:"suggestion,omitempty"`
	Group      Group  `json:"group"`
}

type DigestSent struct {
	Channels []string `json:"channels"`
}
