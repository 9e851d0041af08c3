package deadletter

import (
	"strings"
	"time"
)

// ProbePrefix begins the names of probe queues. A probe proves that a policy leads dead letters to
// dlo. To do this, dlo declares a temporary queue that the policy applies to, and rejects one
// message in it.
const ProbePrefix = "dlo.probe."

// IsProbe reports whether a queue is a probe queue.
func IsProbe(queue string) bool { return strings.HasPrefix(queue, ProbePrefix) }

// ProbeKept is how long a probe queue exists if dlo cannot delete it.
const ProbeKept = time.Minute
