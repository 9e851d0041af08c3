package deadletter

import "time"

// Channel is a channel of the configuration, through which people are notified, with its last test
// since dlo started.
type Channel struct {
	Name     string    `json:"channel"`
	TestedAt time.Time `json:"tested_at"` // zero = it was not tested
	Accepted bool      `json:"accepted"`  // the receiver accepted the test
	Answer   string    `json:"answer"`    // the answer to the test, or why there was none, without secrets
}
