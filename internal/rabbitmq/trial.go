package rabbitmq

import "time"

// trial keeps an inbox from being called read by each session of a row that end as soon as they
// have begun. It is read once a window is settled, or a session has lived for a while.
type trial struct {
	proof   time.Duration // how long a session has to live
	began   time.Time     // of the session; zero = none, or it is in no doubt any more
	note    string        // of an inbox that is read
	doubted bool
}

// end is told that a session has ended.
func (t *trial) end() {
	if !t.began.IsZero() && time.Since(t.began) < t.proof {
		t.doubted = true
	}
	t.began = time.Time{}
}

// after returns the channel that says when the session has lived for long enough; nil where it is
// in no doubt.
func (t *trial) after() <-chan time.Time {
	if !t.doubted {
		return nil
	}
	return time.After(time.Until(t.began.Add(t.proof)))
}

// reads says that the inbox is read.
func (i *Inbox) reads() {
	if i.once {
		return
	}
	i.trial.doubted = false
	i.link.inboxStatus(i.queue, true, i.trial.note)
}
