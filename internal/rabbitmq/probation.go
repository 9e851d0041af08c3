package rabbitmq

import "time"

// probation prevents dlo from reporting that it reads an inbox while the sessions of the inbox end
// soon after their start, one after another. The inbox counts as read once a session has stored and
// acknowledged a batch of letters. It also counts as read once a session has lived for the time in
// the field "proof".
type probation struct {
	proof time.Duration // how long a session has to live to prove itself
	began time.Time     // when the session began; zero = there is no session, or it has proved itself
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

// proofTimer returns a channel that receives a value when the current session with the inbox has
// lasted long enough to prove that dlo can read the inbox. It returns nil if no proof is needed,
// because the last sessions did not end early or the inbox already counts as read again.
func (p *probation) proofTimer() <-chan time.Time {
	if !p.on {
		return nil
	}
	return time.After(time.Until(p.began.Add(p.proof)))
}

// recordReading records that the inbox is being read.
func (i *Inbox) recordReading() {
	if i.once {
		return
	}
	i.probation.on = false
	i.link.inboxStatus(i.queue, true, i.probation.note)
}
