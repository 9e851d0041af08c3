package view

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// SchemasPage says how far the stored letters can be read, by which types, and where those come
// from.
type SchemasPage struct {
	Shell
	Library   bool     // descriptor sets can be listed and changed here
	Types     int      // that are registered
	Problems  []string // what of the schemas cannot be read, and why
	Coverage  Coverage
	Anew      deadletter.ReadingAnew
	Unmatched UnmatchedQueues
	Added     []deadletter.AddedCount // most letters first
	Queues    []TypedQueue            // of this page, most letters first
	Total     int                     // of queues
	From      int                     // how many stand on the pages before
	PageSize  int
	Several   bool // brokers or vhosts: a queue is not named by its name alone
	Picks     []deadletter.Pick
	Bindings  []TypeBinding // of the configuration
	Names     []string      // of registered types, for the forms
	Unnamed   int           // registered types that are not among Names
	Bind      BindForm
	Sets      []SchemaSet // in use, by name
	Removed   []SchemaVersion
	Directory string // that is watched, "" = none
	Servers   []deadletter.SchemaServer
	Set       *SetDetail // nil: not asked for
	Find      TypeSearch
	Type      *TypeSource // nil: not asked for
	Upload    UploadForm
	Said      string // what was changed a moment ago; "" = nothing
}

// BoundWords says what a new binding does.
func BoundWords(p deadletter.Pick) string {
	text := "Letters of " + line(p.Queue, 255)
	if p.Key != "" {
		text += " with the routing key " + line(p.Key, 255)
	}
	return text + " are read as " + line(p.Type, 255) + " from now on. Those that are stored are read again."
}

// UsedWords says that a set that was uploaded is in use.
func UsedWords(set string) string {
	return "The uploaded file is now the set " + line(set, 100) + ". Letters that it concerns are read again."
}

// TypeBinding ties queues to a type.
type TypeBinding struct{ Queue, Key, Type string }

// asked says whether somebody looks for a type, or at one: then that comes first.
func (p SchemasPage) asked() bool { return p.Find.Word != "" || p.Type != nil }

// BindForm is the form of a binding as it is written.
type BindForm struct{ Queue, Key, Type, Reason, Problem string }

// UploadForm is the form of an upload as it was sent, without its file.
type UploadForm struct{ Name, Problem string }

// What the page shows at most, so that it stays under 300 KB; the API has all, and search finds
// what is left out.
const (
	closestShown   = 3
	queueTypes     = 4
	picksShown     = 12
	setsShown      = 20
	conflictsShown = 3  // names in the state of a set
	versionsShown  = 20 // of one set
	setTypes       = 50 // types of one set
	conflictTypes  = 6
	differences    = 4 // of one type
	hitsShown      = 20
	definedIn      = 6
	usedBy         = 8
	typeLinked     = 100   // bytes of a name that is a link
	protoShown     = 6_000 // bytes of a type
	problemsShown  = 10
	removedShown   = 10
	namesOffered   = 300
	bytesOffered   = 10_000 // of their names
)

// NamesOffered are the types that a form offers, and how many it leaves out.
func NamesOffered(all []string) (some []string, left int) {
	n := 0
	for i, name := range all {
		if n += len(name) + 20; i == namesOffered || n > bytesOffered {
			return all[:i], len(all) - i
		}
	}
	return all, 0
}

// SchemasURL is the page with the queues after the first so many.
func SchemasURL(from int) string {
	if from <= 0 {
		return "/schemas"
	}
	return "/schemas?from=" + strconv.Itoa(from) + "#queues"
}

// TypeURL is where a type is defined.
func TypeURL(name string) string {
	return "/schemas?" + url.Values{"type": {name}}.Encode() + "#type"
}

// SetURL is the page with one set at length.
func SetURL(name string) string { return "/schemas?" + url.Values{"set": {name}}.Encode() + "#set" }

// bindURL is the form of a binding, filled in.
func bindURL(queue, key, typ string) string {
	return address("/schemas", "bind", queue, "key", key, "as", typ) + "#bind"
}

// AddCommand adds what buf compiles as a set.
const AddCommand = "buf build -o - | dlo types add --name notify -"

func (p SchemasPage) sum() string {
	if len(p.Sets) == 0 {
		return "No message types are registered."
	}
	return Number(p.Types, "message type", "message types") + " in " + Number(len(p.Sets), "set", "sets")
}

// pickWord says what a pick is for.
func pickWord(p deadletter.Pick) string {
	switch {
	case p.Letter != "":
		return "letter " + p.Letter.Short()
	case p.Group != 0:
		return "group " + p.Group.String()
	}
	return "queue " + queueName(p.Queue)
}

// removePick is where a pick is taken away.
func removePick(p deadletter.Pick) string {
	return "/schemas/picks/" + strconv.FormatInt(p.ID, 10) + "/remove"
}

// problemLines are a problem of several lines, such as the mistakes of a .proto file.
func problemLines(text string) []string {
	var out []string
	for l := range strings.Lines(deadletter.Cut(text, 4000)) {
		if l = strings.TrimSpace(l); l != "" && len(out) < problemsShown {
			out = append(out, line(l, 300))
		}
	}
	return out
}
