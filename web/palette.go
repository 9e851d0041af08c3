package web

import (
	"context"
	"net/http"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/web/view"
)

// paletteOf is the maximum number of entries of each kind in the command palette.
const paletteOf = 5

// palette handles GET /palette?q=. It returns the entries of the command palette for a text, the
// most certain one first. If the text is an id, the letter, group or operation with this id comes
// first. Then come the pages, saved views, groups, queues and types whose name contains the text. A
// search for the text comes last. Without a text, palette returns the pages and views.
func (w *Web) palette(r *http.Request) (any, error) {
	ctx, text := r.Context(), strings.TrimSpace(r.URL.Query().Get("q"))
	out := []view.PaletteEntry{}
	if page, found, err := w.pageOf(ctx, text); err != nil {
		return nil, err
	} else if found {
		out = append(out, view.PaletteEntry{Kind: "Open", Text: text, Link: page})
	}
	for _, place := range view.Places {
		if containsFold(place.Name, text) {
			out = append(out, view.PaletteEntry{
				Kind: "Page",
				Text: place.Name,
				Link: place.Path,
				Key:  "g " + place.Key,
			})
		}
	}
	for _, p := range []struct {
		text, link string
		verb       deadletter.Verb
	}{
		{"Users and tokens", "/access", deadletter.VerbAccess},
		{"Settings: delays, severity and notify, indexed fields", "/settings", deadletter.VerbRead},
		{"Connection to the brokers", "/connection", deadletter.VerbView},
	} {
		if containsFold(p.text, text) && principal(r.Context()).MayEverywhere(p.verb) {
			out = append(out, view.PaletteEntry{Kind: "Page", Text: p.text, Link: p.link})
		}
	}
	views, err := w.Store.Views(ctx, principal(r.Context()).Name)
	if err != nil {
		return nil, err
	}
	for _, v := range views {
		if containsFold(v.Name, text) {
			out = append(out, view.PaletteEntry{Kind: "View", Text: v.Name, Link: view.LettersURL(v.Query, "", "")})
		}
	}
	if text == "" {
		return out, nil
	}
	found, err := w.paletteGroups(ctx, text)
	if err != nil {
		return nil, err
	}
	named, err := w.paletteNames(ctx, text)
	if err != nil {
		return nil, err
	}
	out = append(append(out, found...), named...)
	return append(out, view.PaletteEntry{
		Kind:  "Search",
		Text:  text,
		Label: "in all letters",
		Link:  view.LettersURL(text, "", ""),
	}), nil
}

func containsFold(name, text string) bool {
	return strings.Contains(strings.ToLower(name), strings.ToLower(text))
}

// paletteGroups returns entries for the groups whose title, error, note or ticket contains a text.
func (w *Web) paletteGroups(ctx context.Context, text string) ([]view.PaletteEntry, error) {
	list, _, err := w.groups(ctx, (query.Query{}).With(query.Words, text), deadletter.GroupPage{
		Tab:   deadletter.TabAll,
		Limit: paletteOf,
	})
	return each(list, func(g deadletter.GroupRow) view.PaletteEntry {
		return view.PaletteEntry{
			Kind:  "Group",
			Text:  g.ID.String() + " " + g.Title,
			Label: g.Queue,
			Link:  view.GroupURL(g.ID),
		}
	}), err
}

// paletteNames returns entries for the queues and message types whose name contains a text.
func (w *Web) paletteNames(ctx context.Context, text string) ([]view.PaletteEntry, error) {
	counted, err := w.Store.Facets(ctx, query.Query{})
	if err != nil {
		return nil, err
	}
	var out []view.PaletteEntry
	kinds := map[query.Field]string{query.Queue: "Queue", query.Type: "Type"}
	for _, f := range counted.Fields {
		n := 0
		for _, v := range f.Values {
			field := query.Field(f.Field)
			if kinds[field] != "" && n < paletteOf && v.Value != "" && containsFold(v.Value, text) {
				n++
				out = append(out, view.PaletteEntry{
					Kind:  kinds[field],
					Text:  v.Value,
					Label: view.LetterCount(v.Count),
					Link:  view.LettersURL((query.Query{}).With(field, v.Value).String(), "", ""),
				})
			}
		}
	}
	return out, nil
}
