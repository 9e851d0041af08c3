package topology

import "time"

// DelayedRetry returns the longest time for which a quorum queue holds back what a lost connection
// gives back, and what sets it. It returns 0 if the queue gives letters back at once.
//
// The settings exist since 4.3. For the type, an operator policy overrides a policy, and a policy
// overrides an argument. Of two minimums of policies, the greater one applies, and then the smaller
// of that and of the argument; of several maximums, the smallest. Without a minimum there is no
// delay, and without a maximum, it is the minimum (rabbit_quorum_queue of 4.3.6, and measured).
func (e *Effect) DelayedRetry() (longest time.Duration, from Setting) {
	kind, ok := e.policyText("delayed-retry-type")
	if !ok {
		kind.Text, _ = e.Queue.Arguments.Text("x-delayed-retry-type")
		kind.From = FromArgument
	}
	least, ok := e.Least("delayed-retry-min")
	if e.Queue.Kind() != Quorum || !ok || least.N <= 0 || kind.Text != "failed" && kind.Text != "all" {
		return 0, Setting{}
	}
	ms := least.N
	for _, s := range e.numbers("delayed-retry-min") {
		ms = max(ms, s.N) // the greatest of them is never too short
	}
	if most, ok := e.Least("delayed-retry-max"); ok && most.N > 0 {
		ms = most.N
	}
	return time.Duration(ms) * time.Millisecond, kind
}
