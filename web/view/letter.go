package view

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/payload"
	"github.com/deadletteroffice/dlo/internal/rules"
)

// LetterPage contains everything that is known about one letter. Fields that only one tab shows,
// such as Decoded, JSON, Raw, Steps and the details of Attempts, need to be set only for that tab.
type LetterPage struct {
	Shell
	Letter       deadletter.Letter
	Query        string        // the query of the list from which the letter was opened, or ""
	Newer, Older deadletter.ID // the letters next to this letter in that list, or "" at the ends
	Position     int           // the position in that list from 1; 0 means unknown
	Of           int           // the number of letters in that list
	OfExact      bool
	Left         bool // the letter is no longer in that list
	GroupTitle   string
	ErrorFrom    []Span // where the text of the error comes from
	Tab          Tab
	Decoded      Decoded
	JSON         JSON
	Raw          Raw
	Attempts     []deadletter.Attempt // the oldest comes first
	History      []deadletter.Event   // the oldest comes first
	EditDiff     []payload.DiffLine   // what the edits changed in the payload
	Explained    bool                 // the reader may see which of the rules in use apply to the letter
	Steps        []rules.Step         // the rules in use in their order, with the default last
	Siblings     []deadletter.Row     // copies of the same message that died in other queues
	Candidates   []payload.Match
	Chosen       string // the type of the body, or ""
	Tied         int    // how many types fit equally well and best; the first candidate is one of them
	Types        TypeChoice
	// what the framework reports besides the error: its name, the place of the failure, the tries
	Said   deadletter.Failure
	Links  []Link // links to other tools
	Layers []Span // describes how the body is wrapped, for the list of facts

	MaskedBody    bool            // the raw bytes of the letter are not available
	MaskedHeaders map[string]bool // the names of the headers and properties with masked values
	MayReveal     bool            // the reader may see masked values
	Revealed      string          // the header that is shown unmasked on this page only
	RevealedNode  string          // the position of the node that is shown unmasked on this page only
}

// Link links a letter to another tool.
type Link struct{ Name, URL string }

// Tab is one view of a letter.
type Tab string

const (
	TabDecoded  Tab = "decoded"
	TabJSON     Tab = "json"
	TabRaw      Tab = "raw"
	TabHeaders  Tab = "headers"
	TabTimeline Tab = "timeline"
	TabHistory  Tab = "history"
)

// Tabs lists the tabs of the page of a letter, in the order of the page.
var Tabs = []Tab{TabDecoded, TabJSON, TabRaw, TabHeaders, TabTimeline, TabHistory}

// ParseTab parses the tab given in the URL. An unknown value gives TabDecoded.
func ParseTab(s string) Tab {
	if slices.Contains(Tabs, Tab(s)) {
		return Tab(s)
	}
	return TabDecoded
}

// Decoded shows the body as a tree of fields, as text or as bytes.
type Decoded struct {
	Kind  string // what a body without a type is: "json", "text", "binary" or "empty"
	Type  string // the protobuf type, or ""
	From  string // how the type was found, and the schema set of the type
	Title string // the title of a warning that the body is not what the letter says, or ""
	Note  string
	// the body is a message and has no schema, which is no fault of the letter
	NoSchema bool
	Notes    []string // further remarks
	Nodes    []payload.Node
	Text     string // the body if it is text
	Bytes    *Hex
}

// JSON shows the body as JSON text.
type JSON struct {
	Text  string // indented; "" if the body cannot be shown as JSON
	Notes []string
}

// Raw shows the body as bytes.
type Raw struct {
	Layers []RawLayer
	Hex    Hex
	Steps  []payload.Step
}

// RawLayer is one step of unwrapping a body. The first step is the body as received. Each further
// step removes one wrapping, such as base64 or gzip.
type RawLayer struct {
	Name string
	Size int
	Link string
	On   bool
}

// bytesURL returns the URL of the page of the letter with some bytes of the body marked.
func (p LetterPage) bytesURL(b payload.Range) string {
	to := LetterURL(p.Letter.ID, p.Query, p.Tab)
	mark := "?"
	if strings.Contains(to, "?") {
		mark = "&"
	}
	return fmt.Sprintf("%s%sat=%d-%d#at", to, mark, b.From, b.To)
}

// positionWords returns the position of the letter in its list, for example "3 of 312".
func (p LetterPage) positionWords() string {
	switch {
	case p.Left:
		return "not in this list now"
	case p.Position > 0:
		return Count(p.Position) + " of " + AtLeast(p.Of, p.OfExact)
	}
	return ""
}

// tree returns an empty tree for the fields of the letter. It has room for the given number of
// bytes of HTML. Each row also costs what its link takes.
func (p LetterPage) tree(room int) tree {
	link := 2*len(LetterURL(p.Letter.ID, p.Query, p.Tab)) + 75
	return tree{room: room, extra: link, errorText: p.Letter.Error, revealed: p.RevealedNode}
}

// label returns the name of a tab, and the number shown beside it.
func (p LetterPage) label(t Tab) (name string, count int) {
	switch t {
	case TabHeaders:
		count = len(headerRows(p.Letter.Properties))
	case TabTimeline:
		count = p.deaths()
	case TabHistory:
		count = len(p.Attempts)
	}
	return tabNames[t], count
}

