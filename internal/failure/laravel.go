package failure

import (
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// laravel reads the header "laravel" of Laravel's RabbitMQ queue. The header is a table with the
// number of earlier attempts. A failed job is published with the routing key <queue>.failed. The
// job itself is in the body.
func (r *reading) laravel() (f deadletter.Failure, found bool) {
	table, ok := r.header("laravel").value.(deadletter.Table)
	if !ok {
		return f, false
	}
	f.Attempts = countOf(table["attempts"]) + 1
	if queue, ok := strings.CutSuffix(r.route.RoutingKey, ".failed"); ok {
		f.Queue = validName(queue)
	}
	if f.Queue == "" {
		f.Queue = r.inboxWithoutSuffix(".failed")
	}
	return f, true
}
