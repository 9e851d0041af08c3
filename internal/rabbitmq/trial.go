package rabbitmq

import "time"

// trial keeps an inbox from being reported as read while one session after another ends right after
// it has begun. An inbox counts as read once a window is settled or a session has lived for a
// while.
type trial struct {
	proof   time.Duration // how long a session has to live
	began   time.Time     // when the session began; zero = no session, or it has proved itself
	note    string        // of an inbox that is being read
	doubted bool
}

// end records the end of a session.
func (t *trial) end() {
	if !t.began.IsZero() && time.Since(t.began) < t.proof {
		t.doubted = true
	}
	t.began = time.Time{}
}

// after returns the channel that fires when the session has lived long enough. It returns nil if
// the session does not need to prove itself.
func (t *trial) after() <-chan time.Time {
	if !t.doubted {
		return nil
	}
	return time.After(time.Until(t.began.Add(t.proof)))
}

// reads reports the inbox as read.
func (i *Inbox) reads() {
	if i.once {
		return
	}
	i.trial.doubted = false
	i.link.inboxStatus(i.queue, true, i.trial.note)
}
