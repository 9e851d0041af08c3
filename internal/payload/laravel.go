package payload

import "strings"

// laravelCall is the beginning of the value of "job" in a queued Laravel job:
// "Illuminate\Queue\CallQueuedHandler@call".
const laravelCall = `Illuminate\Queue\CallQueuedHandler`

// laravel adds the class of a queued Laravel job to the document. Only the body names the class, in
// the members displayName and data.commandName. Source: Illuminate/Queue/Queue.php.
func (d *Document) laravel() {
	word := func(path string) string {
		if n := d.scalarAt(path); n != nil && n.Kind == String && !n.Masked && len(n.text) < maxAttribute {
			return n.text
		}
		return ""
	}
	if !strings.HasPrefix(word("job"), laravelCall) {
		return
	}
	if d.Failure.MessageType = word("displayName"); d.Failure.MessageType == "" {
		d.Failure.MessageType = word("data.commandName")
	}
}
