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
	At            time.Time // when it became the newest version or was removed
	Types, Files  int
	Current       bool
}

// SchemaSet is a descriptor set in use.
type SchemaSet struct {
	SchemaVersion
	Older     int      // versions
	Conflicts []string // sets with a different definition of one of its types
}

// SetDetail is a set in detail.
type SetDetail struct {
	Name      string
	Versions  []SchemaVersion // newest first; empty: no such set is in use
	Types     []string        // types of the newest version
	Conflicts []ChangedType
}

// ChangedType describes how the definition of a type differs, and in which set.
type ChangedType struct {
	Type, Set   string
	Differences []string
	More        int
}

// TypeSearch is a search word with the types and fields whose names contain the word.
type TypeSearch struct {
	Word string
	Hits []TypeHit
	More bool
}

// TypeHit is a type or one of its fields that matches a search.
type TypeHit struct{ Type, Set, Field, Is string }

// TypeSource is the definition of a type as .proto text.
type TypeSource struct {
	Name        string
	Text        string
	Cut         bool
	Definitions []TypeDefinition // the first one is shown
	Queues      []TypedIn        // most letters first
	Problem     string           // why there is no text
}

// TypeDefinition is a place where a type is defined.
type TypeDefinition struct {
	Set, Version, File string
	Current            bool
	Fields             int
}

// TypedIn is a queue with letters of a type.
type TypedIn struct {
	Queue   string
	Letters int
	Link    string
}

// from returns the source of a version.
func (v SchemaVersion) from() string {
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

// mark returns the state of a set in use.
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

// versionMark returns the state of one version.
func (v SchemaVersion) versionMark() mark {
	if v.Current {
		return mark{"In use", "check", "good"}
	}
	return mark{"Older version", "clock", ""}
}

func (s SetDetail) title() string { return "Set " + line(s.Name, 200) }

// typeTitle returns the last part of a type's name.
func typeTitle(name string) string {
	_, last := typeParts(name)
	return cmp.Or(last, "Type")
}

// place returns a description of a hit: the field that matches, or the set that contains the type.
func (h TypeHit) place() string {
	if h.Field == "" {
		return "set " + line(h.Set, 60)
	}
	return "field " + line(h.Field, 80)
}
