package view

import (
	"cmp"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// SchemaVersion is one version of a descriptor set.
type SchemaVersion struct {
	Name, Version string
	Source        deadletter.SchemaSource
	Detail, By    string
	At            time.Time // when the version became the newest one or was removed
	Types, Files  int
	Current       bool
}

// SchemaSet is a descriptor set that is in use.
type SchemaSet struct {
	SchemaVersion
	Older     int      // the number of older versions
	Conflicts []string // the sets that define one of the same types differently
}

// SetDetail describes one set in detail.
type SetDetail struct {
	Name      string
	Versions  []SchemaVersion // the newest version comes first; empty if no such set is in use
	Types     []string        // the types of the newest version
	Conflicts []ChangedType
}

// ChangedType is a type that another set defines differently. It names that set and the
// differences.
type ChangedType struct {
	Type, Set   string
	Differences []string
	More        int
}

// TypeSearch contains a searched word and the types and fields whose names contain it.
type TypeSearch struct {
	Word string
	Hits []TypeHit
	More bool
}

// TypeHit is a type or one of its fields that matches a search.
type TypeHit struct{ Type, Set, Field, Is string }

// TypeSource is the definition of a message type as .proto text.
type TypeSource struct {
	Name        string
	Text        string
	Cut         bool
	Definitions []TypeDefinition // the first definition is the one shown
	Queues      []TypedIn        // the queue with the most letters comes first
	Problem     string           // why there is no text
}

// TypeDefinition names where a type is defined: the set, its version and the file.
type TypeDefinition struct {
	Set, Version, File string
	Current            bool
	Fields             int
}

// TypedIn is a queue that has letters of the type that the page shows.
type TypedIn struct {
	Queue   string
	Letters int
	Link    string
}

// origin says where a version of a set of schemas comes from: a file, a server or an upload.
func (v SchemaVersion) origin() string {
	switch v.Source {
	case deadletter.SchemaDirectory:
		return "file " + line(v.Detail, 80)
	case deadletter.SchemaReflection:
		return "server " + line(v.Detail, 80)
	}
	return "upload by " + line(v.By, 60)
}

func (v SchemaVersion) uploaded() bool { return v.Source == deadletter.SchemaUpload }

func (v SchemaVersion) short() string { return v.Version[:min(8, len(v.Version))] }

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
func (v SchemaVersion) versionMark() mark {
	if v.Current {
		return mark{"In use", "check", "good"}
	}
	return mark{"Older version", "clock", ""}
}

func (s SetDetail) title() string { return "Set " + line(s.Name, 200) }

// typeTitle returns the last part of the name of a type.
func typeTitle(name string) string {
	_, last := typeParts(name)
	return cmp.Or(last, "Type")
}

// foundIn describes what a search found: the field whose name matches, or the set that contains the
// type.
func (h TypeHit) foundIn() string {
	if h.Field == "" {
		return "set " + line(h.Set, 60)
	}
	return "field " + line(h.Field, 80)
}
