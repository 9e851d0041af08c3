package rabbitmq

import "time"

// probation keeps an inbox from being reported as read while one session after another ends soon
// after its start. An inbox counts as read once a window is settled or a session has lived for a
// while.
type probation struct {
	proof time.Duration // how long a session has to live
	began time.Time     // when the session began; zero = no session, or it has proved itself
	note  string        // the note of an inbox that is being read
	on    bool
}

// end records the end of a session.
func (p *probation) end() {
	if !p.began.IsZero() && time.Since(p.began) < p.proof {
		p.on = true
	}
	p.began = time.Time{}
}

// proofTimer returns the channel that fires when the session has lived long enough. It returns nil
// if the session does not need to prove itself.
func (p *probation) proofTimer() <-chan time.Time {
	if !p.on {
		return nil
	}
	return time.After(time.Until(p.began.Add(p.proof)))
}

// reads reports the inbox as read.
func (i *Inbox) reads() {
	if i.once {
		return
	}
	i.probation.on = false
	i.link.inboxStatus(i.queue, true, i.probation.note)
}
