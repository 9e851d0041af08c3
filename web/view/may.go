package view

import (
	"context"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

type mayKey struct{}

// WithPrincipal stores the caller who looks at a page in the context of the page. A page omits the
// button of a verb if the caller is not allowed to use that verb anywhere.
func WithPrincipal(ctx context.Context, p deadletter.Principal) context.Context {
	return context.WithValue(ctx, mayKey{}, p)
}

// mayUse reports whether the caller is allowed to use the verb v on at least one queue. The caller
// is the person who looks at the page.
func mayUse(ctx context.Context, v deadletter.Verb) bool {
	p, known := ctx.Value(mayKey{}).(deadletter.Principal)
	return !known || p.May(v)
}

// allowedVerbs returns those of the given verbs that the caller is allowed to use on at least one
// queue. The caller is the person who looks at the page.
func allowedVerbs(ctx context.Context, verbs []deadletter.Verb) []deadletter.Verb {
	var list []deadletter.Verb
	for _, v := range verbs {
		if mayUse(ctx, v) {
			list = append(list, v)
		}
	}
	return list
}
