package web

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Picker saves the types that people pick, and applies them. To apply a pick, it finds the letters
// that the pick matches, and decodes them again.
type Picker interface {
	AddPick(ctx context.Context, p deadletter.Pick) (deadletter.Pick, error)
	RemovePick(ctx context.Context, id int64, by string) error
}

func pickOf(p deadletter.Pick) api.Pick {
	out := api.Pick{Pick: p, For: "binding"}
	switch {
	case p.Letter != "":
		out.For = "letter"
	case p.Group != 0:
		out.For = "group"
	}
	return out
}

// listBindings returns the types that people picked, and the bindings of the configuration.
// Bindings come first, by queue; then what was picked for groups and letters.
func (w *Web) listBindings(ctx context.Context, _ *struct{}) (*tagged[api.Bindings], error) {
	list, err := w.bindings(ctx)
	return &tagged[api.Bindings]{tagOf(list), list}, err
}

func (w *Web) bindings(ctx context.Context) (api.Bindings, error) {
	list, err := w.Store.Picks(ctx)
	return api.Bindings{Bindings: each(list, pickOf), Configuration: w.Bindings}, err
}

// bindingsUnchanged returns an error if the bindings have changed since the client read them.
func (w *Web) bindingsUnchanged(ctx context.Context, known Matching) error {
	list, err := w.bindings(ctx)
	if err != nil {
		return err
	}
	return known.stillMatches(tagOf(list))
}

// addBinding says which type the letters of a queue are. The letters of the queue are read again,
// in the background.
func (w *Web) addBinding(ctx context.Context, in *struct {
	Matching
	Body api.BindingRequest
},
) (*created[api.Pick], error) {
	b := &in.Body
	return w.createPick(
		ctx, in.Matching, nil,
		deadletter.Pick{Reason: b.Reason, Binding: deadletter.Binding{
			Queue: strings.TrimSpace(b.Queue), Key: strings.TrimSpace(b.Key), Path: b.Path, Type: b.Type,
		}},
	)
}

// pickType says which type a letter is. For the letter alone, for its group, or for all letters of
// its queue (a binding). What it is for is read again, in the background; a pick before it of the
// same letter, group or queue is replaced. Where something that is masked may show, it takes the
// right to reveal, and is noted as revealed.
func (w *Web) pickType(ctx context.Context, in *struct {
	LetterPath
	Matching
	Body api.PickRequest
},
) (*created[api.Pick], error) {
	l, err := w.readLetter(ctx, in.LetterPath)
	if err != nil {
		return nil, err
	}
	p, err := pickFor(&l, in.Body.For)
	if err != nil {
		return nil, err
	}
	p.Type, p.Path, p.Reason = in.Body.Type, in.Body.Path, in.Body.Reason
	return w.createPick(ctx, in.Matching, &l, p)
}

// pickFor returns a pick for a letter, for its group or for its queue. The parameter "target" says
// which of the three. The caller must add the type that the person picked.
func pickFor(l *deadletter.Letter, target string) (deadletter.Pick, error) {
	switch target {
	case "", "letter":
		return deadletter.Pick{Letter: l.ID}, nil
	case "group":
		if l.Group == 0 {
			return deadletter.Pick{}, invalid("the letter has no group yet; choose letter")
		}
		return deadletter.Pick{Group: l.Group}, nil
	case "binding":
		if l.Queue == "" {
			return deadletter.Pick{}, invalid("nothing says which queue the letter died in; choose letter or group")
		}
		return deadletter.Pick{Binding: deadletter.Binding{Queue: l.Queue}}, nil
	}
	return deadletter.Pick{}, invalid(
		"for is letter, group or binding, not %q", deadletter.Visible(deadletter.Cut(target, 40)),
	)
}

func (w *Web) createPick(
	ctx context.Context, known Matching, l *deadletter.Letter, p deadletter.Pick,
) (*created[api.Pick], error) {
	p, err := w.pick(ctx, known, l, p)
	return &created[api.Pick]{fmt.Sprint("/api/v1/bindings/", p.ID), pickOf(p)}, err
}

