package payload

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/deadletteroffice/dlo/internal/budget"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

const maxPatchOps = 1_000

// Patch applies an RFC 6902 JSON patch to the JSON of a body, so that one change can be made to
// many letters. It uses the stored values, also masked ones: who patches a letter that has any
// needs the right to reveal. In all other ways, Patch works like Edit. In errors, Path is the
// pointer in the patch, and line and column are positions in the patch.
func (d *Decoder) Patch(body []byte, h Hints, patch []byte, b *budget.Budget) (e *Edited, err error) {
	defer panicToError(&err)
	s, err := d.editing(body, h, b)
	if err != nil {
		return nil, err
	}
	if s.doc.Kind == Text {
		return nil, &EditError{Message: "a patch changes JSON, and this body is text: replace it as a whole"}
	}
	if len(patch) > maxJSON {
		return nil, tooLong(len(patch))
	}
	p := &patching{source: string(patch), budget: s.trees, root: s.site()}
	if p.doc, err = p.clone(s.tree); err != nil {
		return nil, err
	}
	if err := p.apply(); err != nil {
		return nil, err
	}
	var w strings.Builder
	p.doc.write(&w, s.doc.Kind == Protobuf || bytes.IndexByte(s.doc.Body, '\n') >= 0, 0)
	if w.Len() > maxJSON {
		return nil, &EditError{
			Message: "the patch makes a text of more than " + deadletter.Bytes(maxJSON) +
				", the most that can be edited here: replace the body as a whole",
		}
	}
	tree, err := parseJSON(w.String(), s.trees)
	if err != nil {
		return nil, &EditError{Message: "the patch does not make JSON that can be edited: replace the body as a whole"}
	}
	e, err = s.encode(w.String(), tree)
	if mistake, ok := err.(*EditError); ok {
		mistake.Line, mistake.Column = 0, 0 // they would be positions in a text that nobody has seen
		if s.doc.Masked {
			mistake.Path = ""
		}
	}
	return e, err
}

// CheckPatch returns the first mistake in a patch that is one for every body. Errors are
// *EditError.
func CheckPatch(patch []byte) error {
	p := &patching{source: string(patch), budget: budget.NewBudget()}
	ops, err := p.operations()
	if err == nil && len(ops) == 0 {
		return p.fail("", "the patch is empty: nothing would change")
	}
	return err
}

// patching is a document to which a patch is being applied.
type patching struct {
	source string
	budget *budget.Budget
	doc    *jsonNode
	root   site
	op     *jsonNode
}

// fail returns an error about the present operation of the patch. The position in the error is that
// of the given member of the operation, for example of "path".
func (p *patching) fail(member, message string) error {
	e := &EditError{Message: message}
	at := p.op.from
	if i := p.op.find(member); i >= 0 {
		at = p.op.items[i].from
		e.Path, _ = cut(visible(p.op.items[i].text, ""), 300)
	}
	e.Line, e.Column = position(p.source, at)
	return e
}

// clone copies a tree. Copies are necessary because a patch may put one part of a tree in several
// places, and then change one of them.
func (p *patching) clone(n *jsonNode) (*jsonNode, error) {
	if err := p.budget.TakeMemory(costJSONNode); err != nil {
		return nil, &EditError{Message: "the patch makes too large a document: " + err.Error()}
	}
	c := *n
	c.names = slices.Clone(n.names)
	c.items = make([]*jsonNode, len(n.items))
	for i := range n.items {
		var err error
		if c.items[i], err = p.clone(n.items[i]); err != nil {
			return nil, err
		}
	}
	return c.reindex(), nil
}

