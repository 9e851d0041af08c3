package classify

import "github.com/deadletteroffice/dlo/internal/deadletter"

// inHand reads a letter and notes, for as long as that takes, that the letter is being read. A
// letter that was being read when dlo died is read while no other letter is being read. If dlo dies
// again, that letter alone is blamed.
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
