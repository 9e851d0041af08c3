package notify

import "context"

// Gone stands for a channel that is no longer configured: what is due to it fails for good.
func Gone(name string) Channel { return Channel{Sender: gone(name)} }

type gone string

func (g gone) Send(context.Context, Message) error {
	return refused("there is no channel %s any more", line(string(g), 100))
}