var tabNames = map[Tab]string{
	TabDecoded:  "Decoded",
	TabJSON:     "JSON",
	TabRaw:      "Raw",
	TabHeaders:  "Headers",
	TabTimeline: "x-death timeline",
	TabHistory:  "Attempts and history",
}

// deaths returns how often the letter died, for the timeline. It counts the deaths in the headers
// of the letter, and the deaths after dlo had sent the letter back.
func (p LetterPage) deaths() int {
	first, _ := deadletter.ReadDeaths(p.Letter.Properties.Headers, deadletter.NoOrigin)
	n := len(first)
	for _, a := range p.Attempts {
		if a.Back != nil {
			n++
		}
	}
	return n
}

// verbs returns the actions that are possible on the letter now, in the order of the buttons. The
// most common action comes last.
func (p LetterPage) verbs() []deadletter.Verb {
	var out []deadletter.Verb
	for _, v := range []deadletter.Verb{
		deadletter.VerbHold, deadletter.VerbRelease, deadletter.VerbPurge, deadletter.VerbDiscard,
		deadletter.VerbRestore, deadletter.VerbReschedule, deadletter.VerbRetryNow, deadletter.VerbRequeue,
	} {
		if v.May(p.Letter.State) && !p.Letter.InBroker(p.Now) {
			out = append(out, v)
		}
	}
	return out
}

// pageURL returns the URL of the page of the letter without a tab.
func (p LetterPage) pageURL() string { return LetterURL(p.Letter.ID, p.Query, "") }

// revised returns a sentence about the newest edit of the letter. It says who edited the letter,
// which parts changed, and whether the revision was sent.
func (p LetterPage) revised(ctx context.Context) string {
	r := p.Letter.Revised
	text := "Edited by " + person(ctx, r.By) + ", revision " + strconv.Itoa(r.Number)
	if r.Changes != "" {
		text += " (" + line(r.Changes, 200) + ")"
	}
	for _, a := range p.Attempts {
		if a.Revision == r.Number {
			return text + ", sent as attempt " + strconv.Itoa(a.Number) + ":"
		}
	}
	return text + ", not sent yet:"
}

// These constants limit long lists, so that the page of a letter stays under 300 KB. The API
// returns everything.
const (
	timelineShown   = 100
	historyShown    = 100
	candidatesShown = 5
)

// newestFirst returns the last historyShown entries of a list in reverse order.
func newestFirst[T any](all []T) []T {
	all = slices.Clone(all[max(0, len(all)-historyShown):])
	slices.Reverse(all)
	return all
}

// backTo returns the query of the list to which the page links back.
func (p LetterPage) backTo() string {
	return cmp.Or(p.Query, "state:dead")
}

// headersChanged reports whether the headers of the letter differ from those with which it first
// arrived.
func (p LetterPage) headersChanged() bool {
	if len(p.Letter.Arrived.Headers) == 0 {
		return false
	}
	first, err1 := p.Letter.Properties.Encode()
	last, err2 := p.Letter.Arrived.Encode()
	return err1 == nil && err2 == nil && !bytes.Equal(first, last)
}

func attemptDetail(a deadletter.Attempt) string {
	detail := a.Detail
	if a.Sends > 1 {
		detail = "sent " + Count(a.Sends) + " times with the same token. " + detail
	}
	return detail
}

// cameBack describes how the letter died again after an attempt. It returns "" if the letter did
// not die again.
func cameBack(a deadletter.Attempt) string {
	if a.Back == nil {
		return ""
	}
	text := "died in " + queueName(a.Back.Queue) + ", reason " + line(a.Back.Reason, 60)
	if d := a.Back.At.Sub(a.At); !a.At.IsZero() && !a.Back.At.IsZero() && d >= 0 {
		text += ", " + Duration(d) + " after it was sent"
	}
	if a.Back.Copies > 0 {
		text += ", and " + Number(a.Back.Copies, "more copy", "more copies")
	}
	return text
}

// waitBefore returns how long the letter waited before the attempt with index i. Before the first
// attempt, the wait began when dlo received the letter. Before a later attempt, the wait began when
// the letter came back from the previous attempt. If the letter did not come back, the wait began
// when the previous attempt ended. If the time is unknown, the result is "".
func (p LetterPage) waitBefore(i int) string {
	since := p.Letter.ReceivedAt
	if i > 0 {
		since = p.Attempts[i-1].ClosedAt
		if b := p.Attempts[i-1].Back; b != nil {
			since = b.At
		}
	}
	d := p.Attempts[i].At.Sub(since)
	if since.IsZero() || p.Attempts[i].At.IsZero() || d < 0 {
		return ""
	}
	return Duration(d)
}

func unknownIf(s string) string { return cmp.Or(s, "unknown") }

// exchangeName returns the name of an exchange, or "(default)" for the default exchange.
func exchangeName(name string) string { return cmp.Or(line(name, 255), "(default)") }

// fieldTerm returns the term of the query language that selects one value of a field. It quotes the
// value if necessary.
func fieldTerm(field, value string) string {
	if value != "" && !strings.ContainsAny(value, "\", \t\r\n") {
		return field + ":" + value
	}
	return field + `:"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(value) + `"`
}

func kindWord(kind string) string {
	switch kind {
	case "json":
		return "JSON"
	case "text":
		return "Text"
	case "empty":
		return "The body is empty"
	}
	return "Not decoded by a type"
}
