package deadletter

import "fmt"

// Principal is the person or service that acts.
type Principal struct{ Name string }

// Local is the principal on a loopback address without sign-in: anyone with a shell on the machine.
var Local = Principal{Name: "local"}

// Service is dlo itself: the scheduler, the classifier, the watch. It passes no gate, because
// nobody requested its actions.
var Service = Principal{Name: "dlo"}

// Allow is the only gate before every action. It checks whether p may do v to letters with origin o
// or, if o is empty, to something that belongs to no queue. The error wraps ErrForbidden and says
// who may not do what.
func Allow(p Principal, v Verb, o Origin) error {
	if p == Local {
		return nil
	}
	if o == (Origin{}) {
		return fmt.Errorf("%w: %q may not change %s", ErrForbidden, p.Name, v)
	}
	if o.Queue == "" {
		return fmt.Errorf("%w: %q may not %s broker %s", ErrForbidden, p.Name, v, Visible(o.Broker))
	}
	return fmt.Errorf("%w: %q may not %s letters of queue %s", ErrForbidden, p.Name, v, Visible(o.Queue))
}
