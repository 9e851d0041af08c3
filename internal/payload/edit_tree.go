package payload

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

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
	text     string // for a string, the text without escapes; a lone surrogate is kept as three bytes
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
		return n.text == other.text
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
	src             string
	at              int
	path            []string
	budget          *budget.Budget
	allowDuplicates bool // accepts duplicate names, because different names can look alike when they are masked
}

// parseJSON returns the tree of a text. If the text is not valid, the error is an *EditError with
// the position of the first mistake.
func parseJSON(text string, b *budget.Budget) (*jsonNode, error) {
	return (&jsonParser{src: text, budget: b}).parse()
}

func (p *jsonParser) parse() (*jsonNode, error) {
	for at, r := range p.src {
		if r == utf8.RuneError && !strings.HasPrefix(p.src[at:], string(r)) {
			return nil, p.fail(at, "a byte here is not UTF-8: write the text again")
		}
	}
	p.space()
	if p.at == len(p.src) {
		return nil, p.fail(p.at, "there is no JSON: write a value, or replace the body as a whole")
	}
	n, err := p.value(1)
	if err != nil {
		return nil, err
	}
	if p.space(); p.at < len(p.src) {
		return nil, p.fail(p.at, "the JSON ends before this: take out what follows")
	}
	return n, nil
}

func (p *jsonParser) fail(at int, message string) error {
	line, column := position(p.src, at)
	path := ""
	for _, name := range p.path {
		path = dotted(path, name)
	}
	return &EditError{Line: line, Column: column, Path: path, Message: message}
}

// position returns the line and the column of a byte in a text. Both count from 1, and the column
// counts characters.
func position(text string, at int) (line, column int) {
	text = text[:min(at, len(text))]
	line = strings.Count(text, "\n") + 1
	return line, utf8.RuneCountInString(text[strings.LastIndexByte(text, '\n')+1:]) + 1
}

func (p *jsonParser) space() {
	for p.at < len(p.src) && strings.IndexByte(" \t\r\n", p.src[p.at]) >= 0 {
		p.at++
	}
}

func (p *jsonParser) peek() byte {
	if p.space(); p.at < len(p.src) {
		return p.src[p.at]
	}
	return 0
}

func (p *jsonParser) value(depth int) (*jsonNode, error) {
	if depth > maxEditDepth {
		return nil, p.fail(p.at, fmt.Sprintf("nested deeper than %d levels: replace the body as a whole", maxEditDepth))
	}
	if err := p.budget.TakeMemory(costJSONNode); err != nil {
		return nil, p.fail(p.at, "too large to edit: "+err.Error())
	}
	n := &jsonNode{from: p.at}
	var err error
	switch c := p.peek(); {
	case c == '{':
		n.from, n.kind = p.at, '{'
		err = p.object(n, depth)
	case c == '[':
		n.from, n.kind = p.at, '['
		err = p.list(n, depth)
	case c == '"':
		n.from, n.kind = p.at, '"'
		n.raw, n.text, err = p.string()
	default:
		n.from = p.at
		err = p.word(n)
	}
	n.to = p.at
	return n, err
}

func (p *jsonParser) object(n *jsonNode, depth int) error {
	p.at++
	if p.peek() == '}' {
		p.at++
		return nil
	}
	for {
		if p.peek() != '"' {
			return p.fail(p.at, p.withReason("a name in double quotes is expected"))
		}
		name := jsonName{from: p.at}
		var err error
		if name.raw, name.text, err = p.string(); err != nil {
			return err
		}
		if i := n.find(name.text); i >= 0 && !p.allowDuplicates {
			line, _ := position(p.src, n.names[i].from)
			p.path = append(p.path, name.text)
			return p.fail(name.from, fmt.Sprintf("this name is there twice, first in line %d: remove one", line))
		}
		if n.index != nil {
			n.index[name.text] = len(n.names)
		}
		if n.names = append(n.names, name); len(n.names) == fewMembers+1 {
			n.reindex()
		}
		if p.peek() != ':' {
			return p.fail(p.at, p.withReason("a colon is missing after the name"))
		}
		p.at++
		p.path = append(p.path, name.text)
		p.space()
		if last, err := p.item(n, depth, '}', "an object"); last || err != nil {
			return err
		}
	}
}

func (p *jsonParser) list(n *jsonNode, depth int) error {
	p.at++
	if p.peek() == ']' {
		p.at++
		return nil
	}
	for {
		p.path = append(p.path, element(len(n.items)))
		p.space()
		if last, err := p.item(n, depth, ']', "a list"); last || err != nil {
			return err
		}
	}
}

// item parses one value of the object or list n, and the comma or bracket that follows the value.
// When the value is parsed, the path no longer contains the value's name.
func (p *jsonParser) item(n *jsonNode, depth int, end byte, container string) (last bool, err error) {
	item, err := p.value(depth + 1)
	if err != nil {
		return false, err
	}
	p.path = p.path[:len(p.path)-1]
	n.items = append(n.items, item)
	switch p.peek() {
	case end:
		p.at++
		return true, nil
	case ',':
		comma := p.at
		if p.at++; p.peek() == end {
			return false, p.fail(comma, "a comma before the end of "+container+": remove it")
		}
		return false, nil
	}
	return false, p.fail(p.at, p.withReason("a comma or "+string(end)+" is missing"))
}

