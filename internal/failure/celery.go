package failure

import "github.com/deadletteroffice/dlo/internal/deadletter"

// celery reads the headers of version 2 of Celery's protocol. The headers name the task and count
// its retries, but do not mention the error. The header "origin" names the publisher.
func (r *reading) celery() (f deadletter.Failure, found bool) {
	if r.text("task") == "" || r.text("lang") == "" {
		return f, false
	}
	f.MessageType, f.ID, f.Attempts = r.label("task"), r.label("id"), r.number("retries")
	return f, true
}
