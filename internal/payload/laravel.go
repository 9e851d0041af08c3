package payload

import "strings"

// laravelCall is the beginning of the value of "job" in a queued Laravel job:
// "Illuminate\Queue\CallQueuedHandler@call".
const laravelCall = `Illuminate\Queue\CallQueuedHandler`

// laravel adds the class of a queued Laravel job to the document. Only the body names the class, in
// the members displayName and data.commandName. Source: Illuminate/Queue/Queue.php.
func (r *reading) laravel() {
	d := r.doc
	if !strings.HasPrefix(d.word("job"), laravelCall) {
		return
	}
	if d.Failure.MessageType = d.word("displayName"); d.Failure.MessageType == "" {
		d.Failure.MessageType = d.word("data.commandName")
	}
}
