package failure

import "github.com/deadletteroffice/dlo/internal/deadletter"

// shovel reads the queue from which a shovel took a message. If there are several shovels, it uses
// the newest. A letter without x-death was in that queue before somebody moved it by hand.
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
