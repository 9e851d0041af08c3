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
	if _, err = s.edit(text); err != nil {
		return nil, err
	}
	w := &patchWriter{}
	if w.tells = s.shown == nil || s.shownNow == nil; !w.tells {
		w.compare(version{s.tree, s.shown}, version{s.now, s.shownNow}, "")
	}
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

// version is a value before or after the edit, and what people see of it.
type version struct{ value, shown *jsonNode }

func (v version) item(i int) version { return version{v.value.items[i], v.shown.items[i]} }

// open reports whether people see what the object or list contains.
func (v version) open() bool {
	return isContainer(v.value.kind) && v.shown.kind == v.value.kind && len(v.shown.items) == len(v.value.items)
}

func (v version) visible() bool { return sameJSON(v.value, v.shown) }

// write writes an operation that puts a value into a body.
func (w *patchWriter) write(name, path string, v version) {
	w.tells = w.tells || !v.visible()
	w.op(name, path, v.value)
}

// test writes a test of the old value, unless people do not see it.
func (w *patchWriter) test(path string, v version) {
	if v.visible() {
		w.op("test", path, v.value)
	}
}

func (w *patchWriter) compare(a, b version, path string) {
	from, to := a.value, b.value
	switch {
	case sameJSON(from, to):
	case from.kind != to.kind || !a.open() || !b.open() || from.kind == '[' && len(from.items) != len(to.items):
		w.test(path, a)
		w.write("replace", path, b)
	case from.kind == '[':
		for i := range from.items {
			w.compare(a.item(i), b.item(i), path+"/"+strconv.Itoa(i))
		}
	default:
		for i, name := range from.names {
			inner := path + "/" + escapePointer(name.text)
			j := to.find(name.text)
			switch {
			case j >= 0 && sameJSON(from.items[i], to.items[j]):
			case a.shown.names[i].text != name.text:
				w.tells = true
			case j >= 0:
				w.compare(a.item(i), b.item(j), inner)
			default:
				w.test(inner, a.item(i))
				w.op("remove", inner, nil)
			}
		}
		for j, name := range to.names {
			if from.find(name.text) < 0 {
				w.tells = w.tells || b.shown.names[j].text != name.text
				w.write("add", path+"/"+escapePointer(name.text), b.item(j))
			}
		}
	}
}

func escapePointer(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}
