package view

import (
	"cmp"
	"context"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/descriptor"
)

// SchemaSet is a descriptor set that is in use.
type SchemaSet struct {
	descriptor.Set
	Older     int      // the number of older versions
	Conflicts []string // the sets that define one of the same types differently
}

// SetDetail describes one set in detail.
type SetDetail struct {
	Name      string
	Versions  []descriptor.Set // the newest version comes first; empty if no such set is in use
	Conflicts []descriptor.TypeChange
}

// TypeSearch contains a searched word and the types and fields whose names contain it.
type TypeSearch struct {
	Word string
	Hits []descriptor.Hit
	More bool
}

// TypeSource is the definition of a message type.
type TypeSource struct {
	descriptor.Source
	Queues  []TypedQueue // the queue with the most letters comes first
	Problem string       // why there is no text
}

// schemaOrigin says where a version of a set of schemas comes from: a file, a server or an upload.
func schemaOrigin(ctx context.Context, v deadletter.SchemaVersion) string {
	switch v.Source {
	case deadletter.SchemaDirectory:
		return "file " + line(v.Detail, 80)
	case deadletter.SchemaReflection:
		return "server " + line(v.Detail, 80)
	}
	return "upload by " + person(ctx, v.By)
}

func shortVersion(version string) string { return version[:min(8, len(version))] }

// mark returns a coloured mark that says whether a set is in use without conflicts, or which sets
// it conflicts with.
func (s SchemaSet) mark() mark {
	if len(s.Conflicts) == 0 {
		return mark{"In use", "check", "good"}
	}
	var names []string
	for _, c := range s.Conflicts[:min(len(s.Conflicts), conflictsShown)] {
		names = append(names, line(c, 30))
	}
	text := "Conflicts with " + strings.Join(names, ", ")
	if n := len(s.Conflicts) - conflictsShown; n > 0 {
		text += " and " + Count(n) + " more"
	}
	return mark{text, "warn", "warn"}
}

// versionMark returns a coloured mark that says whether the version is in use.
func versionMark(v descriptor.Set) mark {
	if v.Current {
		return mark{"In use", "check", "good"}
	}
	return mark{"Older version", "clock", ""}
}

// typeTitle returns the last part of the name of a type.
func typeTitle(name string) string {
	_, last := typeParts(name)
	return cmp.Or(last, "Type")
}

// foundIn describes what a search found: the field whose name matches, or the set that contains the
// type.
func foundIn(h descriptor.Hit) string {
	if h.Field == "" {
		return "set " + line(h.Set, 60)
	}
	return "field " + line(h.Field, 80)
}
