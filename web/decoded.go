package web

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/payload"
	"github.com/deadletteroffice/dlo/web/view"
)

// The functions below convert a payload.Document to what pages show. Pages have no other access to
// the document.

// noSchema says what the page shows of a message whose type is not known.
const noSchema = "Shown without names. Field numbers and wire types are certain, the rest is a guess."

func decodedView(d *payload.Document, l *deadletter.Letter, at payload.Range) view.Decoded {
	v := view.Decoded{Kind: string(d.Kind), Type: d.Type, Text: d.Text, Notes: d.Notes}
	if d.Type != "" {
		v.From = "by " + d.Chosen
		if d.Set != "" {
			v.From += ", set " + d.Set
		}
		if len(d.Also) > 0 {
			v.Notes = append(v.Notes, "Defined differently in "+strings.Join(d.Also, ", ")+".")
		}
	}
	switch {
	case d.TooLarge:
		v.Title, v.Note = "Not decoded.", d.Problem
	case d.NoSchema:
		v.NoSchema, v.Title = true, "Protobuf without a schema."
		if v.Note = noSchema; d.Problem != "" {
			v.Note = strings.ToUpper(d.Problem[:1]) + d.Problem[1:] + ". " + v.Note
		}
	case d.Problem != "":
		v.Title, v.Note = "Not what the letter says it is.", d.Problem
	case d.Ranking.Verdict == payload.Ambiguous:
		v.Title, v.Note = manyFit(d.Ranking), strings.ToUpper(d.Ranking.Why[:1])+d.Ranking.Why[1:]+"."
	case d.Kind == payload.Binary && len(d.Fields) > 0:
		v.Title, v.Note = "No registered type fits.", noSchema
	case d.Kind == payload.Binary:
		v.Title, v.Note = "No type is known for this body.", "It is neither JSON nor text. The Raw tab says what was tried."
	}
	if d.ShapeOnly {
		v.Notes = append(
			slices.Clip(v.Notes),
			"Matched by shape only: nothing in the letter or on its queue names this type. A type that is not registered may have the same shape.",
		)
	}
	v.Nodes = d.Fields
	if len(d.Body) > 0 && !d.Masked && (d.Kind == payload.Binary || d.Kind == payload.Protobuf) {
		title := ""
		if i := firstQuoted(d.Fields, l.Error); i >= 0 && len(d.Fields[i].Ranges) > 0 && at.From >= at.To {
			title, at = d.Fields[i].Name, d.Fields[i].Ranges[0]
		}
		v.Bytes = hexAt(d, at)
		v.Bytes.Title = title
	}
	return v
}

// manyFit returns a short text that says why the type of the body is not decided.
func manyFit(r payload.Ranking) string {
	switch {
	case r.Tied > 1:
		return deadletter.Count(r.Tied) + " types fit equally well."
	case r.Left > 0:
		return "Not compared with all types."
	}
	return "A message, or a text."
}

// windowOf parses a range of bytes such as "12-34". For any other text, it returns an empty range.
func windowOf(text string) payload.Range {
	from, to, _ := strings.Cut(text, "-")
	first, err1 := strconv.Atoi(from)
	last, err2 := strconv.Atoi(to)
	if err1 != nil || err2 != nil || first < 0 || first >= last {
		return payload.Range{}
	}
	return payload.Range{From: first, To: last}
}

// hexAt returns a hex dump of a body, in which the bytes that the reader requested are marked. The
// dump begins with the first byte of the body. If the requested bytes are too far from there, it
// begins shortly before them.
func hexAt(d *payload.Document, at payload.Range) *view.Hex {
	from := 0
	if at.From < at.To && at.To > view.HexBytes {
		from = at.From - 128
	}
	return &view.Hex{
		Hex: d.HexdumpAt(from, view.HexBytes), Total: len(d.Body), Marked: at,
	}
}

// candidates returns the types that match the body. Types that almost match are in the steps of the
// Raw tab.
func candidates(d *payload.Document) []payload.Match {
	if d.Ranking.Verdict == payload.Unknown {
		return nil
	}
	return d.Ranking.Matches
}

// firstQuoted returns the index of the first field whose value occurs in the error text, or that
// contains such a field. It returns -1 if there is none.
func firstQuoted(fields []payload.Node, errorText string) int {
	return slices.IndexFunc(fields, func(n payload.Node) bool {
		return n.QuotedBy(errorText) || firstQuoted(n.Children, errorText) >= 0
	})
}

