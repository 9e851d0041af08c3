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
	At            time.Time // when it became the newest, or was removed
	Types, Files  int
	Current       bool
}

// SchemaSet is a set in use.
type SchemaSet struct {
	SchemaVersion
	Older     int      // versions
	Conflicts []string // sets that define one of its types differently
}

// SetDetail is a set at length.
type SetDetail struct {
	Name      string
	Versions  []SchemaVersion // newest first; none: there is no such set in use
	Types     []string        // of the newest
	Conflicts []ChangedType
}

// ChangedType is what is different about a type, and in which set.
type ChangedType struct {
	Type, Set   string
	Differences []string
	More        int
}

// TypeSearch is a word, and the types and fields with that word in their names.
type TypeSearch struct {
	Word string
	Hits []TypeHit
	More bool
}

// TypeHit is a type, or a field of it.
type TypeHit struct{ Type, Set, Field, Is string }

// TypeSource is a type as .proto.
type TypeSource struct {
	Name        string
	Text        string
	Cut         bool
	Definitions []TypeDefinition // the first is shown
	Queues      []TypedIn        // most letters first
	Problem     string           // why there is none
}

// TypeDefinition is where a type is defined.
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

// from says where a version came from.
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

// mark is the state of a set in use.
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

// versionMark is the state of one version.
func (v SchemaVersion) versionMark() mark {
	if v.Current {
		return mark{"In use", "check", "good"}
	}
	return mark{"Older version", "clock", ""}
}

func (s SetDetail) title() string { return "Set " + line(s.Name, 200) }

// typeTitle is the last part of a type's name.
func typeTitle(name string) string {
	_, last := typeParts(name)
	return cmp.Or(last, "Type")
}

// is says what a hit is: a field of a type, or in which set the type is.
func (h TypeHit) is() string {
	if h.Field == "" {
		return "set " + line(h.Set, 60)
	}
	return "field " + line(h.Field, 80)
}
