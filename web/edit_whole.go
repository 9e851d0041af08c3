package web

import (
	"cmp"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/web/view"
)

const (
	headerLine    = 500 // bytes; a header with a longer value has no field in the form
	headersEdited = 50  // maximum number of headers that have a field in the form
	// maximum number of headers without a field that are shown, the largest first; the page gives
	// the number of the others
	headersWhole = 30
)

// oneLine returns the value of a header as a field of a form shows it. It returns false if the
// value has several lines, is long or is not a plain text. It also returns false if a form would
// change the name of the header.
func oneLine(name string, v any) (string, bool) {
	text, ok := deadletter.HeaderText(v)
	return text, ok && len(text) <= headerLine && !strings.ContainsAny(text+name, "\r\n") && utf8.ValidString(name) &&
		!strings.Contains(name, "\x00")
}

// wholeHeader returns a header that has no field in the form. A person can keep or remove such a
// header. If it is a text, it can also be cut.
func wholeHeader(name string, v any) view.WholeHeader {
	text, isText := v.(string)
	size := len(text)
	if b, err := deadletter.AppendTable(nil, deadletter.Table{"": v}); !isText && err == nil {
		size = len(b)
	}
	return view.WholeHeader{
		Name: name,
		Kind: deadletter.HeaderKind(v),
		Size: size,
		Cuts: isText && utf8.ValidString(text) && size > view.HeaderCut,
	}
}

// shortenHeaders shortens the lists of headers, because a page shows only a limited number. It
// counts the headers that it omits.
func shortenHeaders(p *view.EditPage) {
	if over := len(p.Headers) - headersEdited; over > 0 {
		p.Headers, p.More = p.Headers[:headersEdited], p.More+over
	}
	slices.SortStableFunc(p.Whole, func(a, b view.WholeHeader) int { return cmp.Compare(b.Size, a.Size) })
	if over := len(p.Whole) - headersWhole; over > 0 {
		p.Whole, p.More = p.Whole[:headersWhole], p.More+over
	}
}

// typedWhole reads which headers the person wants to remove or cut. It handles only headers that
// the page does not show in a text field, because they are too long or not a single line of text.
func typedWhole(
	form url.Values, p *view.EditPage, properties deadletter.Properties, in *api.RevisionRequest, set func(string, any),
) {
	for i := range p.Whole {
		h := &p.Whole[i]
		switch {
		case slices.Contains(form["whole_remove"], h.Key()):
			h.Removed, in.Headers[h.Name] = true, json.RawMessage("null")
		case h.Cuts && slices.Contains(form["whole_cut"], h.Key()):
			text, _ := properties.Headers[h.Name].(string)
			h.Cut = true
			set(h.Name, deadletter.Cut(text, view.HeaderCut))
		}
	}
}
