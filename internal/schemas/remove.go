package schemas

import (
	"context"
	"fmt"
	"slices"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Remove removes an uploaded set with all its versions, and returns how many letters have its
// types. These letters are read again, with the types of other sets or without a type. The versions
// stay in the store. A dry run changes nothing. The error wraps ErrForbidden or ErrNotFound. It
// wraps ErrConflict if the set was not uploaded.
func (l *Library) Remove(
	ctx context.Context, by deadletter.Principal, name string, dryRun bool,
) (deadletter.SchemaEffect, error) {
	var e deadletter.SchemaEffect
	if err := deadletter.Allow(by, deadletter.VerbTypes, deadletter.Origin{}); err != nil {
		return e, err
	}
	l.change.Lock()
	defer l.change.Unlock()
	s, was := l.registry.Current(name)
	switch {
	case s == nil:
		return e, deadletter.NoSuch("set of types %s", deadletter.Visible(name))
	case was.Source == deadletter.SchemaDirectory:
		return e, fmt.Errorf(
			"%w: the set %s comes from %s; delete the file there", deadletter.ErrConflict, deadletter.Visible(name),
			originWords(was),
		)
	case was.Source == deadletter.SchemaReflection:
		return e, fmt.Errorf(
			"%w: the set %s comes from %s; take it out of schemas.reflection and restart", deadletter.ErrConflict,
			deadletter.Visible(name), originWords(was),
		)
	}
	types := l.typesOf(name)
	e = deadletter.SchemaEffect{Types: len(types), Files: s.Files()}
	var err error
	if e.Letters, err = l.letterCount(ctx, types); err != nil || dryRun {
		return e, err
	}
	return e, l.drop(ctx, name, by.Name, "")
}

// dropGone removes the sets whose source is no longer in the configuration. This source is a server
// or the directory.
func (l *Library) dropGone(ctx context.Context) error {
	l.change.Lock()
	defer l.change.Unlock()
	for _, s := range l.current() {
		why := ""
		switch {
		case s.Source == deadletter.SchemaReflection && !slices.Contains(l.Reflection, s.Name):
			why = ": the server left the configuration"
		case fromDirectory(s) && l.Directory == "":
			why = ": the directory left the configuration"
		default:
			continue
		}
		if err := l.drop(ctx, s.Name, deadletter.Service.Name, why); err != nil {
			return err
		}
	}
	return nil
}
