package failure

import "github.com/deadletteroffice/dlo/internal/deadletter"

// shovel reads the queue from which a shovel took a message. If several shovels moved the message,
// it uses the newest one. In a letter without x-death, the entry of the shovel is the only sign of
// the queue: somebody moved the letter by hand out of that queue.
func (r *reading) shovel() (f deadletter.Failure, found bool) {
	f.Queue = r.shovelledFrom()
	return f, f.Queue != ""
}

func (r *reading) shovelledFrom() string {
	list, _ := r.Headers["x-shovelled"].([]any)
	if len(list) == 0 {
		return ""
	}
	entry, _ := list[0].(deadletter.Table)
	queue, _ := entry["src-queue"].(string)
	return validName(queue)
}