// pick saves a type that a person picks. It rejects a type that is not registered, because the
// letters would become unreadable. The parameter l is the letter that the person looked at, or nil.
func (w *Web) pick(
	ctx context.Context, known Matching, l *deadletter.Letter, p deadletter.Pick,
) (deadletter.Pick, error) {
	p.Type, p.Path, p.Reason = strings.TrimSpace(p.Type), strings.TrimSpace(p.Path), strings.TrimSpace(p.Reason)
	switch {
	case p.Path != "" && (p.Letter != "" || p.Group != 0):
		return p, invalid("a member of JSON bodies is bound for a queue; choose binding")
	case p.Letter == "" && p.Group == 0 && p.Queue == "":
		return p, invalid("name a queue, or a pattern, for example billing.*")
	case len(p.Queue) > 255 || len(p.Key) > 255 || len(p.Path) > 255:
		return p, invalid("the name of a queue, a routing key and a path have at most 255 bytes")
	case len(p.Reason) > maxReasonText:
		return p, invalid("a reason has at most %d bytes", maxReasonText)
	case !slices.Contains(w.Decoder().Types.Types(), p.Type):
		return p, invalid(
			"type %q is not registered; %s", deadletter.Visible(deadletter.Cut(p.Type, 200)), w.typeNameAdvice(p.Type),
		)
	}
	by := principal(ctx)
	at := deadletter.Origin{} // a binding applies to queues with that name in all vhosts
	if l != nil && p.Queue == "" {
		at = l.Place()
	}
	if err := deadletter.Allow(by, deadletter.VerbTypes, at); err != nil {
		return p, err
	}
	p.By = by.Name
	var err error
	if p.Reveals, err = w.pickReveals(ctx, by, l, p); err != nil {
		return p, err
	}
	w.picking.Lock()
	defer w.picking.Unlock()
	if err := w.bindingsUnchanged(ctx, known); err != nil {
		return p, err
	}
	return w.Picker.AddPick(ctx, p)
}

// typeNameAdvice returns advice about the name of a type that is not registered. If up to three
// registered types have the same short name, it names them. Otherwise, it asks for the full name.
func (w *Web) typeNameAdvice(name string) string {
	const named = 3
	var like []string
	for _, full := range w.Decoder().Types.Types() {
		if name != "" && strings.EqualFold(
			full[strings.LastIndexByte(full, '.')+1:], name[strings.LastIndexByte(name, '.')+1:],
		) {
			like = append(like, full)
		}
	}
	if len(like) == 0 || len(like) > named {
		return "give the full name of a message type of a registered set"
	}
	return "did you mean " + strings.Join(like, " or ") + "?"
}

// pickReveals reports whether a pick, which sets the type of a letter, a group or a queue, may show
// values that are masked now. If so, and if the principal has no right to reveal, it returns an
// error.
//
// A pick for one letter counts as a reveal if any part of that letter is masked now. A pick for a
// group or a queue counts as one if any part of any body may be masked.
func (w *Web) pickReveals(
	ctx context.Context, by deadletter.Principal, l *deadletter.Letter, p deadletter.Pick,
) (reveals bool, err error) {
	d := w.Decoder()
	reveals = d.HidesAny()
	origin := deadletter.Origin{}
	if l != nil && p.Queue == "" { // a binding applies to queues with that name in all vhosts
		origin = l.Origin()
	}
	if reveals && p.Letter != "" && l != nil {
		done, err := w.waitForPlace(ctx)
		if err != nil {
			return false, err
		}
		reveals = d.Letter(l).Masked
		done()
	}
	if !reveals {
		return false, nil
	}
	if err := deadletter.Allow(by, deadletter.VerbReveal, origin); err != nil {
		return false, fmt.Errorf(
			"%w; values that are masked now may become visible when the letters are decoded as %s, so this needs the right to reveal",
			err, p.Type,
		)
	}
	return true, nil
}

// removeBinding removes a binding or a pick. Its letters are read again without it.
func (w *Web) removeBinding(ctx context.Context, in *struct {
	NumberPath
	Matching
},
) (*none, error) {
	id, err := in.number("pick")
	if err != nil {
		return nil, err
	}
	by := principal(ctx)
	if err := deadletter.Allow(by, deadletter.VerbTypes, deadletter.Origin{}); err != nil {
		return nil, err
	}
	w.picking.Lock()
	defer w.picking.Unlock()
	if err := w.bindingsUnchanged(ctx, in.Matching); err != nil {
		return nil, err
	}
	return nil, w.Picker.RemovePick(ctx, id, by.Name)
}
