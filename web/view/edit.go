package view

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/a-h/templ"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/payload"
)

// EditPage is the page for editing a letter before it is requeued.
type EditPage struct {
	Shell
	Letter     deadletter.ID
	Query      string // the query of the list from which the letter was opened
	Group      deadletter.GroupID
	GroupTitle string
	Others     int // the number of other letters of the group that can be requeued
	Queue      string

	Refusal  string // why no part of the letter can be edited, or ""
	Bytes    string // why the body is sent unchanged and cannot be edited, or ""
	Type     string
	Syntax   string // "JSON" or "text"
	Text     string
	Wrapped  string // for example "base64 of gzip, as received"; "" if the body is not wrapped
	Masked   bool   // other people see parts of the letter masked
	Revision int    // the revision on which the text is based; 0 is the body as received
	Newest   int    // the number of the newest revision of the letter
	Restored bool   // the letter may have been sent after the restored copy of the store was made
	Doubt    bool   // the last attempt of the letter may have reached the queue

	Problem string // why nothing was sent
	Mistake *payload.EditError
	Diff    []payload.DiffLine
	Changed int
	Checks  []payload.Check
	Checked bool // the text was checked

	Properties []EditField
	Headers    []EditField
	Whole      []WholeHeader // the headers that have no text field
	More       int           // the number of headers that are not listed
	Reason     string
	Mistakes   map[string]string // the error message of each field by its name
	Key        string
}

// EditField is a property or a header that can be edited.
type EditField struct {
	Name, Label, Value string
	Was                string // the value as it was shown originally
	Kind               string // the AMQP type of a header
	Removed            bool
	Mistake            string
}

// WholeHeader is a header that has no text field, because it is too long or not a single line of
// text. It can only be kept, removed or cut.
type WholeHeader struct {
	Name, Kind string
	Size       int  // the size of the value in bytes
	Cuts       bool // the value is text and can be cut
	Removed    bool
	Cut        bool
}

// Key returns the name of this header's field in a form. Key makes it from a hash, because the name
// of a header may contain any character.
func (h WholeHeader) Key() string {
	sum := sha256.Sum256([]byte(h.Name))
	return hex.EncodeToString(sum[:8])
}

// HeaderCut is the length in bytes to which a header is cut.
const HeaderCut = 4 << 10

// EditURL returns the URL of the page for editing a letter. If the parameter "received" is true,
// the page starts from the body as received. Otherwise, it starts from the newest revision.
func EditURL(id deadletter.ID, q string, received bool) string {
	from := ""
	if received {
		from = "0"
	}
	return address("/letters/"+url.PathEscape(string(id))+"/edit", "q", shortQuery(q), "from", from)
}

// originalURL returns the URL of the page on which a person edits this letter, with the text before
// the edit.
func (p EditPage) originalURL() string {
	return EditURL(p.Letter, p.Query, p.Newest > 0 && p.Revision == 0)
}

// basisName returns the name of the revision on which the text is based.
func (p EditPage) basisName() string {
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

// hintSentence returns a sentence about masked values or about fields that are not edited.
func (p EditPage) hintSentence() string {
	switch {
	case p.Masked:
		return "You may reveal, so this shows masked values. That is in the audit log."
	case p.Syntax == "JSON" && p.Type != "":
		return "Names and values as in the JSON tab. The message is encoded again; what you do not touch stays."
	}
	return ""
}

// errorAttributes returns the HTML attributes that link a field to its error message.
func (p EditPage) errorAttributes(name string) templ.Attributes {
	return fieldWrong("edit-"+name, p.Mistakes[name])
}

// textAttributes returns the HTML attributes that link the text to its error message and its hint.
// The text has the focus, unless another field has an error.
func (p EditPage) textAttributes() templ.Attributes {
	by := "edit-text-mistake edit-text-size"
	if p.hintSentence() != "" {
		by += " edit-text-hint"
	}
	list := templ.Attributes{"aria-describedby": by, "autofocus": p.Mistake != nil || len(p.Mistakes) == 0}
	if p.Mistake != nil {
		list["aria-invalid"] = "true"
	}
	return list
}

// sizeWords returns the length of the text. js/edit.js has the same words.
func (p EditPage) sizeWords() string {
	return "Characters: " + Count(utf8.RuneCountInString(p.Text)) + ". Bytes: " + Count(len(p.Text)) + "."
}

// fieldWrong returns the HTML attributes that link an input to its error message.
func fieldWrong(id, mistake string) templ.Attributes {
	if mistake == "" {
		return nil
	}
	return templ.Attributes{"aria-invalid": "true", "aria-describedby": id + "-wrong"}
}

// mistakeText returns the place of a mistake in the edited text, and what is wrong there.
func mistakeText(m *payload.EditError) string {
	text := line(strings.TrimPrefix(m.Path+": "+m.Message, ": "), 600)
	if m.Line == 0 {
		return text
	}
	return "Line " + strconv.Itoa(m.Line) + ", column " + strconv.Itoa(m.Column) + ": " + text
}

// openedHeaders reports whether the headers are shown expanded. That is so if one of them is edited
// or invalid, or if only the headers can be edited.
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
