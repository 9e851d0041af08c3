package payload

import (
	"strconv"
	"strings"

	"github.com/deadletteroffice/dlo/internal/budget"
)

// Difference turns a person's edit of the JSON of a body into an RFC 6902 patch, which Patch can
// apply to similar bodies. Before a value is replaced or removed, the patch tests the old value.
// The patch therefore fails if a body has another value. More people see the patch than the edit,
// so it does not test masked values, and Difference refuses an edit that would put one into the
// patch. Errors are *EditError.
func (d *Decoder) Difference(body []byte, h Hints, text string, b *budget.Budget) (patch []byte, err error) {
	defer panicToError(&err)
	s, err := d.editing(body, h, b)
	if err != nil {
		return nil, err
	}
	if s.doc.Kind == Text {
		return nil, &EditError{Message: "a change of text is not a change of JSON: edit these letters one by one"}
	}
	_, now, err := s.edit(text)
	if err != nil {
		return nil, err
	}
	shown := s.tree
	if s.doc.Masked {
		if shown, err = (&jsonParser{src: s.doc.JSON, budget: s.trees, allowDuplicates: true}).parse(); err != nil {
			return nil, err
		}
	}
	w := &patchWriter{}
	w.compare(s.tree, now, shown, "")
	if w.tells {
		return nil, &EditError{
			Message: "what was changed contains something masked, which a patch would tell: edit these letters one by one",
		}
	}
	if w.b.Len() > maxJSON {
		return nil, &EditError{Message: "the change is too large for a patch: edit these letters one by one"}
	}
	if w.b.Len() == 0 {
		return []byte("[]"), nil
	}
	return []byte("[\n  " + w.b.String() + "\n]"), nil
}

// patchWriter writes the operations of a patch, one per line.
type patchWriter struct {
	b     strings.Builder
	tells bool // the patch would contain something masked
}

func (w *patchWriter) op(name, path string, value *jsonNode) {
	if w.b.Len() > 0 {
		w.b.WriteString(",\n  ")
	}
	w.b.WriteString(`{"op": "` + name + `", "path": ` + string(quoteJSON(path)))
	if value != nil {
		w.b.WriteString(`, "value": `)
		value.write(&w.b, false, 0)
	}
	w.b.WriteByte('}')
}

// replaceOrRemove writes two operations for an existing value: a test, and then the change. The
// parameter "shown" is the value as people see it.
func (w *patchWriter) replaceOrRemove(name, path string, was, value, shown *jsonNode) {
	visible := sameJSON(was, shown)
	if visible {
		w.op("test", path, was)
	}
	w.tells = w.tells || !visible && value != nil && isContainer(was.kind)
	w.op(name, path, value)
}

func (w *patchWriter) compare(a, b, shown *jsonNode, path string) {
	switch {
	case sameJSON(a, b):
	case a.kind != b.kind || !isContainer(a.kind) || shown.kind != a.kind ||
		a.kind == '[' && len(a.items) != len(b.items):
		w.replaceOrRemove("replace", path, a, b, shown)
	case a.kind == '[':
		for i := range a.items {
			w.compare(a.items[i], b.items[i], shown.items[i], path+"/"+strconv.Itoa(i))
		}
	default:
		for i := range a.names {
			inner := path + "/" + escapePointer(a.names[i].text)
			j := b.find(a.names[i].text)
			switch {
			case j >= 0 && sameJSON(a.items[i], b.items[j]):
			case shown.names[i].text != a.names[i].text:
				w.tells = true
			case j >= 0:
				w.compare(a.items[i], b.items[j], shown.items[i], inner)
			default:
				w.replaceOrRemove("remove", inner, a.items[i], nil, shown.items[i])
			}
		}
		for j := range b.names {
			if a.find(b.names[j].text) < 0 {
				w.op("add", path+"/"+escapePointer(b.names[j].text), b.items[j])
			}
		}
	}
}

func escapePointer(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}
