package view

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// EditPage is the page on which a letter is edited before it is requeued.
type EditPage struct {
	Shell
	Letter     deadletter.ID
	Query      string // of the list that it was opened from
	Group      deadletter.GroupID
	GroupTitle string
	Others     int // further letters of the group that can be requeued
	Queue      string

	Refusal  string // why nothing of it can be edited; "" when something can
	Bytes    string // why the body cannot be edited, and is sent as it is; "" when it can
	Type     string
	Syntax   string // "JSON" or "text"
	Text     string
	Wrapped  string // "base64 of gzip, as received"; "" when it is not wrapped
	Masked   bool   // something in the text is masked
	Revision int    // that the text was made of, 0 = as received
	Newest   int    // revision of the letter now
	Restored bool   // it may have been sent since the copy that the store was restored from
	Doubt    bool   // its last attempt may have reached its queue

	Problem string // why nothing was sent
	Mistake *EditMistake
	Diff    []DiffLine
	Changed int
	Checks  []EditCheck
	Checked bool // the text was looked at

	Properties []EditField
	Headers    []EditField
	Whole      []WholeHeader // headers that have no field
	Fixed      []string      // headers whose names are masked, which stay
	More       int           // headers that are not listed
	Reason     string
	Mistakes   map[string]string // what is wrong in a field, by its name
	Key        string
}

// EditMistake is what is wrong in the text.
type EditMistake struct {
	Line, Column int // from 1; 0 = nowhere in particular
	Text         string
}

// EditCheck is something that was found out about the edited body.
type EditCheck struct {
	OK   bool
	Text string
}

// EditField is a property or a header that can be edited.
type EditField struct {
	Name, Label, Value string
	Was                string // what it shows of the letter
	Kind               string // AMQP type of a header
	Removed            bool
	Mistake            string
}

// WholeHeader is a header that is no text of one line, or a long one: it stays, goes, or is cut.
type WholeHeader struct {
	Name, Kind string
	Size       int  // of the value, in bytes
	Cuts       bool // it is a text that can be cut
	Removed    bool
	Cut        bool
}

// Key names it in the form, whatever its name is.
func (h WholeHeader) Key() string {
	sum := sha256.Sum256([]byte(h.Name))
	return hex.EncodeToString(sum[:8])
}

// HeaderCut is how many bytes are left of a header that is cut.
const HeaderCut = 4 << 10

// DiffLine is one line of a difference.
type DiffLine struct {
	Op    string // "same", "removed", "added" or "left out"
	Spans []DiffSpan
	Left  int // lines that are left out
}

// DiffSpan is a part of a line.
type DiffSpan struct {
	Text    string
	Changed bool
}

// EditURL is the page on which a letter is edited: its newest revision, or what was received.
func EditURL(id deadletter.ID, q string, received bool) string {
	from := ""
	if received {
		from = "0"
	}
	return address("/letters/"+url.PathEscape(string(id))+"/edit", "q", carried(q), "from", from)
}

// again is the page with the text as it was.
func (p EditPage) again() string {
	return EditURL(p.Letter, p.Query, p.Newest > 0 && p.Revision == 0)
}

// from names what the text was made of.
func (p EditPage) from() string {
	if p.Revision == 0 {
		return "as received"
	}
	return "revision " + strconv.Itoa(p.Revision)
}

func (p EditPage) rows() string {
	return strconv.Itoa(min(max(strings.Count(p.Text, "\n")+1, 8), 30))
}

func (p EditPage) changedWords() string {
	return Number(p.Changed, "field", "fields")
}

// hint says what the text leaves out.
func (p EditPage) hint() string {
	switch {
	case p.Masked:
		return "You may reveal, so you may edit. Masked values (" + mask + ") stay as stored unless you replace them."
	case p.Syntax == "JSON" && p.Type != "":
		return "Names and values as in the JSON tab. Untouched fields keep their exact bytes, including unknown fields."
	}
	return ""
}

const mask = "••••"

// wrong ties a field to its mistake.
func (p EditPage) wrong(name string) templ.Attributes {
	return fieldWrong("edit-"+name, p.Mistakes[name])
}

// invalid ties the text to its mistake.
func (p EditPage) invalid() templ.Attributes {
	by := "edit-text-mistake"
	if p.hint() != "" {
		by += " edit-text-hint"
	}
	if p.Mistake == nil {
		return templ.Attributes{"aria-describedby": by}
	}
	return templ.Attributes{"aria-describedby": by, "aria-invalid": "true", "autofocus": true}
}

// fieldWrong ties an input to its mistake.
func fieldWrong(id, mistake string) templ.Attributes {
	if mistake == "" {
		return nil
	}
	return templ.Attributes{"aria-invalid": "true", "aria-describedby": id + "-wrong"}
}

// place says where a mistake is.
func (m EditMistake) place() string {
	if m.Line == 0 {
		return ""
	}
	return "Line " + strconv.Itoa(m.Line) + ", column " + strconv.Itoa(m.Column) + ": "
}

// openedHeaders says whether the headers are shown: something in them is edited, or wrong.
func (p EditPage) openedHeaders() bool {
	for _, list := range [][]EditField{p.Properties, p.Headers} {
		for _, f := range list {
			if f.Mistake != "" || f.Removed || f.Value != f.Was {
				return true
			}
		}
	}
	for _, h := range p.Whole {
		if h.Removed || h.Cut {
			return true
		}
	}
	return p.Mistakes["headers"] != "" || p.Bytes != ""
}
