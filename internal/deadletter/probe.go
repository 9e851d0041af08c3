package deadletter

import (
	"strings"
	"time"
)

// ProbePrefix is the beginning of the name of a probe queue. A probe proves that a policy leads
// dead letters to dlo. For this purpose, dlo declares a temporary queue to which the policy
// applies, and rejects one message in it.
const ProbePrefix = "dlo.probe."

// IsProbe reports whether a queue is a probe queue.
func IsProbe(queue string) bool { return strings.HasPrefix(queue, ProbePrefix) }

// ProbeKept is the time after which a probe queue disappears if dlo cannot delete it.
const ProbeKept = time.Minute
