package notify

import "context"

// Gone returns a stand-in for a channel that was removed from the configuration. Every delivery to
// it fails permanently, so that deliveries which still wait for the channel end.
func Gone(name string) Channel { return Channel{Sender: gone(name)} }

type gone string

func (g gone) Send(context.Context, Message) (string, error) {
	return "", permanentError("there is no channel %s any more", line(string(g), 100))
}
