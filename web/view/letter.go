package view

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// LetterPage contains everything that is known about one letter. Decoded, JSON, Raw, the details of
// Attempts and similar fields need to be set only for the tab that shows them.
type LetterPage struct {
	Shell
	Letter       deadletter.Letter
	Query        string        // query of the list that the letter was opened from; "" = none
	Newer, Older deadletter.ID // the letter's neighbours in that list; "" at the ends
	Position     int           // position in that list, from 1; 0 = unknown
	Of           int           // number of letters in that list
	OfExact      bool
	Left         bool // the letter is no longer in that list
	GroupTitle   string
	ErrorFrom    []Span // source of the error text
	Tab          Tab
	Decoded      Decoded
	JSON         JSON
	Raw          Raw
	Attempts     []deadletter.Attempt // oldest first
	History      []deadletter.Event   // oldest first
	Siblings     []deadletter.Row     // copies of the same message that died in other queues
	Candidates   []Candidate
	Tied         int // number of types that fit equally well and best; the first candidate is one of them
	Types        TypeChoice
	Said         deadletter.Failure // facts that the framework reports besides the error: name, place of failure, tries
	Links        []Link             // to other tools
	Layers       []Span             // description of the body's wrapping, for the facts

	MaskedBody    bool            // the letter's raw bytes are not available
	MaskedHeaders map[string]bool // names of headers and properties with masked values
	MayReveal     bool            // the viewer may reveal masked values
	Revealed      string          // header that is revealed on this page only
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

// Tabs lists the tabs in page order.
var Tabs = []Tab{TabDecoded, TabJSON, TabRaw, TabHeaders, TabTimeline, TabHistory}

// ParseTab parses the tab given in the URL. An unknown value gives TabDecoded.
func ParseTab(s string) Tab {
	if slices.Contains(Tabs, Tab(s)) {
		return Tab(s)
	}
	return TabDecoded
}

// Candidate is a type that may have produced the body.
type Candidate struct {
	Type   string
	Score  float64 // 0 to 1
	Why    string
	Chosen bool
}

// Decoded is the body as a tree of fields, as text or as bytes.
type Decoded struct {
	Kind  string // what the body is where no type decodes it: "json", "text", "binary", "empty"
	Type  string // the protobuf type; "" = none
	Score string // how well the type fits, for example "0.97, round-trips"; "" when nothing was measured
	From  string // how the type was found, and its schema set
	Title string // title of a warning that the body is not what the letter says; "" when all is well
	Note  string
	Notes []string // additional remarks
	Nodes []TreeNode
	Left  int    // fields left out before rendering
	Text  string // the body if it is text
	Bytes *Hex
}

// JSON is the body as JSON text.
type JSON struct {
	Text  string // indented; "" when there is none
	Notes []string
}

// Raw is the body as bytes.
type Raw struct {
	Layers []RawLayer
	Hex    Hex
	Steps  []ReadStep
}

// RawLayer is the body at one level of its wrapping: the body as received, or the body without its
// base64 or gzip.
type RawLayer struct {
	Name string
	Size int
	Link string
	On   bool
}

// ReadStep is one attempt to read the body.
type ReadStep struct {
	OK   bool
	Text string
}

// bytesURL returns the URL of this page with some bytes of the body marked.
func (p LetterPage) bytesURL(b Bytes) string {
	to := LetterURL(p.Letter.ID, p.Query, p.Tab)
	mark := "?"
	if strings.Contains(to, "?") {
		mark = "&"
	}
	return fmt.Sprintf("%s%sat=%d-%d#at", to, mark, b.From, b.To)
}

// positionWords returns the letter's position in its list, such as "3 of 312".
func (p LetterPage) positionWords() string {
	switch {
	case p.Left:
		return "not in this list now"
	case p.Position > 0:
		return Count(p.Position) + " of " + AtLeast(p.Of, p.OfExact)
	}
	return ""
}

// rowCost returns the approximate number of bytes that the link of a row takes.
func (p LetterPage) rowCost() int { return 2*len(LetterURL(p.Letter.ID, p.Query, p.Tab)) + 75 }

// label returns the name of a tab and the number shown beside it.
func (p LetterPage) label(t Tab) (name string, count int) {
	switch t {
	case TabJSON:
		return "JSON", 0
	case TabRaw:
		return "Raw", 0
	case TabHeaders:
		return "Headers", len(headerRows(p.Letter.Properties))
	case TabTimeline:
		return "x-death timeline", p.deaths()
	case TabHistory:
		return "Attempts and history", len(p.Attempts)
	}
	return "Decoded", 0
}

// deaths returns the number of deaths on the timeline: deaths recorded in the letter's headers, and
// deaths after its attempts.
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

// verbs lists the actions that are possible on the letter now, in button order. The most common
// action comes last.
func (p LetterPage) verbs() []deadletter.Verb {
	var out []deadletter.Verb
	for _, v := range []deadletter.Verb{
		deadletter.VerbHold, deadletter.VerbRelease, deadletter.VerbPurge, deadletter.VerbDiscard, deadletter.VerbRestore, deadletter.VerbReschedule, deadletter.VerbRetryNow, deadletter.VerbRequeue,
	} {
		if v.May(p.Letter.State) && !p.Letter.InBroker(p.Now) {
			out = append(out, v)
		}
	}
	return out
}

// here returns the URL of the page without a tab.
func (p LetterPage) here() string { return LetterURL(p.Letter.ID, p.Query, "") }

// revised returns text about the newest edit of the letter. It says who edited the letter, which
// parts changed, and whether the revision was sent.
func (p LetterPage) revised() string {
	r := p.Letter.Revised
	text := "Edited by " + line(r.By, 60) + ", revision " + strconv.Itoa(r.Number)
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

// These constants limit the long lists on a letter's page, to keep the page under 300 KB. The API
// returns everything.
const (
	timelineShown   = 100
	historyShown    = 100
	candidatesShown = 5
)

// newestFirst returns the newest historyShown entries of a list in reverse order.
func newestFirst[T any](all []T) []T {
	all = slices.Clone(all[max(0, len(all)-historyShown):])
	slices.Reverse(all)
	return all
}

// backTo returns the query of the list that the breadcrumb links to.
func (p LetterPage) backTo() string {
	if p.Query != "" {
		return p.Query
	}
	return "state:dead"
}

// headersChanged reports whether the letter came back with other headers than it had when it first
// arrived.
func (p LetterPage) headersChanged() bool {
	if len(p.Letter.Arrived.Headers) == 0 {
		return false
	}
	first, err1 := p.Letter.Properties.Encode()
	last, err2 := p.Letter.Arrived.Encode()
	return err1 == nil && err2 == nil && !bytes.Equal(first, last)
}

func heldTone(s deadletter.State) string {
	if s == deadletter.StateHeld {
		return "warn"
	}
	return ""
}

func neighbourRel(name string) string {
	if name == "left" {
		return "prev"
	}
	return "next"
}

func attemptDetail(a deadletter.Attempt) string {
	detail := a.Detail
	if a.Sends > 1 {
		detail = "sent " + Count(a.Sends) + " times with the same token. " + detail
	}
	return detail
}

// cameBack describes how the letter died again after an attempt. It is empty if the letter did not
// die again.
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

// waited returns the time that a letter had waited before attempt i. The time counts from the
// letter's return, from the end of the previous attempt, or from the letter's receipt. The result
// is empty if the time is unknown.
func (p LetterPage) waited(i int) string {
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

func dueWord(s deadletter.State) string {
	if s == deadletter.StateRequeued {
		return "Watched"
	}
	return "Due"
}

func unknownIf(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}

// exchangeName returns the name of an exchange, or "(default)" for the default exchange.
func exchangeName(name string) string {
	if name == "" {
		return "(default)"
	}
	return line(name, 255)
}

// fieldTerm returns a term of the query language for one value, quoted if necessary.
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
