package failure

import (
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// laravel reads the header of the RabbitMQ queue of Laravel: a table with the attempts before this
// one. A failed job goes on with the routing key <queue>.failed. The job itself is in the body.
func (r *reading) laravel() (f deadletter.Failure, found bool) {
	table, ok := r.Headers["laravel"].(deadletter.Table)
	if !ok {
		return f, false
	}
	f.Attempts = count(table["attempts"]) + 1
	if queue, ok := strings.CutSuffix(r.route.RoutingKey, ".failed"); ok {
		f.Queue = short(queue)
	}
	if f.Queue == "" {
		f.Queue = r.trimmed(".failed")
	}
	return f, true
}
