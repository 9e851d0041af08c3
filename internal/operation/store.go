package operation

import (
	"context"
	"fmt"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Copies is the part of the store that records what a person has decided: the store is current, or
// it is an older copy.
type Copies interface {
	// reports whether people still have to say if the store is current or a copy
	AnyUnproved(ctx context.Context) (bool, error)
	Accept(ctx context.Context, by string) error
	HoldCopy(ctx context.Context, by string) error
}

// AcceptStore records a person's decision that the store is current. dlo asks for this decision if
// it has found no proof that the store is current. Until then, it does not send the letters of a
// broker without this proof. After the decision, it sends the due letters again. Errors wrap
// ErrForbidden, or ErrConflict if dlo does not ask for the decision.
func (d *Desk) AcceptStore(ctx context.Context, by deadletter.Principal) error {
	if err := d.checkUndecided(ctx, by); err != nil {
		return err
	}
	return d.store.Accept(ctx, by.Name)
}

// HoldCopy records that the store is an older copy. It holds the letters that may have been sent
// since the copy was made. It returns the same errors as AcceptStore.
func (d *Desk) HoldCopy(ctx context.Context, by deadletter.Principal) error {
	if err := d.checkUndecided(ctx, by); err != nil {
		return err
	}
	return d.store.HoldCopy(ctx, by.Name)
}

func (d *Desk) checkUndecided(ctx context.Context, by deadletter.Principal) error {
	if err := deadletter.Allow(by, deadletter.VerbStore, deadletter.Origin{}); err != nil {
		return err
	}
	unproved, err := d.store.AnyUnproved(ctx)
	if err == nil && !unproved {
		err = fmt.Errorf("%w: dlo does not ask now whether the store is current", deadletter.ErrConflict)
	}
	return err
}
