package view

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// LetterPage is everything that is known about one letter. Only what the tab shows need be filled
// of Decoded, JSON, Raw, Attempts' details and so on.
type LetterPage struct {
	Shell
	Letter       deadletter.Letter
	Query        string        // of the list that it was opened from; "" = none
	Newer, Older deadletter.ID // its neighbours in that list; "" at the ends
	Position     int           // in that list, from 1; 0 = not known
	Of           int           // letters in that list
	OfExact      bool
	Left         bool // it is not in that list any more
	GroupTitle   string
	ErrorFrom    []Span // where the error text comes from
	Tab          Tab
	Decoded      Decoded
	JSON         JSON
	Raw          Raw
	Attempts     []deadletter.Attempt // oldest first
	History      []deadletter.Event   // oldest first
	Siblings     []deadletter.Row     // copies of the same message that died in other queues
	Candidates   []Candidate
	Tied         int // types that fit as well as the first candidate, and it
	Types        TypeChoice
	Said         deadletter.Failure // what its framework says beside the error: what it is, where it failed, how often it was tried
	Links        []Link             // into other tools
	Layers       []Span             // how the body is wrapped, in words, for the facts

	MaskedBody    bool            // its bytes are not given out as they are
	MaskedHeaders map[string]bool // names of headers and properties with masked values
	MayReveal     bool            // who looks may see what is masked
	Revealed      string          // the header that is shown for once
}

// Link leads from a letter into another tool.
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

// Tabs lists the tabs in the order of the page.
var Tabs = []Tab{TabDecoded, TabJSON, TabRaw, TabHeaders, TabTimeline, TabHistory}

// ParseTab reads a tab as the address carries it; anything else is the first.
func ParseTab(s string) Tab {
	if slices.Contains(Tabs, Tab(s)) {
		return Tab(s)
	}
	return TabDecoded
}

// Candidate is a type that could have written the body.
type Candidate struct {
	Type   string
	Score  float64 // 0 to 1
	Why    string
	Chosen bool
}

// Decoded is the body as a tree of fields, or as text, or as bytes.
type Decoded struct {
	Kind  string // what the body is where no type decodes it: "json", "text", "binary", "empty"
	Type  string // the protobuf type; "" = none
	Score string // how well it fits, for example "0.97, round-trips"; "" when nothing was measured
	From  string // how the type was found, and in which set of schemas
	Title string // of a warning: why the body is not what the letter says it is; "" when all is well
	Note  string
	Notes []string // what else is worth knowing
	Nodes []TreeNode
	Left  int    // fields that were left out before they came here
	Text  string // of a text body
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

// RawLayer is the body at one depth of its wrapping: as received, or with base64 or gzip taken off.
type RawLayer struct {
	Name string
	Size int
	Link string
	On   bool
}

// ReadStep is one thing that was tried to read the body.
type ReadStep struct {
	OK   bool
	Text string
}

// bytesURL is this page with some bytes of the body marked.
func (p LetterPage) bytesURL(b Bytes) string {
	to := LetterURL(p.Letter.ID, p.Query, p.Tab)
	mark := "?"
	if strings.Contains(to, "?") {
		mark = "&"
	}
	return fmt.Sprintf("%s%sat=%d-%d#at", to, mark, b.From, b.To)
}

// positionWords says where the letter is in its list: "3 of 312".
func (p LetterPage) positionWords() string {
	switch {
	case p.Left:
		return "not in this list now"
	case p.Position > 0:
		return Count(p.Position) + " of " + AtLeast(p.Of, p.OfExact)
	}
	return ""
}

// rowCost is about what the link of a row takes of the page.
func (p LetterPage) rowCost() int { return 2*len(LetterURL(p.Letter.ID, p.Query, p.Tab)) + 75 }

// label is the name of a tab on the page, and the number beside it.
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

// deaths counts the deaths on the timeline: those that the letter arrived with, and those that
// attempts ended in.
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

// verbs lists what can be done to the letter now, in the order of its buttons: what most people
// came for stands last.
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

// here is the page's own address without a tab.
func (p LetterPage) here() string { return LetterURL(p.Letter.ID, p.Query, "") }

// revised says what a person made of the letter, and whether that was sent.
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

// What long lists of a letter show at most, so that its page stays under 300 KB; the API has all.
const (
	timelineShown   = 100
	historyShown    = 100
	candidatesShown = 5
)

// newestFirst turns the newest historyShown of a list around.
func newestFirst[T any](all []T) []T {
	all = slices.Clone(all[max(0, len(all)-historyShown):])
	slices.Reverse(all)
	return all
}

// backTo is the query of the list that the breadcrumb leads to.
func (p LetterPage) backTo() string {
	if p.Query != "" {
		return p.Query
	}
	return "state:dead"
}

// again says whether the letter came back with other headers than it first had.
func (p LetterPage) again() bool {
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

// cameBack says how an attempt ended in another death; empty where it has not.
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

// waited says how long a letter lay before attempt i: since it came back, or was received, or the
// attempt before it was over. Empty where that is not known.
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

// exchangeName writes the default exchange in words.
func exchangeName(name string) string {
	if name == "" {
		return "(default)"
	}
	return line(name, 255)
}

// fieldTerm is a term of the query language for one value, in the quotes that it needs.
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