func jsonOf(d *payload.Document) view.JSON {
	v := view.JSON{Text: d.JSON}
	if d.UnknownFields > 0 && d.JSON != "" {
		v.Notes = append(v.Notes, fmt.Sprintf("JSON omits %s (%s). Requeue sends the stored bytes, so nothing is lost.",
			view.Number(d.UnknownFields, "unknown field", "unknown fields"), view.Size(int(d.UnknownBytes))))
	}
	if guess := d.CharsetGuess(); guess != "" && d.JSON != "" {
		v.Notes = append(v.Notes, guess)
	}
	if d.JSONProblem != "" {
		v.Notes = append(v.Notes, strings.ToUpper(d.JSONProblem[:1])+d.JSONProblem[1:]+".")
	} else if d.JSON == "" && d.Problem != "" {
		v.Notes = append(v.Notes, d.Problem)
	}
	return v
}

// raw returns the body as bytes, for the tab that shows them. A body can have several layers, for
// example base64 around protobuf. The parameter "layer" selects the innermost content or one of the
// encodings around it. The outermost encoding is the body as received. If the parameter "hidden" is
// true, raw returns no bytes.
func raw(d *payload.Document, l *deadletter.Letter, q, layer string, at payload.Range, hidden bool) view.Raw {
	v := view.Raw{Steps: d.Steps}
	if hidden {
		return v
	}
	v.Hex = *hexAt(d, at)
	if len(d.Layers) == 0 && l.Revised == nil {
		return v
	}
	link := view.LetterURL(l.ID, q, view.TabRaw)
	v.Layers = []view.RawLayer{{Name: kindName(d), Size: len(d.Body), Link: link, On: true}}
	add := func(name, key string, body []byte) {
		on := key == layer
		if on {
			v.Layers[0].On = false
			v.Hex = *hexAt(&payload.Document{Body: body}, payload.Range{})
		}
		v.Layers = append(v.Layers, view.RawLayer{Name: name, Size: len(body), Link: link + "&layer=" + key, On: on})
	}
	for i := len(d.Layers) - 1; i >= 0; i-- {
		name := "In " + d.Layers[i].Name
		switch {
		case i == 0 && l.Revised != nil:
			name = "As sent, " + d.Layers[0].Name
		case i == 0:
			name = "As received, " + d.Layers[0].Name
		}
		add(name, strconv.Itoa(i), d.Outside(i))
	}
	if l.Revised != nil {
		add("As received, before the edit", "received", l.Body)
	}
	return v
}

func kindName(d *payload.Document) string {
	switch d.Kind {
	case payload.Protobuf:
		return "Protobuf"
	case payload.JSON:
		return "JSON"
	case payload.Text:
		return "Text"
	}
	return "Inside"
}

// layerSpans describes the body and its encodings, such as " protobuf" or " base64, 157 B protobuf
// inside".
func layerSpans(d *payload.Document) []view.Span {
	word := " " + strings.ToLower(kindName(d))
	switch d.Kind {
	case payload.Empty:
		return nil
	case payload.JSON:
		word = " JSON"
	case payload.Binary:
		word = ""
	}
	if len(d.Layers) == 0 {
		return []view.Span{{Text: word}}
	}
	names := each(d.Layers, func(l payload.Layer) string { return l.Name })
	return []view.Span{{Text: " " + strings.Join(names, " of ") + ", " + view.Size(len(d.Body)) + word + " inside"}}
}

// errorFrom returns the name of the header from which the error text comes. It returns nil if no
// header value is a part of the error text.
func errorFrom(l *deadletter.Letter) []view.Span {
	if l.Error == "" {
		return nil
	}
	best := ""
	for name, value := range l.Arrived.Headers {
		text, ok := value.(string)
		// A header counts as the source of the error text if the text contains its value. If
		// several headers qualify, the header with the longest value counts. Among values of the
		// same length, the header whose name comes first in the alphabet counts, so that the page
		// always shows the same one.
		if ok && len(text) >= 4 && strings.Contains(l.Error, deadletter.Visible(text)) {
			if was, _ := l.Arrived.Headers[best].(string); len(text) > len(was) ||
				len(text) == len(was) && name < best {
				best = name
			}
		}
	}
	if best == "" {
		return nil
	}
	return []view.Span{{Text: "header "}, {Text: deadletter.Cut(deadletter.Visible(best), 100), Code: true}}
}
