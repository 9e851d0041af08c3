package web

import (
	"context"
)

// acceptStore says that the store is current, where nothing is left that shows it. What is due is
// sent again. 409 when nobody asks (the problem store_unproved).
func (w *Web) acceptStore(ctx context.Context, _ *struct{}) (*none, error) {
	return nil, w.Desk.AcceptStore(ctx, principal(ctx))
}

// holdCopy says that the store is an older copy. What may have been sent since the copy was made is
// held. 409 when nobody asks (the problem store_unproved).
func (w *Web) holdCopy(ctx context.Context, _ *struct{}) (*none, error) {
	return nil, w.Desk.HoldCopy(ctx, principal(ctx))
}