// operations returns the operations of the patch. Each has the members that it needs.
func (p *patching) operations() ([]*jsonNode, error) {
	list, err := parseJSON(p.source, p.budget)
	if err != nil {
		return nil, err
	}
	p.op = list
	switch {
	case list.kind != '[':
		return nil, p.fail("", "a patch is a list of operations: [ ... ]")
	case len(list.items) > maxPatchOps:
		return nil, p.fail("", "a patch has at most "+deadletter.Count(maxPatchOps)+" operations: divide it")
	}
	for _, p.op = range list.items {
		if p.op.kind != '{' {
			return nil, p.fail("", `an operation is an object: { "op": "replace", "path": "/name", "value": 1 }`)
		}
		kind, err := p.member("op")
		if err == nil {
			_, err = p.member("path")
		}
		if err != nil {
			return nil, err
		}
		switch kind {
		case "add", "replace", "test":
			if p.op.find("value") < 0 {
				err = p.fail("path", `the operation needs "value"`)
			}
		case "copy", "move":
			_, err = p.member("from")
		case "remove":
		default:
			err = p.fail("op", "there is no such operation: take add, remove, replace, move, copy or test")
		}
		if err != nil {
			return nil, err
		}
	}
	p.op = list
	return list.items, nil
}

func (p *patching) apply() error {
	ops, err := p.operations()
	if err != nil {
		return err
	}
	for _, p.op = range ops {
		if err := p.applyOne(); err != nil {
			return err
		}
	}
	return nil
}

// member returns the text of the named member of the operation. If the member is missing or is not
// a text, it returns an error.
func (p *patching) member(name string) (string, error) {
	if i := p.op.find(name); i >= 0 && p.op.items[i].kind == '"' {
		return p.op.items[i].text, nil
	}
	return "", p.fail(name, fmt.Sprintf("the operation needs %q, a text", name))
}

// applyOne applies the current operation of the patch.
func (p *patching) applyOne() error {
	kind, _ := p.member("op")
	to, err := p.pointer("path")
	if err != nil {
		return err
	}
	switch kind {
	case "add", "replace", "test":
		v, err := p.clone(p.op.items[p.op.find("value")])
		if err != nil {
			return err
		}
		switch kind {
		case "add":
			return p.add(to, v)
		case "replace":
			return p.replace(to, v)
		}
		return p.test(to, v)
	case "remove":
		_, err := p.remove("path", to)
		return err
	case "copy", "move":
		from, err := p.pointer("from")
		if err != nil {
			return err
		}
		v, err := p.get("from", from)
		if err != nil {
			return err
		}
		if kind == "copy" {
			if v, err = p.clone(v); err != nil {
				return err
			}
			return p.add(to, v)
		}
		if slices.Equal(from, to) {
			return nil
		}
		if len(from) < len(to) && slices.Equal(from, to[:len(from)]) {
			return p.fail("path", "a value cannot be moved into itself: take another path")
		}
		if _, err := p.remove("from", from); err != nil {
			return err
		}
		return p.add(to, v)
	}
	return nil
}

// pointer parses an RFC 6901 pointer. The result has the names of fields as they are in the
// document.
func (p *patching) pointer(member string) ([]string, error) {
	text, err := p.member(member)
	if err != nil || text == "" {
		return nil, err
	}
	if text[0] != '/' {
		return nil, p.fail(member, "a path begins with /: /to/address")
	}
	names := strings.Split(text[1:], "/")
	for i, name := range names {
		if strings.Contains(strings.NewReplacer("~0", "", "~1", "").Replace(name), "~") {
			return nil, p.fail(member, "~ goes before 0 or 1 only: ~0 for ~ itself, ~1 for /")
		}
		names[i] = strings.ReplaceAll(strings.ReplaceAll(name, "~1", "/"), "~0", "~")
	}
	n, at := p.doc, p.root
	for i, name := range names {
		k, ok := indexOf(name)
		if n.kind == '{' {
			names[i] = at.nameIn(n, name)
			k, ok = n.find(names[i]), true
		}
		if !ok || k < 0 || k >= len(n.items) {
			break
		}
		n, at = at.child(n, k)
	}
	return names, nil
}

