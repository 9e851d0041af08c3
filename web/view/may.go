package view

import (
	"context"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

type readerKey struct{}

// reader is who looks at a page, and the path below which that person reaches dlo, such as /dlo.
type reader struct {
	principal deadletter.Principal
	base      string
}

// WithReader stores in the context of a page the caller who looks at it, and the path below which
// people reach dlo. A page omits the button of a verb if the caller is not allowed to use that verb
// anywhere.
func WithReader(ctx context.Context, p deadletter.Principal, base string) context.Context {
	return context.WithValue(ctx, readerKey{}, reader{p, base})
}

// mayUse reports whether the caller is allowed to use the verb v on at least one queue. The caller
// is the person who looks at the page.
func mayUse(ctx context.Context, v deadletter.Verb) bool {
	r, known := ctx.Value(readerKey{}).(reader)
	return !known || r.principal.May(v)
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

// person returns a name for pages. Somebody who uses dlo without sign-in is "you" to everybody who
// does so. People who sign in read the name as the audit log has it.
func person(ctx context.Context, name string) string {
	r, known := ctx.Value(readerKey{}).(reader)
	if name == deadletter.Local.Name && (!known || r.principal.Name == name) {
		return "you (no sign-in)"
	}
	return line(name, 60)
}
