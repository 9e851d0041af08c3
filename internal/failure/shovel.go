package failure

import "github.com/deadletteroffice/dlo/internal/deadletter"

// shovel reads the queue from which a shovel took a message. If several shovels moved the message,
// it uses the newest one. A letter without x-death did not die: somebody moved it out of a queue by
// hand. In that case, only the entry of the shovel shows which queue this was.
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
