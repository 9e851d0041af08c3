package payload

import (
	"errors"
	"slices"
	"strings"
)

// overlay records in the tree "stored" how people see each of its values. It takes this from the
// tree "masked", which was parsed from the same JSON, printed with a mask. The values of both trees
// are in the same order. If two names of one object look alike when they are masked, overlay fails,
// because nobody could tell them apart.
func overlay(stored, masked *jsonNode) error {
	if !isContainer(stored.kind) {
		stored.masked = stored.kind != masked.kind || stored.text != masked.text ||
			stored.kind != '"' && stored.raw != masked.raw
		stored.shown, stored.hides = masked.text, stored.masked
		return nil
	}
	if masked.kind == '"' { // the whole list or object is masked
		stored.hideNames()
		stored.masked, stored.hides, stored.shown = true, true, masked.text
		return nil
	}
	if stored.kind != masked.kind || len(stored.items) != len(masked.items) {
		return errors.New("the masked JSON has another shape than the stored one")
	}
	seen := make(map[string]bool)
	for i := range stored.names {
		name := &stored.names[i]
		name.shown = masked.names[i].text
		name.masked = name.shown != name.text
		stored.hides = stored.hides || name.masked
		if seen[name.shown] {
			return errors.New("names in it are masked, and look alike then")
		}
		seen[name.shown] = true
	}
	for i := range stored.items {
		if err := overlay(stored.items[i], masked.items[i]); err != nil {
			return err
		}
		stored.hides = stored.hides || stored.items[i].hides
	}
	return nil
}

// hideNames ensures that no name inside a masked value is part of a path that people see.
func (n *jsonNode) hideNames() {
	for i := range n.names {
		n.names[i].shown = Masked
	}
	for _, item := range n.items {
		item.hideNames()
	}
}

// keepSource stores the original text of each masked list or object in the tree n. It takes these
// texts from "source", which is the JSON from which the tree "parsed" was made. The trees n and
// "parsed" have the same values.
func (n *jsonNode) keepSource(parsed *jsonNode, source string) {
	if n.masked && isContainer(n.kind) {
		n.raw = source[parsed.from:parsed.to]
		return
	}
	if n.hides {
		for i := range n.items {
			n.items[i].keepSource(parsed.items[i], source)
		}
	}
}

// putBack replaces e, which stands for a masked value, with the stored value. Values inside a list
// or object get no position, because they are not in the text that the person wrote.
func (e *jsonNode) putBack(stored *jsonNode) {
	from, to := e.from, e.to
	*e = *stored
	e.from, e.to, e.shown, e.masked, e.hides = from, to, "", false, false
	if isContainer(e.kind) {
		e.raw = ""
	}
	e.names, e.items = slices.Clone(e.names), slices.Clone(e.items)
	for i := range e.names {
		e.names[i].from = -1 - len(e.names[i].raw)
	}
	for i := range e.items {
		item := &jsonNode{}
		item.putBack(e.items[i])
		e.items[i] = item
	}
}

// masksNames reports whether any name in the object is masked. It does not look at objects inside
// this object.
func (n *jsonNode) masksNames() bool {
	return n.hides && slices.ContainsFunc(n.names, func(name jsonName) bool { return name.masked })
}

func isContainer(kind byte) bool { return kind == '{' || kind == '[' }

// unmasked is the text that a person edited, after its masks were replaced with the stored values.
type unmasked struct {
	source string // the text as the person wrote it
	text   string // the text with the stored values
	tree   *jsonNode
	moves  []move
	given  []string // paths at which new values replace masked values
}

// move is a piece of the person's text that was replaced. The fields "from" and "to" are the range
// of the piece in that text. The fields "at" and "end" are the range of its replacement in the new
// text.
type move struct{ from, to, at, end int } // from and to in the written text, at and end in the new one

// origin converts a position in the new text to the corresponding position in the text that the
// person wrote. If the position is inside a replacement, origin returns the position of the first
// byte that was replaced.
func (u *unmasked) origin(at int) int {
	shift := 0
	for _, m := range u.moves {
		if at < m.at {
			break
		}
		if at < m.end {
			return m.from
		}
		shift = m.to - m.end
	}
	return at + shift
}

const (
	keepsMasked = "masked values stay as stored unless they are replaced whole: put back what was here, or write a new value"
	whichMasked = "the list has another length than before, so it is not clear which masked value this is: keep its length, or write the value"
	movedMasked = "this element stood elsewhere in the list, so it is not clear which masked value is meant: keep the order, or write the value"
)

// unmask puts the stored values back into a person's edit of the JSON that was shown. It changes
// the leaves of the tree. Errors are *EditError with a position in the person's text.
func unmask(source string, edited, stored *jsonNode) (*unmasked, error) {
	k := &keeper{u: &unmasked{source: source, tree: edited}, shown: make(map[string]bool)}
	k.collect(stored)
	if err := k.value(edited, stored, "", keepsMasked); err != nil {
		return nil, err
	}
	k.text.WriteString(source[k.at:])
	k.u.text = k.text.String()
	return k.u, nil
}

type keeper struct {
	u     *unmasked
	shown map[string]bool // texts that stand for masked values
	text  strings.Builder
	at    int // position in the source up to which the new text is complete
}

