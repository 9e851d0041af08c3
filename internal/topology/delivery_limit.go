package topology

import "slices"

// defaultDeliveryLimit is the delivery limit of a quorum queue on RabbitMQ 4.0 and later if neither
// an argument nor a policy sets a limit.
const defaultDeliveryLimit = 20

// DeliveryLimitOf returns the delivery limit that applies to a quorum queue. The parameter "set"
// holds the limits that the argument, the policy and the operator policy of the queue set. A limit
// that is not set is nil. The result "limited" is false if the queue has no limit.
//
// On 4.0 and later, a negative value means that there is no limit, but only if none of the other
// values is a limit. On 3.x and unknown versions, the smallest limit applies, and a negative one
// acts as 0 (measured on 3.10.8, 4.0.5, 4.3.6).
func DeliveryLimitOf(version string, set ...*int64) (limit int64, limited bool) {
	current, any := sinceVersion4(version), false
	for _, n := range set {
		if n == nil {
			continue
		}
		any = true
		if current && *n < 0 {
			continue
		}
		if least := max(*n, 0); !limited || least < limit {
			limit, limited = least, true
		}
	}
	if current && !any {
		return defaultDeliveryLimit, true
	}
	return limit, limited
}

// DeliveryLimit returns the delivery limit of a quorum queue, and what sets it. The field From is
// empty for a limit that only the broker reports, such as the default. The result "limited" is
// false if there is no limit.
func (e *Effect) DeliveryLimit(version string) (s Setting, limited bool) {
	all := e.numbers("delivery-limit")
	if reported := e.Queue.Limit; reported.Known &&
		!slices.ContainsFunc(all, func(s Setting) bool { return s.N == reported.N }) {
		all = append(all, Setting{N: reported.N})
	}
	set := make([]*int64, len(all))
	for i := range all {
		set[i] = &all[i].N
	}
	limit, limited := DeliveryLimitOf(version, set...)
	if e.Queue.Kind() != Quorum || !limited {
		return Setting{}, false
	}
	for _, s := range all {
		if max(s.N, 0) == limit {
			return s, true
		}
	}
	return Setting{N: limit}, true
}
