package failure

import "github.com/deadletteroffice/dlo/internal/deadletter"

// celery reads the headers of version 2 of Celery's protocol. They say what the task is and how
// often it was retried, and nothing of its error. origin is who published it.
func (r *reading) celery() (f deadletter.Failure, found bool) {
	if r.text("task") == "" || r.text("lang") == "" {
		return f, false
	}
	f.MessageType, f.ID, f.Attempts = r.label("task"), r.label("id"), r.number("retries")
	return f, true
}
