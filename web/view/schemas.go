package view

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// SchemasPage shows how many stored letters can be decoded, with which message types, and from
// which sources the types come.
type SchemasPage struct {
	Shell
	Types     int        // the number of registered types
	Problems  []string   // the schemas that cannot be read, each with the reason
	All       TypedQueue // the letters of all queues together
	Rereading deadletter.RereadProgress
	Added     []deadletter.AddedCount // the field with the most letters comes first
	Queues    []TypedQueue            // the queues of this page; the one with the most letters comes first
	Total     int                     // the number of queues on all pages
	From      int                     // the number of queues on earlier pages
	PageSize  int
	Several   bool // there are several brokers or vhosts, so the name of a queue alone is ambiguous
	Picks     []deadletter.Pick
	Bindings  []deadletter.Binding // the bindings from the configuration
	Names     []string             // the registered types for the forms
	Unnamed   int                  // the number of registered types that are not in Names
	Bind      BindForm
	Sets      []SchemaSet // the sets in use, sorted by name
	Removed   []deadletter.SchemaVersion
	Directory string // the directory that dlo watches, or ""
	Servers   []deadletter.SchemaServer
	Set       *SetDetail // nil if it was not requested
	Find      TypeSearch
	Type      *TypeSource // nil if it was not requested
	Upload    UploadForm
	Said      string // the change that was just made, or ""
}

// BoundWords describes the effect of a new binding in a sentence.
func BoundWords(p deadletter.Pick) string {
	text := "Letters of " + line(p.Queue, 255)
	if p.Key != "" {
		text += " with the routing key " + line(p.Key, 255)
	}
	if p.Path != "" {
		text = "Messages in the member " + line(p.Path, 255) + " of " + strings.ToLower(text[:1]) + text[1:]
	}
	return text + " are read as " + line(p.Type, 255) + " from now on. Those that are stored are read again."
}

// UsedWords returns the sentence that says that an uploaded set is in use.
func UsedWords(set string) string {
	return "The uploaded file is now the set " + line(set, 100) + ". Letters that it concerns are read again."
}

// searched reports whether the reader searched for types or opened one type. In that case, the page
// begins with the search or the type.
func (p SchemasPage) searched() bool { return p.Find.Word != "" || p.Type != nil }

// BindForm contains the form for a binding as a person typed it.
type BindForm struct{ Queue, Key, Path, Type, Reason, Problem string }

// UploadForm contains the form for an upload as it was sent, without the file.
type UploadForm struct{ Name, Problem string }

// These constants limit the page, so that it stays under 300 KB. The API returns everything, and
// the search finds what the page omits.
const (
	queueTypes     = 4
	picksShown     = 12
	setsShown      = 20
	conflictsShown = 3  // the maximum number of names in the state of a set
	versionsShown  = 20 // the maximum number of versions of one set
	setTypes       = 50 // the maximum number of types of one set
	conflictTypes  = 6
	differences    = 4 // the maximum number of differences of one type
	hitsShown      = 20
	definedIn      = 6
	usedBy         = 8
	typeLinked     = 100   // the maximum size of a name that is a link, in bytes
	protoShown     = 6_000 // the maximum size of the text of a type in bytes
	problemsShown  = 10
	removedShown   = 10
	namesOffered   = 300
	bytesOffered   = 10_000 // the maximum total size of their names in bytes
)

// NamesOffered returns the types that a form offers. It also returns the number of types that it
// omits.
func NamesOffered(all []string) (some []string, left int) {
	n := 0
	for i, name := range all {
		if n += len(name) + 20; i == namesOffered || n > bytesOffered {
			return all[:i], len(all) - i
		}
	}
	return all, 0
}

// SchemasURL returns the URL of one page of the list of queues. The parameter "offset" is the
// number of queues on earlier pages.
func SchemasURL(offset int) string {
	if offset <= 0 {
		return "/schemas"
	}
	return "/schemas?from=" + strconv.Itoa(offset) + "#queues"
}

// TypeURL returns the URL of the definition of a type.
func TypeURL(name string) string {
	return "/schemas?" + url.Values{"type": {name}}.Encode() + "#type"
}

// SetURL returns the URL of the page of schemas with one set in detail.
func SetURL(name string) string { return "/schemas?" + url.Values{"set": {name}}.Encode() + "#set" }

// bindURL returns the URL of the form for a binding with the given values filled in.
func bindURL(queue, key, typ string) string {
	return address("/schemas", "bind", queue, "key", key, "as", typ) + "#bind"
}

// AddCommand is a command that sends the output of `buf build` to dlo. dlo adds it as a set of
// message types.
const AddCommand = "buf build -o - | dlo types add --name notify -"

func (p SchemasPage) countWords() string {
	if len(p.Sets) == 0 {
		return "No message types are registered."
	}
	return Number(p.Types, "message type", "message types") + " in " + Number(len(p.Sets), "set", "sets")
}

// pickWord describes what a picked type applies to, for example a letter or a group.
func pickWord(p deadletter.Pick) string {
	switch {
	case p.Letter != "":
		return "letter " + p.Letter.Short()
	case p.Group != 0:
		return "group " + p.Group.String()
	}
	return "queue " + queueName(p.Queue)
}

// removePick returns the URL to which a form sends the removal of a picked type.
func removePick(p deadletter.Pick) string {
	return "/schemas/picks/" + strconv.FormatInt(p.ID, 10) + "/remove"
}

// problemLines splits the text of a problem into lines. The errors in a .proto file, for example,
// take several lines.
func problemLines(text string) []string {
	var out []string
	for l := range strings.Lines(deadletter.Cut(text, 4000)) {
		if l = strings.TrimSpace(l); l != "" && len(out) < problemsShown {
			out = append(out, line(l, 300))
		}
	}
	return out
}
