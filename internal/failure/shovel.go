package failure

import "github.com/deadletteroffice/dlo/internal/deadletter"

// shovel reads where a shovel took a message from: the newest entry comes first. It is where a
// letter without x-death was before somebody moved it by hand.
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
	return short(queue)
}
