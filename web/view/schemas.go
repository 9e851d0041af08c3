package view

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// SchemasPage shows how many stored letters can be decoded, with which types, and from which
// sources the types come.
type SchemasPage struct {
	Shell
	Library   bool     // descriptor sets can be listed and changed here
	Types     int      // registered types
	Problems  []string // the schemas that cannot be read, with reasons
	Coverage  Coverage
	Rereading deadletter.RereadProgress
	Unmatched UnmatchedQueues
	Added     []deadletter.AddedCount // most letters first
	Queues    []TypedQueue            // queues of this page, most letters first
	Total     int                     // number of queues on all pages
	From      int                     // number of queues on the pages before
	PageSize  int
	Several   bool // several brokers or vhosts: a queue name alone is ambiguous
	Picks     []deadletter.Pick
	Bindings  []TypeBinding // from the configuration
	Names     []string      // registered types, for the forms
	Unnamed   int           // number of registered types missing from Names
	Bind      BindForm
	Sets      []SchemaSet // sets in use, by name
	Removed   []SchemaVersion
	Directory string // directory that dlo watches; "" = none
	Servers   []deadletter.SchemaServer
	Set       *SetDetail // nil: not requested
	Find      TypeSearch
	Type      *TypeSource // nil: not requested
	Upload    UploadForm
	Said      string // the change made a moment ago; "" = none
}

// BoundWords describes the effect of a new binding.
func BoundWords(p deadletter.Pick) string {
	text := "Letters of " + line(p.Queue, 255)
	if p.Key != "" {
		text += " with the routing key " + line(p.Key, 255)
	}
	return text + " are read as " + line(p.Type, 255) + " from now on. Those that are stored are read again."
}

// UsedWords returns the sentence that reports that an uploaded set is in use.
func UsedWords(set string) string {
	return "The uploaded file is now the set " + line(set, 100) + ". Letters that it concerns are read again."
}

// TypeBinding binds queues to a type.
type TypeBinding struct{ Queue, Key, Type string }

// asked reports whether the page shows a search for types, or one type. The page then shows the
// search or the type first.
func (p SchemasPage) asked() bool { return p.Find.Word != "" || p.Type != nil }

// BindForm is the binding form as typed.
type BindForm struct{ Queue, Key, Type, Reason, Problem string }

// UploadForm is the upload form as sent, without its file.
type UploadForm struct{ Name, Problem string }

// These constants limit the page, to keep it under 300 KB. The API returns everything, and the
// search finds the parts that the page leaves out.
const (
	closestShown   = 3
	queueTypes     = 4
	picksShown     = 12
	setsShown      = 20
	conflictsShown = 3  // maximum number of names in a set's state
	versionsShown  = 20 // of one set
	setTypes       = 50 // maximum number of types of one set
	conflictTypes  = 6
	differences    = 4 // of one type
	hitsShown      = 20
	definedIn      = 6
	usedBy         = 8
	typeLinked     = 100   // maximum bytes of a name that is a link
	protoShown     = 6_000 // maximum bytes of a type
	problemsShown  = 10
	removedShown   = 10
	namesOffered   = 300
	bytesOffered   = 10_000 // of their names
)

// NamesOffered returns the types that a form offers, and the number of types that are left out.
func NamesOffered(all []string) (some []string, left int) {
	n := 0
	for i, name := range all {
		if n += len(name) + 20; i == namesOffered || n > bytesOffered {
			return all[:i], len(all) - i
		}
	}
	return all, 0
}

// SchemasURL returns the URL of a page of the list of queues. The argument "from" is the number of
// queues on earlier pages.
func SchemasURL(from int) string {
	if from <= 0 {
		return "/schemas"
	}
	return "/schemas?from=" + strconv.Itoa(from) + "#queues"
}

// TypeURL returns the URL of a type's definition.
func TypeURL(name string) string {
	return "/schemas?" + url.Values{"type": {name}}.Encode() + "#type"
}

// SetURL returns the URL of the page with one set in detail.
func SetURL(name string) string { return "/schemas?" + url.Values{"set": {name}}.Encode() + "#set" }

// bindURL returns the URL of a binding form with the given values filled in.
func bindURL(queue, key, typ string) string {
	return address("/schemas", "bind", queue, "key", key, "as", typ) + "#bind"
}

// AddCommand is the command that adds the output of buf build as a set.
const AddCommand = "buf build -o - | dlo types add --name notify -"

func (p SchemasPage) sum() string {
	if len(p.Sets) == 0 {
		return "No message types are registered."
	}
	return Number(p.Types, "message type", "message types") + " in " + Number(len(p.Sets), "set", "sets")
}

// pickWord describes what a pick applies to.
func pickWord(p deadletter.Pick) string {
	switch {
	case p.Letter != "":
		return "letter " + p.Letter.Short()
	case p.Group != 0:
		return "group " + p.Group.String()
	}
	return "queue " + queueName(p.Queue)
}

// removePick returns the URL that removes a pick.
func removePick(p deadletter.Pick) string {
	return "/schemas/picks/" + strconv.FormatInt(p.ID, 10) + "/remove"
}

// problemLines splits a problem with several lines, such as the errors in a .proto file.
func problemLines(text string) []string {
	var out []string
	for l := range strings.Lines(deadletter.Cut(text, 4000)) {
		if l = strings.TrimSpace(l); l != "" && len(out) < problemsShown {
			out = append(out, line(l, 300))
		}
	}
	return out
}