// element returns the index of a list element in the form that paths contain, such as "[0]".
func element(i int) string { return "[" + strconv.Itoa(i) + "]" }

// withReason looks at the next characters of the text. If they explain the mistake, it appends the
// reason to the error message.
func (p *jsonParser) withReason(message string) string {
	switch {
	case p.at == len(p.src):
		return message + ": the text ends here"
	case p.src[p.at] == '/' || p.src[p.at] == '#':
		return message + "; JSON has no comments"
	case p.src[p.at] == '\'':
		return message + "; JSON has double quotes only"
	}
	return message
}

// string parses a string, and replaces its escapes by characters.
func (p *jsonParser) string() (raw, text string, err error) {
	from := p.at
	p.at++
	for clean := true; p.at < len(p.src); p.at++ {
		switch c := p.src[p.at]; {
		case c == '"':
			p.at++
			raw = p.src[from:p.at]
			if clean {
				return raw, raw[1 : len(raw)-1], nil
			}
			if p.budget.TakeMemory(int64(len(raw))) != nil {
				return "", "", p.fail(from, "too large to edit")
			}
			return raw, unescape(raw[1 : len(raw)-1]), nil
		case c == '\n':
			return "", "", p.fail(
				from, `unterminated string: end it with " on the same line, and write line breaks as \n`,
			)
		case c < ' ':
			return "", "", p.fail(p.at, fmt.Sprintf(`a control character in a text: write it as \u%04x`, c))
		case c == '\\':
			clean = false
			size := 2
			if p.at+1 < len(p.src) && p.src[p.at+1] == 'u' {
				size = 6
			}
			if p.at+size > len(p.src) || strings.IndexByte(`"\/bfnrtu`, p.src[p.at+1]) < 0 ||
				size == 6 && !isHex(p.src[p.at+2:p.at+6]) {
				return "", "", p.fail(p.at, `this is not a JSON escape: a backslash itself is written \\`)
			}
			p.at += size - 1
		}
	}
	return "", "", p.fail(from, `unterminated string: end it with "`)
}

func isHex(s string) bool {
	_, err := strconv.ParseUint(s, 16, 32)
	return err == nil
}

// unescape replaces the escapes in a valid string by characters. A lone surrogate becomes three
// bytes that are not UTF-8, so that different strings stay different.
func unescape(s string) string {
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			out = append(out, s[i])
			continue
		}
		i++
		if k := strings.IndexByte("bfnrt", s[i]); k >= 0 {
			out = append(out, "\b\f\n\r\t"[k])
			continue
		}
		if s[i] != 'u' {
			out = append(out, s[i])
			continue
		}
		unit := func(at int) rune {
			v, _ := strconv.ParseUint(s[at:at+4], 16, 32)
			return rune(v)
		}
		r := unit(i + 1)
		i += 4
		if 0xd800 <= r && r < 0xdc00 && i+6 < len(s) && s[i+1] == '\\' && s[i+2] == 'u' {
			if low := unit(i + 3); 0xdc00 <= low && low < 0xe000 {
				r = (r-0xd800)<<10 + (low - 0xdc00) + 0x10000
				i += 6
			}
		}
		if 0xd800 <= r && r < 0xe000 {
			out = append(out, 0xe0|byte(r>>12), 0x80|byte(r>>6&0x3f), 0x80|byte(r&0x3f))
			continue
		}
		out = utf8.AppendRune(out, r)
	}
	return string(out)
}

// word parses a number, true, false or null.
func (p *jsonParser) word(n *jsonNode) error {
	from := p.at
	for p.at < len(p.src) && strings.IndexByte(" \t\r\n,:]}[{\"", p.src[p.at]) < 0 {
		p.at++
	}
	n.raw = p.src[from:p.at]
	switch {
	case n.raw == "true" || n.raw == "false":
		n.kind = 't'
	case n.raw == "null":
		n.kind = 'n'
	case isNumber(n.raw):
		n.kind = '0'
	default:
		p.at = from
		switch n.raw {
		case "":
			return p.fail(from, p.withReason("a value is expected"))
		case "NaN", "Infinity", "-Infinity":
			return p.fail(from, "JSON has no such number; a field of type double or float takes it in double quotes")
		}
		if c := n.raw[0]; c == '-' || c == '+' || c == '.' || '0' <= c && c <= '9' {
			return p.fail(
				from, "this is not a JSON number: digits without a leading zero, then a fraction or an exponent",
			)
		}
		return p.fail(from, p.withReason("this is not JSON: texts need double quotes"))
	}
	return nil
}

// isNumber reports whether a text is a number as RFC 8259, 6 defines it.
func isNumber(s string) bool {
	s = strings.TrimPrefix(s, "-")
	digits := func() bool {
		n := 0
		for n < len(s) && '0' <= s[n] && s[n] <= '9' {
			n++
		}
		s = s[n:]
		return n > 0
	}
	switch {
	case strings.HasPrefix(s, "0"):
		s = s[1:]
	case !digits():
		return false
	}
	if rest, ok := strings.CutPrefix(s, "."); ok {
		if s = rest; !digits() {
			return false
		}
	}
	if s != "" && (s[0] == 'e' || s[0] == 'E') {
		if s = s[1:]; s != "" && (s[0] == '+' || s[0] == '-') {
			s = s[1:]
		}
		if !digits() {
			return false
		}
	}
	return s == ""
}
