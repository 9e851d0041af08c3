package deadletter

import "time"

// Channel is a channel of the configuration, through which people are notified, with its last test
// since dlo started.
type Channel struct {
	Name     string
	TestedAt time.Time // zero = it was not tested
	Accepted bool      // the receiver accepted the test
	Answer   string    // the answer to the test, or why there was none, without secrets
}
