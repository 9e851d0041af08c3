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
	headerLine    = 500 // largest header that has a form field, bytes
	headersEdited = 50  // headers with a field
	headersWhole  = 30  // headers without a field, largest first; the page says how many more exist
)

// oneLine returns a header's value as shown in a form field. It returns false for values that have
// several lines, are long or are not plain. It also does so if a form would not return the name
// unchanged.
func oneLine(name string, v any) (string, bool) {
	text, ok := deadletter.HeaderText(v)
	return text, ok && len(text) <= headerLine && !strings.ContainsAny(text+name, "\r\n") && utf8.ValidString(name) && !strings.Contains(name, "\x00")
}

// wholeHeader describes a header that can only be kept, removed or, if it is text, cut.
func wholeHeader(name string, v any) view.WholeHeader {
	text, isText := v.(string)
	size := len(text)
	if b, err := deadletter.AppendTable(nil, deadletter.Table{"": v}); !isText && err == nil {
		size = len(b)
	}
	return view.WholeHeader{Name: name, Kind: deadletter.HeaderKind(v), Size: size, Cuts: isText && utf8.ValidString(text) && size > view.HeaderCut}
}

// fewer limits the headers to what a page shows, and counts the rest.
func fewer(p *view.EditPage) {
	if over := len(p.Headers) - headersEdited; over > 0 {
		p.Headers, p.More = p.Headers[:headersEdited], p.More+over
	}
	slices.SortStableFunc(p.Whole, func(a, b view.WholeHeader) int { return cmp.Compare(b.Size, a.Size) })
	if over := len(p.Whole) - headersWhole; over > 0 {
		p.Whole, p.More = p.Whole[:headersWhole], p.More+over
	}
}

// typedWhole reads what the form does to headers without a field.
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
