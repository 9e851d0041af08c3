package topology

import "strings"

// measured are the versions of RabbitMQ whose behaviour was measured, in ascending order.
var measured = []string{"3.10", "4.0", "4.3"}

// unsupportedKeys lists, for each of the measured versions, the policy keys that each type of queue
// does not support. If a policy has one of these keys, RabbitMQ applies no key of the policy to a
// queue of that type.
//
// Each key that a policy may have was set for a queue of each type. Keys that these versions no
// longer accept, but that a policy from before an upgrade may have, come from the list of
// capabilities of the queue types (3.10.8, 4.0.5, 4.3.6). TestKeysOfPolicies of internal/rabbitmq
// measures them again.
var unsupportedKeys = []map[string]string{
	{
		Classic: "queue-leader-locator " + notClassic,
		Quorum:  "single-active-consumer " + notQuorum,
		Stream:  "single-active-consumer " + notStream,
	},
	{
		Classic: "max-in-memory-length max-in-memory-bytes target-group-size " + notClassic,
		Quorum:  "single-active-consumer " + notQuorum,
		Stream:  "single-active-consumer target-group-size " + notStream,
	},
	{
		Classic: "max-in-memory-length max-in-memory-bytes target-group-size " + notNew + notClassic,
		Quorum:  notNew + notQuorum,
		Stream:  "target-group-size " + notNew + notStream,
	},
}

// These are the keys that a type of queue supports on none of the versions, and the keys that only
// the queue type of a plugin of 4.3 supports.
const (
	notClassic = "max-age stream-max-segment-size-bytes initial-cluster-size delivery-limit dead-letter-strategy"
	notQuorum  = "max-priority queue-mode max-age stream-max-segment-size-bytes initial-cluster-size " + mirrored
	notStream  = "expires message-ttl dead-letter-exchange dead-letter-routing-key dead-letter-strategy max-length " +
		"max-in-memory-length max-in-memory-bytes max-priority overflow queue-mode delivery-limit " + mirrored
	mirrored = "ha-mode ha-params ha-sync-mode ha-promote-on-shutdown ha-promote-on-failure queue-master-locator"
	notNew   = "selector-fields selector-field-max-bytes "
)

// unsupported returns a key of the policy that a queue of the given type does not support on a
// version of RabbitMQ. It returns "" if there is none.
func (p *Policy) unsupported(version, kind string) string {
	for _, key := range strings.Fields(unsupportedKeys[measuredBelow(version)][kind]) {
		if _, has := p.Definition[key]; has {
			return key
		}
	}
	return ""
}
