package view

import (
	"context"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

type mayKey struct{}

// WithPrincipal stores in the context of a page the principal who looks at the page. The page
// leaves out the button of a verb if the principal is not allowed to use the verb anywhere.
func WithPrincipal(ctx context.Context, p deadletter.Principal) context.Context {
	return context.WithValue(ctx, mayKey{}, p)
}

// may reports whether the principal who looks at a page is allowed to use the verb v somewhere.
func may(ctx context.Context, v deadletter.Verb) bool {
	p, known := ctx.Value(mayKey{}).(deadletter.Principal)
	return !known || p.May(v)
}

// allowed returns those of the given verbs that the principal who looks at a page is allowed to use
// somewhere.
func allowed(ctx context.Context, verbs []deadletter.Verb) []deadletter.Verb {
	var list []deadletter.Verb
	for _, v := range verbs {
		if may(ctx, v) {
			list = append(list, v)
		}
	}
	return list
}
