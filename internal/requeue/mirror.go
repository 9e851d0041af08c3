package requeue

import "github.com/deadletteroffice/dlo/internal/deadletter"

// mirroredDeaths returns an entry of x-death for workers that count retries in x-death themselves.
// Since 4.0, RabbitMQ starts to count from 1 again with each publish. The entry therefore contains
// dlo's own count, as x-death would contain it on RabbitMQ 3.10. dlo never reads this header back.
func mirroredDeaths(due *deadletter.Due) []any {
	l := &due.Letter
	death := deadletter.Table{
		"queue":        l.Queue,
		"reason":       l.Reason,
		"count":        int64(due.Attempt.Number),
		"exchange":     l.Exchange,
		"routing-keys": []any{l.RoutingKey},
	}
	if !l.DiedAt.IsZero() {
		death["time"] = l.DiedAt
	}
	return []any{death}
}
