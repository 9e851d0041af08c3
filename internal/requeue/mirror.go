package requeue

import "github.com/deadletteroffice/dlo/internal/deadletter"

// mirrored is an x-death as the broker of 3.10 would have counted it on, for workers that read it
// themselves: since 4.0 the broker counts from 1 again with each publish. Nothing reads it back.
func mirrored(due *deadletter.Due) []any {
	l := &due.Letter
	death := deadletter.Table{
		"queue": l.Origin.Queue, "reason": l.Reason, "count": int64(due.Attempt.Number), "exchange": l.Origin.Exchange, "routing-keys": []any{l.Origin.RoutingKey},
	}
	if !l.DiedAt.IsZero() {
		death["time"] = l.DiedAt
	}
	return []any{death}
}
