package notify

import "context"

// Gone returns a channel that stands for a channel that is no longer in the configuration. Every
// delivery to it fails permanently.
func Gone(name string) Channel { return Channel{Sender: gone(name)} }

type gone string

func (g gone) Send(context.Context, Message) error {
	return permanentError("there is no channel %s any more", line(string(g), 100))
}
