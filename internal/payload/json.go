package payload

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/deadletteroffice/dlo/internal/budget"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// maximum number of bytes of indented JSON in a document; the body itself can always be downloaded
const maxJSON = 2 << 20

// looksLikeJSON reports whether b is a JSON object or array. If the parameter "scalars" is true, a
// single value counts too. If b is not JSON, looksLikeJSON returns the reason. A byte order mark is
// allowed, because .NET writes one. looksLikeJSON allocates only its result.
func looksLikeJSON(b []byte, scalars bool) (bool, string) {
	t := bytes.Trim(withoutBOM(b), asciiSpace)
	if len(t) == 0 {
		return false, "nothing but white space"
	}
	if !scalars && t[0] != '{' && t[0] != '[' {
		return false, fmt.Sprintf("first byte is 0x%02x", t[0])
	}
	if !json.Valid(t) {
		return false, "not valid"
	}
	return true, ""
}

// isJSON reports whether b is a JSON object or array, as looksLikeJSON does. It caches the result,
// because dlo checks the same body when it looks for layers and when it decodes the body.
func (r *reading) isJSON(b []byte) (bool, string) {
	if len(b) == 0 {
		return false, "nothing but white space"
	}
	if m := &r.json; m.body == nil || len(b) != len(m.body) || &b[0] != &m.body[0] {
		m.body = b
		m.ok, m.why = looksLikeJSON(b, false)
	}
	return r.json.ok, r.json.why
}

func withoutBOM(b []byte) []byte { return bytes.TrimPrefix(b, []byte("\xef\xbb\xbf")) }

// readJSON fills in the document of a body that is valid JSON.
func (r *reading) readJSON() {
	doc := r.doc
	doc.Kind = JSON
	src := withoutBOM(doc.Body)
	base := len(doc.Body) - len(src)
	root := r.rootOfJSON()
	root.inside = r.insides(&root)
	if err := r.budget.TakeMemory(jsonMemory(src, !root.hidesNothing())); err != nil {
		doc.tooLarge(err.Error())
		return
	}
	p := &jsonPrinter{jsonReader: jsonReader{src: src}, budget: r.budget, root: root}
	if doc.JSON, doc.Masked = p.print(); p.err != nil {
		doc.JSON = ""
		doc.tooLarge(p.err.Error())
		return
	}
	if !utf8.Valid(src) {
		doc.jsonProblem("it has bytes that are not UTF-8 and fit no other charset: each is shown as \ufffd")
	}
	if p.over {
		doc.jsonProblem("the indented JSON has more than " + deadletter.Bytes(maxJSON) + " and is left out")
	}
	t := &tree{}
	doc.Fields = t.fromJSON(src, base, root)
	doc.Notes = append(doc.Notes, t.limitNotes()...)
	r.readFramework()
}

// jsonMemory estimates the memory in bytes for printing JSON. With a mask, it includes the memory
// for decoding the strings.
func jsonMemory(src []byte, mask bool) int64 {
	n := min(4*int64(len(src)), 3*maxJSON) + treeMemory
	if mask {
		n += 2 * int64(len(src))
	}
	return n
}

// jsonPrinter prints valid JSON with an indent of two spaces, in one pass and without a tree. It
// keeps the order of keys and the text of numbers. It masks values, and writes deceptive characters
// as \u escapes.
type jsonPrinter struct {
	jsonReader
	budget  *budget.Budget     // charged for values to which a mask is applied; nil = there is no limit
	root    place              // the place of the outermost value
	hide    func(from, to int) // called for each masked value with its range in src
	discard bool               // nothing is printed, and only the function hide is called
	out     bytes.Buffer
	err     error // set if the budget is used up
	over    bool  // the output has more than maxJSON bytes, so nothing is printed
	masked  bool
}

// print returns the JSON, and whether anything was masked. If the JSON is too large, it returns "".
func (p *jsonPrinter) print() (string, bool) {
	p.value(p.root, 0)
	if p.over || p.discard {
		return "", p.masked
	}
	return p.out.String(), p.masked
}

func (p *jsonPrinter) write(b ...byte) {
	if p.discard || p.over {
		return
	}
	if p.out.Len()+len(b) > maxJSON {
		p.over = true
		p.out = bytes.Buffer{}
		return
	}
	p.out.Write(b)
}

func (p *jsonPrinter) newLine(depth int) {
	if p.discard || p.over {
		return
	}
	p.write('\n')
	for range depth {
		if p.over {
			return
		}
		p.write(' ', ' ')
	}
}

// stopped reports whether the rest of the JSON can be skipped. With a mask, the rest must be read
// even if nothing more is printed.
func (p *jsonPrinter) stopped() bool { return p.err != nil || p.over && p.root.hidesNothing() }

