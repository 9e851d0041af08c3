package operation

import (
	"context"
	"errors"
	"fmt"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Redirects stores the redirects that people save.
type Redirects interface {
	Overrides(ctx context.Context) ([]deadletter.Override, error)
	// AddOverride stores a redirect and returns it with its id and its time. If the queue already has
	// a redirect, AddOverride returns ErrConflict.
	AddOverride(ctx context.Context, o deadletter.Override) (deadletter.Override, error)
	RemoveOverride(ctx context.Context, id int64, by string) error // returns ErrNotFound if there is no such redirect
}

// Redirect saves a redirect, which sends the letters of a queue to another queue of the same broker
// and vhost. It returns the redirect with its id. Errors wrap ErrInvalid, ErrForbidden or
// ErrConflict. ErrInvalid means, for example, that the target may not receive letters or is the
// queue itself.
func (d *Desk) Redirect(
	ctx context.Context, by deadletter.Principal, o deadletter.Override,
) (deadletter.Override, error) {
	if err := deadletter.Allow(by, deadletter.VerbRedirect, deadletter.Origin{
		Broker: o.Broker,
		VHost:  o.VHost,
		Queue:  o.Queue,
	}); err != nil {
		return o, err
	}
	if refused := mistakes(o); len(refused) > 0 {
		return o, refused
	}
	to := deadletter.Origin{Broker: o.Broker, VHost: o.VHost, Queue: o.To}
	if err := deadletter.Allow(by, deadletter.VerbRedirect, to); err != nil {
		return o, err
	}
	if err := d.targets.Allow(to); err != nil {
		return o, deadletter.FieldErrors{{Field: "to", Why: err.Error()}}
	}
	o.By = by.Name
	saved, err := d.store.AddOverride(ctx, o)
	if !errors.Is(err, deadletter.ErrConflict) {
		return saved, err
	}
	// The queue already has a redirect. If it leads to the same target, saving it again is not an
	// error, and the existing redirect is returned.
	list, readErr := d.store.Overrides(ctx)
	if readErr != nil {
		return o, readErr
	}
	for _, known := range list {
		if known.Broker == o.Broker && known.VHost == o.VHost && known.Queue == o.Queue && known.To == o.To {
			return known, nil
		}
	}
	return o, err
}

// Unredirect removes a redirect. Errors wrap ErrNotFound or ErrForbidden.
func (d *Desk) Unredirect(ctx context.Context, by deadletter.Principal, id int64) error {
	list, err := d.store.Overrides(ctx)
	if err != nil {
		return err
	}
	for _, o := range list {
		if o.ID != id {
			continue
		}
		if err := deadletter.Allow(by, deadletter.VerbRedirect, deadletter.Origin{
			Broker: o.Broker,
			VHost:  o.VHost,
			Queue:  o.Queue,
		}); err != nil {
			return err
		}
		return d.store.RemoveOverride(ctx, id, by.Name)
	}
	return deadletter.NoSuch("redirect %d", id)
}

// redirectTargets returns the target queue of every redirect, by origin.
func (d *Desk) redirectTargets(ctx context.Context) (map[deadletter.Origin]string, error) {
	list, err := d.store.Overrides(ctx)
	to := make(map[deadletter.Origin]string, len(list))
	for _, o := range list {
		to[deadletter.Origin{Broker: o.Broker, VHost: o.VHost, Queue: o.Queue}] = o.To
	}
	return to, err
}

// mistakes returns the fields of a redirect that nobody may save.
func mistakes(o deadletter.Override) (list deadletter.FieldErrors) {
	for _, f := range []struct{ name, queue string }{{"queue", o.Queue}, {"to", o.To}} {
		switch {
		case f.queue == "":
			list = append(list, deadletter.FieldError{Field: f.name, Why: "name a queue"})
		case len(f.queue) > deadletter.MaxQueueName:
			why := fmt.Sprintf("a queue has a name of at most %d bytes", deadletter.MaxQueueName)
			list = append(list, deadletter.FieldError{Field: f.name, Why: why})
		}
	}
	if o.To != "" && o.To == o.Queue {
		list = append(list, deadletter.FieldError{Field: "to", Why: "that is the same queue"})
	}
	if len(o.Reason) > maxReason {
		why := fmt.Sprintf("a reason has at most %d bytes", maxReason)
		list = append(list, deadletter.FieldError{Field: "reason", Why: why})
	}
	return list
}
