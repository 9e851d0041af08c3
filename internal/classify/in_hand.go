package classify

import "github.com/deadletteroffice/dlo/internal/deadletter"

// inHand reads a letter, and notes the id of the letter while it does so. A letter that dlo was
// reading when it died is read again alone: no other letter is read at the same time. If dlo then
// dies again, only that letter can be the cause.
func (c *Classifier) inHand(l *deadletter.Letter, note func(deadletter.ID) error, read func()) error {
	if l.Crashes > 0 {
		c.hand.Lock()
		defer c.hand.Unlock()
	} else {
		c.hand.RLock()
		defer c.hand.RUnlock()
	}
	if err := note(l.ID); err != nil {
		return err
	}
	c.o.Crash("reading")
	read()
	return note("")
}