func (k *keeper) collect(n *jsonNode) {
	if n.masked && n.shown != "" {
		k.shown[n.shown] = true
	}
	if n.hides {
		for _, item := range n.items {
			k.collect(item)
		}
	}
}

// replace puts stored JSON in place of a piece of the text that a person wrote. It also records how
// this shifts the positions in the text.
func (k *keeper) replace(from, to int, raw string) {
	k.text.WriteString(k.u.source[k.at:from])
	at := k.text.Len()
	k.text.WriteString(raw)
	k.u.moves = append(k.u.moves, move{from, to, at, k.text.Len()})
	k.at = to
}

func (k *keeper) fail(at int, path, message string) error {
	line, column := position(k.u.source, at)
	return &EditError{Line: line, Column: column, Path: path, Message: message}
}

// value checks one value of a person's edit, and puts the stored value in place of a mask. The
// parameter "stored" is the value that is stored at the same path, or nil if there is none. If the
// person left the mask that was shown for this stored value, value restores the stored value. If
// the person wrote any other mask, no stored value belongs to it, and value returns an error. The
// parameter "maskError" is the text of this error.
func (k *keeper) value(e, stored *jsonNode, path, maskError string) error {
	hides := stored != nil && stored.hides
	switch {
	case e.kind == '"' && hides && stored.masked && e.text == stored.shown:
		k.replace(e.from, e.to, stored.raw)
		e.putBack(stored)
		return nil
	case e.kind == '"' && (strings.Contains(e.text, Masked) || k.shown[e.text]) &&
		(stored == nil || stored.kind != '"' || stored.text != e.text):
		return k.fail(e.from, path, maskError)
	case hides && (stored.masked || stored.kind != e.kind || !isContainer(e.kind)):
		k.u.given = append(k.u.given, path)
	}
	if stored != nil && (stored.kind != e.kind || stored.masked) {
		stored = nil
	}
	switch e.kind {
	case '{':
		return k.object(e, stored, path, maskError)
	case '[':
		return k.list(e, stored, path, maskError)
	}
	return nil
}

func (k *keeper) object(e, stored *jsonNode, path, why string) error {
	places := make(map[string]int)
	if stored != nil {
		for i := range stored.names {
			places[stored.names[i].shown] = i
		}
	}
	renamed := false
	for i := range e.names {
		name := &e.names[i]
		inner := dotted(path, name.text)
		var item *jsonNode
		if j, ok := places[name.text]; ok {
			item = stored.items[j]
			if was := stored.names[j]; was.masked {
				k.replace(name.from, name.from+len(name.raw), was.raw)
				name.shown, name.text, name.raw, renamed = name.text, was.text, was.raw, true
			}
		} else if strings.Contains(name.text, Masked) {
			return k.fail(name.from, inner, "masked names stay as stored: put back what was here, or write a new name")
		} else if stored != nil && stored.masksNames() {
			// fail in any case; otherwise, the response would disclose the masked names
			return k.fail(
				name.from, inner, "names in this object are masked, so none can be added: leave the names as they are",
			)
		}
		if err := k.value(e.items[i], item, inner, why); err != nil {
			return err
		}
	}
	if renamed {
		e.reindex()
	}
	return nil
}

func (k *keeper) list(e, stored *jsonNode, path, why string) error {
	switch {
	case stored == nil || !stored.hides:
		stored = nil
	case len(e.items) != len(stored.items):
		stored, why = nil, whichMasked
	}
	var elsewhere map[string]bool
	if stored != nil {
		elsewhere = make(map[string]bool)
		for _, item := range stored.items {
			if item.hides {
				elsewhere[item.asShown()] = true
			}
		}
	}
	for i, item := range e.items {
		var was *jsonNode
		if stored != nil {
			if was = stored.items[i]; isContainer(item.kind) && len(elsewhere) > 1 {
				if now := item.asShown(); elsewhere[now] && now != was.asShown() {
					return k.fail(item.from, dotted(path, element(i)), movedMasked)
				}
			}
		}
		if err := k.value(item, was, dotted(path, element(i)), why); err != nil {
			return err
		}
	}
	return nil
}

// asShown returns a value as people see it. Values that look the same to people have the same text.
func (n *jsonNode) asShown() string {
	var w strings.Builder
	n.writeShown(&w)
	return w.String()
}

func (n *jsonNode) writeShown(w *strings.Builder) {
	switch {
	case n.masked:
		w.Write(quoteJSON(n.shown))
	case n.kind == '"':
		w.Write(quoteJSON(n.text))
	case !isContainer(n.kind):
		w.WriteString(n.raw)
	default:
		w.WriteByte(n.kind)
		for i, item := range n.items {
			if n.kind == '{' {
				name := n.names[i].text
				if n.names[i].masked {
					name = n.names[i].shown
				}
				w.Write(quoteJSON(name))
			}
			item.writeShown(w)
			w.WriteByte(',')
		}
	}
}

// dotted appends a name to a path, in the form that errors and lists of changes use. A path has at
// most about 300 bytes.
func dotted(path, name string) string {
	name, left := cut(visible(name, ""), 64)
	if left > 0 {
		name += "…"
	}
	switch {
	case path == "":
		return name
	case len(path) > 240:
		return path
	}
	return path + "." + name
}
