package web

import (
	"context"
	"errors"
	"slices"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/descriptor"
	"github.com/deadletteroffice/dlo/web/view"
)

// addSets adds the descriptor sets and their sources to the page.
func (w *Web) addSets(ctx context.Context, p *view.SchemasPage) error {
	status := w.Schemas.Status()
	p.Directory, p.Servers, p.Problems = status.Directory, status.Servers, schemaProblems(status)
	types := w.Decoder().Types
	conflicts := types.Conflicts()
	for _, s := range types.Sets() {
		if s.Current {
			p.Sets = append(p.Sets, view.SchemaSet{Set: s, Conflicts: conflicts[s.Name]})
		} else {
			p.Sets[len(p.Sets)-1].Older++
		}
	}
	var err error
	p.Removed, err = w.Store.RemovedSchemas(ctx)
	return err
}

// schemaProblems returns the schemas that cannot be read, each with the reason.
func schemaProblems(s deadletter.SchemaStatus) []string {
	problems := slices.Clone(s.Problems)
	for _, server := range s.Servers {
		if server.Problem != "" {
			problems = append(problems, server.Address+": "+server.Problem)
		}
	}
	return problems
}

// setDetail returns the details of the set with the given name.
func (w *Web) setDetail(name string) *view.SetDetail {
	d := &view.SetDetail{Name: name}
	types := w.Decoder().Types
	for _, s := range types.Sets() {
		if s.Name == name {
			d.Versions = append(d.Versions, s)
		}
	}
	if current, _ := types.Current(name); current != nil {
		d.Conflicts = types.Compare(name, current).Conflicts
	}
	return d
}

// findTypes finds the message types and fields whose names contain a word.
func (w *Web) findTypes(word string) (view.TypeSearch, error) {
	if len(word) > maxSearch {
		return view.TypeSearch{}, invalid("a word to search for has at most %d bytes", maxSearch)
	}
	hits, more := w.Decoder().Types.Find(word)
	return view.TypeSearch{Word: word, Hits: hits, More: more}, nil
}

// typeSource returns a message type as .proto text. It also returns the queues that have letters of
// this type.
func (w *Web) typeSource(ctx context.Context, name string) (*view.TypeSource, error) {
	done, err := w.waitForPlace(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	source, err := w.Decoder().Types.Source(name)
	if errors.Is(err, descriptor.ErrNoType) || errors.Is(err, descriptor.ErrSchemaTooLarge) {
		return &view.TypeSource{Source: descriptor.Source{Type: name}, Problem: err.Error()}, nil
	}
	if err != nil {
		return nil, err
	}
	t := &view.TypeSource{Source: source}
	readings, err := w.Store.Readings(ctx)
	if err != nil {
		return nil, err
	}
	t.Queues = typedQueues(slices.DeleteFunc(readings, func(c deadletter.ReadCount) bool { return c.Type != source.Type }))
	return t, nil
}
