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
	headerLine    = 500 // bytes of a header that a field of the form holds
	headersEdited = 50  // that have a field
	headersWhole  = 30  // that have none, the largest first; how many more there are, the page says
)

// oneLine is a header's value as a field of the form holds it; false for what has several lines, is
// long, or is no plain value, and where a form would not give the name back as it is.
func oneLine(name string, v any) (string, bool) {
	text, ok := deadletter.HeaderText(v)
	return text, ok && len(text) <= headerLine && !strings.ContainsAny(text+name, "\r\n") && utf8.ValidString(name) && !strings.Contains(name, "\x00")
}

// wholeHeader is a header that stays as it is, is taken away, or cut if it is a text.
func wholeHeader(name string, v any) view.WholeHeader {
	text, isText := v.(string)
	size := len(text)
	if b, err := deadletter.AppendTable(nil, deadletter.Table{"": v}); !isText && err == nil {
		size = len(b)
	}
	return view.WholeHeader{Name: name, Kind: deadletter.HeaderKind(v), Size: size, Cuts: isText && utf8.ValidString(text) && size > view.HeaderCut}
}

// fewer leaves as many headers as a page shows, and counts the others.
func fewer(p *view.EditPage) {
	if over := len(p.Headers) - headersEdited; over > 0 {
		p.Headers, p.More = p.Headers[:headersEdited], p.More+over
	}
	slices.SortStableFunc(p.Whole, func(a, b view.WholeHeader) int { return cmp.Compare(b.Size, a.Size) })
	if over := len(p.Whole) - headersWhole; over > 0 {
		p.Whole, p.More = p.Whole[:headersWhole], p.More+over
	}
}

// typedWhole reads what becomes of the headers that have no field.
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
