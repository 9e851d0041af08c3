package payload

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/deadletteroffice/dlo/internal/budget"
)

const (
	maxEditDepth = 500 // maximum nesting level of JSON that can be edited; people write fewer than ten
	costJSONNode = 256 // bytes of a jsonNode with its share of slices, rounded up
)

// jsonNode is a JSON value with its position in the text. It keeps the order of members and the
// text of numbers.
type jsonNode struct {
	kind     byte   // '{', '[', '"', '0' for numbers, 't' for true and false, 'n' for null
	raw      string // the text as written; only for a leaf
	text     string // for a string, the text without escapes, with U+FFFD for half of a surrogate pair
	from, to int    // range of bytes in the text
	names    []jsonName
	items    []*jsonNode // the elements, or the values of the members
	index    map[string]int
}

// jsonName is the name of a member.
type jsonName struct {
	text, raw string
	from      int
}

func isContainer(kind byte) bool { return kind == '{' || kind == '[' }

// fewMembers is the largest number of members for which a linear search is faster than a map.
const fewMembers = 8

// find returns the index of a member, or -1.
func (n *jsonNode) find(name string) int {
	if n.index != nil {
		if i, ok := n.index[name]; ok {
			return i
		}
		return -1
	}
	for i := range n.names {
		if n.names[i].text == name {
			return i
		}
	}
	return -1
}

// reindex builds the index of members by name again. It must be called after names have changed. It
// returns n.
func (n *jsonNode) reindex() *jsonNode {
	n.index = nil
	if len(n.names) > fewMembers {
		n.index = make(map[string]int, len(n.names))
		for i := range n.names {
			n.index[n.names[i].text] = i
		}
	}
	return n
}

// sameJSON reports whether two values are equal. The order of members does not matter. Two numbers
// are equal only if they are written in the same way.
func sameJSON(a, b *jsonNode) bool {
	return a.equal(b, func(number string) string { return number })
}

// equal reports whether two values are equal. It compares numbers in the form that the parameter
// "normalForm" returns.
func (n *jsonNode) equal(other *jsonNode, normalForm func(number string) string) bool {
	if n.kind != other.kind || len(n.items) != len(other.items) {
		return false
	}
	switch n.kind {
	case '"':
		return n.text == other.text && (n.raw == other.raw || !strings.ContainsRune(n.text, utf8.RuneError))
	case '0':
		return normalForm(n.raw) == normalForm(other.raw)
	}
	for i := range n.items {
		j := i
		if n.kind == '{' {
			j = other.find(n.names[i].text)
		}
		if j < 0 || !n.items[i].equal(other.items[j], normalForm) {
			return false
		}
	}
	return isContainer(n.kind) || n.raw == other.raw
}

// walk calls f for a value and all values inside it, until f returns false. It reports whether f
// always returned true.
func (n *jsonNode) walk(path string, f func(n *jsonNode, path string) bool) bool {
	if !f(n, path) {
		return false
	}
	for i, item := range n.items {
		name := element(i)
		if n.kind == '{' {
			name = n.names[i].text
		}
		if !item.walk(dotted(path, name), f) {
			return false
		}
	}
	return true
}

// write appends the value as JSON. If the parameter "indent" is true, it indents the lines by two
// spaces. Otherwise it writes no white space at all. It stops soon after the text has more than
// maxJSON bytes, because a patch can put one text into many places.
func (n *jsonNode) write(w *strings.Builder, indent bool, depth int) {
	line := func(depth int) {
		if indent {
			w.WriteByte('\n')
			for range depth {
				w.WriteString("  ")
			}
		}
	}
	if !isContainer(n.kind) {
		w.WriteString(n.raw)
		return
	}
	w.WriteByte(n.kind)
	for i, item := range n.items {
		if w.Len() > maxJSON {
			return
		}
		if i > 0 {
			w.WriteByte(',')
		}
		line(depth + 1)
		if n.kind == '{' {
			w.WriteString(n.names[i].raw)
			w.WriteByte(':')
			if indent {
				w.WriteByte(' ')
			}
		}
		item.write(w, indent, depth+1)
	}
	if len(n.items) > 0 {
		line(depth)
	}
	w.WriteByte(n.kind + 2) // '}' and ']' come two code points after '{' and '['
}

// jsonParser parses JSON that a person wrote. It accepts exactly the JSON that RFC 8259 allows, but
// no objects with duplicate names.
type jsonParser struct {
	jsonReader
	text            string // the same as src
	path            []string
	budget          *budget.Budget
	allowDuplicates bool // accepts duplicate names, because different names can look alike when they are masked
}

// parseJSON returns the tree of a text. If the text is not valid, the error is an *EditError with
// the position of the first mistake.
func parseJSON(text string, b *budget.Budget) (*jsonNode, error) {
	return (&jsonParser{text: text, budget: b}).parse()
}

func (p *jsonParser) parse() (*jsonNode, error) {
	for at, r := range p.text {
		if r == utf8.RuneError && !strings.HasPrefix(p.text[at:], string(r)) {
			return nil, p.fail(at, "a byte here is not UTF-8: write the text again")
		}
	}
	p.src = []byte(p.text)
	d := jsontext.NewDecoder(
		bytes.NewBuffer(p.src), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true),
	)
	if err := d.SkipValue(); err != nil {
		return nil, p.syntax(err)
	}
	if rest := strings.TrimLeft(p.text[d.InputOffset():], asciiSpace); rest != "" {
		return nil, p.fail(len(p.text)-len(rest), "the JSON ends before this: take out what follows")
	}
	return p.value(1)
}

