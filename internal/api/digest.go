package api

import (
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Digest is the response to GET /digest: the digest as it would be sent now.
type Digest struct {
	From      time.Time    `json:"from"`
	To        time.Time    `json:"to"`
	Groups    int          `json:"groups"`
	Letters   int          `json:"letters"`
	New       int          `json:"new"`
	CameBack  int          `json:"came_back"`
	Recovered int          `json:"recovered"` // number of letters that succeeded on a retry
	Paged     int          `json:"paged"`
	Before    DigestBefore `json:"before"` // the period of the same length before this one
	Lines     []DigestLine `json:"lines"`
	More      int          `json:"more"` // number of groups that are not in the lines
	Pauses    []Pause      `json:"pauses"`
}

// Pause describes a pause of retries that began at least a day ago and that still keeps letters
// waiting. The response to GET /digest contains it.
type Pause struct {
	Broker  string             `json:"broker"`
	VHost   string             `json:"vhost"`
	Queue   string             `json:"queue"`
	Group   deadletter.GroupID `json:"group,omitzero"` // "" = the retries of the whole queue are paused
	Reason  string             `json:"reason"`
	By      string             `json:"by"`
	Since   time.Time          `json:"since"`
	Letters int                `json:"letters"` // number of letters that wait
}

// DigestBefore holds the numbers of the previous period, so that a reader can compare them with
// those of the digest. The response to GET /digest contains it.
type DigestBefore struct {
	Groups    int `json:"groups"`
	Letters   int `json:"letters"`
	Recovered int `json:"recovered"`
}

// DigestLine is a group that needs attention. The response to GET /digest contains it.
type DigestLine struct {
	Letters    int    `json:"letters"` // number of letters that died in the period
	Suggestion string `json:"suggestion,omitzero"`
	Group      Group  `json:"group"`
}

// DigestSent is the response to POST /digest/send.
type DigestSent struct {
	Channels []string `json:"channels"` // channels to which the digest is sent
}

// ChannelTest is the request of POST /channels/test.
type ChannelTest struct {
	Channel string `json:"channel"` // name in the configuration
}

// ChannelTested is the response to POST /channels/test.
type ChannelTested struct {
	Channel  string `json:"channel"`
	Accepted bool   `json:"accepted"` // the receiver accepted the test
	Answer   string `json:"answer"`   // what the receiver answered, or why it did not, without secrets
}
