package topology

import (
	"slices"
	"strings"
)

// keysOf lists, for one version of RabbitMQ, the policy keys that each type of queue does not
// support. If a policy has one of these keys, RabbitMQ applies no key of the policy to a queue of
// that type.
type keysOf struct {
	version                 string
	classic, quorum, stream string
}

// measuredKeys are the versions whose keys were measured, in ascending order: each key that a
// policy may have was set for a queue of each type. Keys that these versions no longer accept, but
// that a policy from before an upgrade may have, come from the list of capabilities of the queue
// types (3.10.8, 4.0.5, 4.3.6). TestKeysOfPolicies of internal/rabbitmq measures them again.
var measuredKeys = []keysOf{
	{
		version: "3.10",
		classic: "queue-leader-locator " + notClassic,
		quorum:  "single-active-consumer " + notQuorum,
		stream:  "single-active-consumer " + notStream,
	},
	{
		version: "4.0",
		classic: "max-in-memory-length max-in-memory-bytes target-group-size " + notClassic,
		quorum:  "single-active-consumer " + notQuorum,
		stream:  "single-active-consumer target-group-size " + notStream,
	},
	{
		version: "4.3",
		classic: "max-in-memory-length max-in-memory-bytes target-group-size " + notNew + notClassic,
		quorum:  notNew + notQuorum,
		stream:  "target-group-size " + notNew + notStream,
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
	m := measuredKeys[measuredBelow(version)]
	keys := strings.Fields(map[string]string{Classic: m.classic, Quorum: m.quorum, Stream: m.stream}[kind])
	for _, key := range keys {
		if _, has := p.Definition[key]; has {
			return key
		}
	}
	return ""
}

// measuredBelow returns the index of the latest measured version that is not later than the given
// one. For an unknown version, that is the latest of all.
func measuredBelow(version string) int {
	if version == "" {
		return len(measuredKeys) - 1
	}
	at := slices.IndexFunc(measuredKeys, func(m keysOf) bool { return later(m.version, version) })
	if at < 0 {
		return len(measuredKeys) - 1
	}
	return max(0, at-1)
}

// later reports whether one version is later than another. It compares major and minor version.
func later(a, b string) bool {
	majorA, minorA := majorMinor(a)
	majorB, minorB := majorMinor(b)
	return majorA > majorB || majorA == majorB && minorA > minorB
}