func (p *jsonParser) fail(at int, message string) error {
	line, column := position(p.text, at)
	path := ""
	for _, name := range p.path {
		path = dotted(path, name)
	}
	return &EditError{Line: line, Column: column, Path: path, Message: message}
}

// syntax returns the error for a text that is not JSON. It says what people often write instead.
func (p *jsonParser) syntax(err error) error {
	wrong, ok := errors.AsType[*jsontext.SyntacticError](err)
	if !ok {
		return p.fail(len(p.text), "there is no JSON: write a value, or replace the body as a whole")
	}
	for name := range wrong.JSONPointer.Tokens() {
		if i, ok := indexOf(name); ok {
			name = element(i)
		}
		p.path = append(p.path, name)
	}
	at, message := int(wrong.ByteOffset), "this is not JSON: "+wrong.Err.Error()
	before, rest := p.text[:at], p.text[at:]
	switch {
	case rest == "":
		message += ": the text ends here"
	case rest[0] == ',':
		message += "; no comma goes before the end of an object or list"
	case strings.HasSuffix(before, "0") && '0' <= rest[0] && rest[0] <= '9':
		message += "; a number has no leading zero"
	case strings.ContainsAny(rest[:1], "/#"):
		message += "; JSON has no comments"
	case rest[0] == '\'':
		message += "; JSON has double quotes only"
	case rest[0] == '\\':
		message += `; a backslash itself is written \\`
	case rest[0] < ' ' && strings.Contains(message, "in string"):
		message += fmt.Sprintf(`; write it as \u%04x, or end the text before it`, rest[0])
	case strings.HasPrefix(strings.TrimPrefix(rest, "-"), "Infinity"), strings.HasPrefix(rest, "NaN"):
		message += "; a field of type double or float takes this number in double quotes"
	case strings.Contains(message, "start of value"):
		message += "; texts need double quotes"
	}
	return p.fail(at, message)
}

// position returns the line and the column of a byte in a text. Both count from 1, and the column
// counts characters.
func position(text string, at int) (line, column int) {
	text = text[:min(at, len(text))]
	line = strings.Count(text, "\n") + 1
	return line, utf8.RuneCountInString(text[strings.LastIndexByte(text, '\n')+1:]) + 1
}

// value reads one value of valid JSON.
func (p *jsonParser) value(depth int) (*jsonNode, error) {
	c := p.peek()
	n := &jsonNode{kind: c, from: p.at}
	if depth > maxEditDepth {
		return nil, p.fail(p.at, fmt.Sprintf("nested deeper than %d levels: replace the body as a whole", maxEditDepth))
	}
	if err := p.budget.TakeMemory(costJSONNode); err != nil {
		return nil, p.fail(p.at, "too large to edit: "+err.Error())
	}
	switch {
	case isContainer(c):
		if err := p.items(n, depth); err != nil {
			return nil, err
		}
	case c == '"':
		var err error
		if n.raw, n.text, err = p.string(); err != nil {
			return nil, err
		}
	default:
		n.raw = string(p.token())
		switch {
		case c == 'f':
			n.kind = 't'
		case c == '-' || '0' <= c && c <= '9':
			n.kind = '0'
		}
	}
	n.to = p.at
	return n, nil
}

// items reads the members of an object, or the elements of a list.
func (p *jsonParser) items(n *jsonNode, depth int) error {
	p.at++
	for p.peek() != n.kind+2 {
		name := element(len(n.items))
		if n.kind == '{' {
			var err error
			if name, err = p.name(n); err != nil {
				return err
			}
		}
		p.path = append(p.path, name)
		item, err := p.value(depth + 1)
		if err != nil {
			return err
		}
		p.path = p.path[:len(p.path)-1]
		n.items = append(n.items, item)
		if p.peek() == ',' {
			p.at++
		}
	}
	p.at++
	return nil
}

// name reads the name of the next member of an object, and the colon.
func (p *jsonParser) name(n *jsonNode) (string, error) {
	name := jsonName{from: p.at}
	var err error
	if name.raw, name.text, err = p.string(); err != nil {
		return "", err
	}
	if i := n.find(name.text); i >= 0 && !p.allowDuplicates {
		line, _ := position(p.text, n.names[i].from)
		p.path = append(p.path, name.text)
		return "", p.fail(name.from, fmt.Sprintf("this name is there twice, first in line %d: remove one", line))
	}
	if n.index != nil {
		n.index[name.text] = len(n.names)
	}
	if n.names = append(n.names, name); len(n.names) == fewMembers+1 {
		n.reindex()
	}
	p.peek()
	p.at++
	return name.text, nil
}

// string reads a string.
func (p *jsonParser) string() (raw, text string, err error) {
	from := p.at
	token := p.token()
	raw = p.text[from:p.at]
	if strings.IndexByte(raw, '\\') < 0 {
		return raw, raw[1 : len(raw)-1], nil
	}
	if p.budget.TakeMemory(int64(len(raw))) != nil {
		return "", "", p.fail(from, "too large to edit")
	}
	return raw, unquoteJSON(token), nil
}

// element returns the index of a list element in the form that paths contain, such as "[0]".
func element(i int) string { return "[" + strconv.Itoa(i) + "]" }