// childIndex returns the index of the value with the given name in the object or list n.
func (p *patching) childIndex(member string, n *jsonNode, name string) (int, error) {
	switch n.kind {
	case '{':
		if i := n.find(name); i >= 0 {
			return i, nil
		}
		return 0, p.fail(member, "there is no such value in this letter")
	case '[':
		i, ok := indexOf(name)
		if !ok {
			return 0, p.fail(member, "this is a list: write the number of an element, from 0 and without leading zeros")
		}
		if i >= len(n.items) {
			return 0, p.fail(member, "the list has only "+deadletter.Plural(len(n.items), "element", "elements"))
		}
		return i, nil
	}
	return 0, p.fail(member, "there is no such value in this letter")
}

func indexOf(name string) (int, bool) {
	i, err := strconv.Atoi(name)
	return i, err == nil && i >= 0 && strconv.Itoa(i) == name
}

func (p *patching) get(member string, path []string) (*jsonNode, error) {
	n := p.doc
	for _, name := range path {
		i, err := p.childIndex(member, n, name)
		if err != nil {
			return nil, err
		}
		n = n.items[i]
	}
	return n, nil
}

func (p *patching) replace(path []string, v *jsonNode) error {
	old, err := p.get("path", path)
	if err != nil {
		return err
	}
	*old = *v
	return nil
}

func (p *patching) add(path []string, v *jsonNode) error {
	if len(path) == 0 {
		return p.replace(path, v)
	}
	last := len(path) - 1
	parent, err := p.get("path", path[:last])
	if err != nil {
		return err
	}
	switch name := path[last]; parent.kind {
	case '{':
		if parent.find(name) >= 0 {
			return p.replace(path, v)
		}
		parent.names = append(parent.names, jsonName{text: name, raw: string(quoteJSON(name))})
		parent.items = append(parent.items, v)
		if parent.index != nil {
			parent.index[name] = len(parent.names) - 1
		}
		return nil
	case '[':
		i, ok := indexOf(name)
		if name == "-" {
			i, ok = len(parent.items), true
		}
		if !ok || i > len(parent.items) {
			_, err := p.childIndex("path", parent, name)
			return err
		}
		parent.items = slices.Insert(parent.items, i, v)
		return nil
	}
	_, err = p.childIndex("path", parent, path[last])
	return err
}

func (p *patching) remove(member string, path []string) (*jsonNode, error) {
	if len(path) == 0 {
		return nil, p.fail(member, "the whole document cannot be removed: replace it")
	}
	last := len(path) - 1
	parent, err := p.get(member, path[:last])
	if err != nil {
		return nil, err
	}
	i, err := p.childIndex(member, parent, path[last])
	if err != nil {
		return nil, err
	}
	old := parent.items[i]
	parent.items = slices.Delete(parent.items, i, i+1)
	if parent.kind == '{' {
		parent.names = slices.Delete(parent.names, i, i+1)
		parent.index = nil
	}
	return old, nil
}

func (p *patching) test(path []string, v *jsonNode) error {
	n, err := p.get("path", path)
	if err != nil {
		return err
	}
	if !n.equal(v, plainNumber) { // numbers are compared by value, as RFC 6902, 4.6 requires
		return p.fail("path", "the value is another one in this letter, so nothing is changed")
	}
	return nil
}

// plainNumber writes a JSON number in a form in which equal numbers have the same text. The form
// consists of the digits without leading and trailing zeros, and the exponent.
func plainNumber(raw string) string {
	sign := ""
	if rest, ok := strings.CutPrefix(raw, "-"); ok {
		sign, raw = "-", rest
	}
	exponent := 0
	if i := strings.IndexAny(raw, "eE"); i >= 0 {
		var err error
		if exponent, err = strconv.Atoi(raw[i+1:]); err != nil {
			return sign + raw // far outside the range of useful numbers
		}
		raw = raw[:i]
	}
	whole, fraction, _ := strings.Cut(raw, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	short := strings.TrimRight(digits, "0")
	if short == "" {
		return "0"
	}
	return fmt.Sprintf("%s%se%d", sign, short, exponent-len(fraction)+len(digits)-len(short))
}
