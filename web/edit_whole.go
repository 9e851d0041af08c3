package web

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/web/view"
)

const (
	headerLine    = 500 // bytes; longer header values have no form field
	headersEdited = 50  // maximum number of headers with a form field
	headersWhole  = 30  // headers without a field, largest first; the page shows the number of further headers
)

// oneLine returns a header's value as shown in a form field. It returns false if the value has
// several lines, is long or is not plain text. It also returns false if a form would change the
// name.
func oneLine(name string, v any) (string, bool) {
	text, ok := deadletter.HeaderText(v)
	return text, ok && len(text) <= headerLine && !strings.ContainsAny(text+name, "\r\n") && utf8.ValidString(name) && !strings.Contains(name, "\x00")
}

// wholeHeader describes a header without a form field. Such a header can be kept or removed. If it
// is text, it can also be cut.
func wholeHeader(name string, v any) view.WholeHeader {
	text, isText := v.(string)
	size := len(text)
	if b, err := deadletter.AppendTable(nil, deadletter.Table{"": v}); !isText && err == nil {
		size = len(b)
	}
	return view.WholeHeader{Name: name, Kind: deadletter.HeaderKind(v), Size: size, Cuts: isText && utf8.ValidString(text) && size > view.HeaderCut}
}

// fewer shortens the lists of headers to the numbers that a page shows, and counts the omitted
// headers.
func fewer(p *view.EditPage) {
	if over := len(p.Headers) - headersEdited; over > 0 {
		p.Headers, p.More = p.Headers[:headersEdited], p.More+over
	}
	slices.SortStableFunc(p.Whole, func(a, b view.WholeHeader) int { return cmp.Compare(b.Size, a.Size) })
	if over := len(p.Whole) - headersWhole; over > 0 {
		p.Whole, p.More = p.Whole[:headersWhole], p.More+over
	}
}

// typedWhole reads the form's changes to headers without a form field.
func typedWhole(r *http.Request, p *view.EditPage, properties deadletter.Properties, e *deadletter.PropertyEdit) {
	for i := range p.Whole {
		h := &p.Whole[i]
		switch {
		case slices.Contains(r.PostForm["whole_remove"], h.Key()):
			h.Removed, e.Headers[h.Name] = true, deadletter.RemoveHeader
		case h.Cuts && slices.Contains(r.PostForm["whole_cut"], h.Key()):
			text, _ := properties.Headers[h.Name].(string)
			h.Cut, e.Headers[h.Name] = true, deadletter.Cut(text, view.HeaderCut)
		}
	}
}