// value prints one value. json.Valid limits its depth to 10,000 levels.
func (p *jsonPrinter) value(at place, depth int) {
	if p.stopped() {
		return
	}
	if at.hidden {
		p.peek()
		from := p.at
		p.skip()
		p.mask(from, p.at)
		p.string(quoteJSON(Masked))
		return
	}
	switch p.peek() {
	case '{', '[':
		open := p.src[p.at]
		p.at++
		p.write(open)
		end := open + 2 // '}' and ']' come two code points after '{' and '['
		if p.peek() == end {
			p.at++
			p.write(end)
			return
		}
		for !p.stopped() {
			p.newLine(depth + 1)
			inner := at
			if open == '{' {
				inner = p.name(&at)
			}
			p.value(inner, depth+1)
			c := p.peek()
			p.at++
			if c != ',' {
				break
			}
			p.write(',')
		}
		p.newLine(depth)
		p.write(end)
	default:
		p.leaf(at)
	}
}

// mask records that a range of src is masked.
func (p *jsonPrinter) mask(from, to int) {
	p.masked = true
	if p.hide != nil {
		p.hide(from, to)
	}
}

// name prints the name of a member and the colon. It returns the place of the member's value.
func (p *jsonPrinter) name(at *place) place {
	token := p.token()
	to := p.at
	if p.peek() == ':' {
		p.at++
	}
	if p.root.hidesNothing() { // nothing is masked, so the place does not matter
		p.string(token)
		p.write(':', ' ')
		return *at
	}
	name := unquoteJSON(token)
	if p.budget != nil {
		p.err = p.budget.TakeMemory(int64(2*len(name)) + costOfEscapes(token))
	}
	if shown, masked := at.nameSpot(name).apply(name); masked {
		p.mask(to-len(token), to)
		token = quoteJSON(shown)
	}
	p.string(token)
	p.write(':', ' ')
	return at.enter(name, &p.jsonReader)
}

func (p *jsonPrinter) leaf(at place) {
	token := p.token()
	to := p.at
	from := to - len(token)
	if p.root.hidesNothing() {
		p.string(token)
		return
	}
	if p.budget != nil {
		if p.err = p.budget.TakeField(); p.err == nil {
			p.err = p.budget.TakeMemory(costOfEscapes(token))
		}
		if p.err != nil {
			return
		}
	}
	value := string(token)
	switch {
	case len(token) > 0 && token[0] == '"':
		value = unquoteJSON(token)
		at.spot = at.text(value)
		at.hidden = at.hidden || at.inside.read(at, value).hidden
		if at.bytes {
			if raw, ok := unbase64(value); ok {
				value = raw
			}
		}
	case len(token) > 0 && token[0] < 'a': // a number
		at.spot = at.text(value)
	}
	shown, masked := at.apply(value)
	if !masked {
		p.string(token)
		return
	}
	p.mask(from, to)
	p.string(quoteJSON(shown))
}

// string prints a string or another token. In strings, it writes deceptive characters as \u
// escapes, and U+FFFD for bytes that are not UTF-8.
func (p *jsonPrinter) string(token []byte) {
	if !slices.ContainsFunc(token, func(c byte) bool { return c >= 0x7f }) {
		p.write(token...)
		return
	}
	for len(token) > 0 && !p.over && !p.discard {
		r, n := utf8.DecodeRune(token)
		switch {
		case r == utf8.RuneError && n == 1:
			p.write([]byte(`\ufffd`)...)
		case isDeceptive(r) && r > 0xffff:
			hi, lo := utf16.EncodeRune(r)
			p.write(fmt.Appendf(nil, `\u%04x\u%04x`, hi, lo)...)
		case isDeceptive(r):
			p.write(fmt.Appendf(nil, `\u%04x`, r)...)
		default:
			p.write(token[:n]...)
		}
		token = token[n:]
	}
}

// costOfEscapes returns how many bytes of memory the decoding of a JSON string needs in addition to
// the text itself. For a short string with escapes, encoding/json in Go 1.26 allocates 60 to 90
// bytes.
func costOfEscapes(token []byte) int64 {
	if bytes.IndexByte(token, '\\') < 0 {
		return 0
	}
	return 128
}

// unquoteJSON returns the text of a string token.
func unquoteJSON(token []byte) string {
	if len(token) >= 2 && bytes.IndexByte(token, '\\') < 0 {
		return string(token[1 : len(token)-1])
	}
	var s string
	if json.Unmarshal(token, &s) != nil {
		return string(token)
	}
	return s
}

func quoteJSON(s string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // cannot fail for a string
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// unbase64 decodes base64 in all variants that protojson accepts.
func unbase64(s string) (string, bool) {
	out := make([]byte, len(s)/4*3+3)
	n := decodeBase64(out, []byte(s))
	if n < 0 {
		return "", false
	}
	return string(out[:n]), true
}
