package payload

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/deadletteroffice/dlo/internal/budget"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/descriptor"
)

// Edited is a new body that was made from an old one.
type Edited struct {
	Body []byte // the body to send, in the envelopes and encodings of the old one; NOT masked

	// Masked means that a part of the old body is masked, so that editing it requires the right to
	// reveal. JSON, Text and Diff show it: whoever passes them on records that they were seen.
	Masked bool

	JSON string     // the JSON of the new body; "" for text and bytes; NOT masked
	Text string     // the text of a text body, at most 64 KiB; NOT masked
	Diff []DiffLine // the difference between the old and the new body; of limited size; NOT masked

	MaskedDiff []DiffLine // of JSON: the same as everybody may see it

	// Changed lists the paths of what differs, with the names in the JSON: "to.address",
	// "items.[0].sku". It has at most 50, then a line with the number of the rest; for text and
	// bytes it is "body". It is masked: a path ends before the first name that people do not see.
	Changed []string
	Checks  []Check
}

// Check is one finding about a new body.
type Check struct {
	OK   bool   `json:"ok"`   // false = it needs a person's attention
	Text string `json:"text"` // safe to print, without masked values
}

// EditError says why a body cannot be edited, or what is wrong with a person's text. Its message
// does not quote masked values.
type EditError struct {
	Line, Column int    // position in the text; both count from 1, the column in characters; 0 = no particular place
	Path         string // path of the value: "to.address"; for a patch, the pointer in the patch; may be ""
	Message      string // what is wrong, and what the person can do about it
}

// Unwrap returns ErrInvalid.
func (e *EditError) Unwrap() error { return deadletter.ErrInvalid }

func (e *EditError) Error() string {
	where := e.Path
	if e.Line > 0 {
		where = strings.TrimSuffix(fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Path), ": ")
	}
	if where == "" {
		return e.Message
	}
	return where + ": " + e.Message
}

// Editable is a body in the form in which people edit it.
type Editable struct {
	Text     string // the text that Edit expects back, with a person's changes; NOT masked
	Syntax   Kind   // JSON or Text
	Type     string // full name of the protobuf type; "" = none
	Masked   bool   // a part of the body is masked: Text is for people who may reveal, and that is recorded
	Wrapping string // for example "base64 of gzip, as received"; "" = none
}

// Editable returns a body as text for an editor. If the body cannot be edited as JSON or text, the
// error is an *EditError with the reason. Replace works even for such a body. In Editable, Edit and
// Patch, the limits of the budget b apply to each reading of the body separately. A nil b means
// NewBudget() with MaxBody.
func (d *Decoder) Editable(body []byte, h Hints, b *budget.Budget) (e Editable, err error) {
	defer panicToError(&err)
	s, err := d.editing(body, h, b)
	if err != nil {
		return Editable{}, err
	}
	e = Editable{Text: s.text, Syntax: JSON, Type: s.doc.Type, Masked: s.doc.Masked, Wrapping: layersText(s.doc.Layers)}
	if s.doc.Kind == Text {
		e.Syntax = Text
	}
	return e, nil
}

// Edit applies a person's edit to a body. The parameter "body" is the body as received. The
// parameter "text" is its Editable text after the edit, with any line ends. For JSON and text
// bodies, the new body is the text as the person typed it. For a message, the new body is the
// message with what the edit changed, encoded again: see messageEdit. The new body is wrapped like
// the old one. An edit that changes nothing returns the body as received.
//
// Errors are *EditError. An edit is never applied partially: if anything cannot be encoded, Edit
// returns an error. If the removal of one thing also removes other data, a check reports it.
func (d *Decoder) Edit(body []byte, h Hints, text string, b *budget.Budget) (e *Edited, err error) {
	defer panicToError(&err)
	s, err := d.editing(body, h, b)
	if err != nil {
		return nil, err
	}
	if s.doc.Kind == Text {
		return s.editText(text)
	}
	return s.edit(text)
}

// edit applies a person's edit of JSON.
func (s *editing) edit(text string) (*Edited, error) {
	text, err := uniformLineEnds(text)
	if err != nil {
		return nil, err
	}
	text = strings.TrimPrefix(text, "\ufeff")
	tree, err := parseJSON(text, s.trees)
	if err != nil {
		return nil, err
	}
	return s.encode(text, tree)
}

// uniformLineEnds returns the text that a person typed. It replaces the line ends "\r\n", which
// browsers send, by "\n".
func uniformLineEnds(text string) (string, error) {
	if len(text) > 2*maxJSON {
		return "", tooLong(len(text))
	}
	if text = strings.ReplaceAll(text, "\r\n", "\n"); len(text) > maxJSON {
		return "", tooLong(len(text))
	}
	return text, nil
}

// site returns the site of the whole body. A JSON body has a schema if the letter names its type.
func (s *editing) site() site {
	def := s.def
	if defs, _ := s.decoder.Types.Lookup(s.doc.named); def == nil && len(defs) > 0 {
		def = defs[0]
	}
	if def == nil {
		return site{}
	}
	return site{md: def.Desc, types: def.Types}
}

func tooLong(n int) error {
	return &EditError{
		Message: fmt.Sprintf(
			"the text has %s, and at most %s can be edited here: replace the body as a whole", deadletter.Bytes(n),
			deadletter.Bytes(maxJSON),
		),
	}
}

// Replace uses the bytes "raw" as the new body, without the wrapping of the old body. The checks
// report how the new body is decoded.
func (d *Decoder) Replace(body []byte, h Hints, raw []byte, b *budget.Budget) (e *Edited, err error) {
	defer panicToError(&err)
	limits := d.budget(b).Left()
	if err := checkSize(raw, limits.Bytes); err != nil {
		return nil, err
	}
	plain := d.Revealed()
	was, now := plain.Decode(body, h, limits.Left()), plain.Decode(raw, h, limits.Left())
	e = &Edited{
		Body:   raw,
		Masked: d.Decode(body, h, limits.Left()).Masked,
		JSON:   now.JSON,
		Text:   now.Text,
		Diff:   Diff(was.JSON+was.Text, now.JSON+now.Text),
	}
	e.addPassed("Read as " + now.typeOrKind() + ", " + deadletter.Bytes(len(raw)))
	if now.Problem != "" {
		e.addWarning(now.Problem)
	}
	if was.Kind != now.Kind || was.Type != now.Type {
		e.addWarning("The stored body is read as " + was.typeOrKind())
	}
	if len(was.Layers) > 0 && !sameLayers(was.Layers, now.Layers) {
		e.addWarning(
			"The stored body is wrapped (" + strings.TrimSuffix(layersText(was.Layers), ", as received") +
				"); this one is sent unchanged",
		)
	}
	if e.Changed = []string{"body"}; bytes.Equal(body, raw) {
		e.Changed = nil
		e.addWarning(nothingChanged)
	}
	e.warnOfHeaders(body, h.Headers)
	return e, nil
}

const nothingChanged = "Nothing has changed: the same body is sent again"

func (e *Edited) addPassed(text string) { e.Checks = append(e.Checks, Check{true, text}) }

func (e *Edited) addWarning(text string) { e.Checks = append(e.Checks, Check{false, text}) }

var (
	ofLength   = regexp.MustCompile(`(?i)(length|size)$`)
	ofChecksum = regexp.MustCompile(`(?i)(^|[^a-z])(md5|sha-?[0-9]+|crc-?[0-9]+|checksum|digest|signature|hmac)$`)
)

// warnOfHeaders adds a check that names the headers that hold the length of the stored body, or
// that look like a checksum of it, if the body has changed.
func (e *Edited) warnOfHeaders(stored []byte, headers deadletter.Table) {
	var names []string
	for name, value := range headers {
		if ofLength.MatchString(name) && fmt.Sprint(value) == strconv.Itoa(len(stored)) || ofChecksum.MatchString(name) {
			name, _ = cut(visible(name, ""), 64)
			names = append(names, "`"+name+"`")
		}
	}
	if len(names) > 0 && !bytes.Equal(stored, e.Body) {
		slices.Sort(names)
		e.addWarning("Headers that describe the stored body, and may need a change too: " + strings.Join(names, ", "))
	}
}

// panicToError turns a panic into an error. The error does not contain the text of the panic, which
// may quote the body.
func panicToError(err *error) {
	if recover() != nil {
		*err = &EditError{Message: "the edit failed on this body (internal error): replace the body as a whole"}
	}
}

// editing is the state of editing one body.
type editing struct {
	decoder *Decoder
	hints   Hints
	body    []byte
	limits  *budget.Budget
	trees   *budget.Budget // the budget that all JSON trees share

	doc  *Document // the document as people see it, masked
	def  *descriptor.Type
	text string    // the text for the editor; NOT masked
	tree *jsonNode // for JSON: the tree of the text
	lost int       // number of values of the body that an edit of the text can only remove

	// for JSON, after an edit: the tree of the new body, and what people see of the old and the new
	// one, nil if it is no JSON
	now, shown, shownNow *jsonNode
}

func (d *Decoder) editing(body []byte, h Hints, b *budget.Budget) (*editing, error) {
	b = d.budget(b)
	s := &editing{decoder: d, hints: h, body: body, limits: b.Left(), trees: b.Left()}
	s.doc = d.Decode(body, h, b.Left())
	s.hints.hidden = h.hidden || s.doc.doubtful
	if h.Crashed {
		return nil, notEditable(s.doc.Problem)
	}
	content := s.doc.Body
	for _, l := range slices.Backward(s.doc.Layers) {
		if l.Name == "Confluent" && holdsLength(l.Before, l.outer[len(l.Before):]) {
			return nil, notEditable(fmt.Sprintf("the bytes before it may hold its length of %d, which would no longer fit", l.Bytes))
		}
		if l.encoding != nil && !l.writes(content, l.outer) {
			return nil, notEditable(
				"some characters can be written in several ways in " + l.Name + ", and an edit would change them",
			)
		}
		content = l.outer
	}
	switch s.doc.Kind {
	case Empty:
		return nil, notEditable("it is empty")
	case Binary:
		if s.doc.TooLarge {
			return nil, notEditable("it is " + s.doc.Problem)
		}
		return nil, notEditable("no type is known for its bytes")
	case Text:
		return s, s.openText()
	}
	return s, s.openJSON()
}

func notEditable(why string) error {
	return &EditError{Message: "this body cannot be edited as JSON or text, as " + why + ": replace it as a whole"}
}

func (s *editing) openJSON() error {
	if s.doc.Kind == Protobuf {
		defs, _ := s.decoder.Types.Lookup(s.doc.Type)
		i := slices.IndexFunc(defs, func(def *descriptor.Type) bool { return def.Set == s.doc.Set })
		if i < 0 {
			return notEditable("its type is no longer registered") // the type was replaced in the meantime
		}
		s.def = defs[i]
	}
	if s.doc.JSON == "" {
		return notEditable(cmp.Or(s.doc.JSONProblem, "it has no JSON"))
	}
	if s.doc.Kind == JSON && deadletter.NotText(s.doc.Body) != "" {
		return notEditable("it has bytes that are not UTF-8")
	}
	plain := s.read(s.doc.Body)
	if s.text, s.lost = plain.JSON, plain.withoutJSON; s.text == "" {
		return notEditable("it has no JSON")
	}
	var err error
	if s.tree, err = parseJSON(s.text, s.trees); err != nil {
		why := err.Error()
		if e := (*EditError)(nil); errors.As(err, &e) {
			why, _, _ = strings.Cut(e.Message, ": ") // the path may contain a masked name
		}
		return notEditable("of its JSON: " + why)
	}
	return nil
}

// read decodes an unwrapped body in the same way as the original one, without a mask.
func (s *editing) read(body []byte) *Document {
	doc := &Document{Body: body, Size: len(body)}
	h := s.hints
	h.Type = cmp.Or(s.doc.named, h.Type) // the type that an envelope names
	r := s.decoder.Revealed().reading(doc, h, s.limits.Left())
	switch s.doc.Kind {
	case Protobuf:
		known := len(body) > 0
		if known {
			scan, err := r.scan(body, s.def)
			known = err != nil || scan.Known > 0
		}
		if !known && !hasSpecialForm(s.def.Desc) { // only an edit can leave a message without any known field
			doc.Kind, doc.JSON = Protobuf, "{}"
			break
		}
		r.readProtobuf(candidate{name: s.doc.Type, told: s.doc.Type, by: s.doc.by, defs: []*descriptor.Type{s.def}})
	case JSON:
		r.readJSON()
	default:
		r.readText()
	}
	return doc
}

// encode turns an edit of JSON into the new body.
func (s *editing) encode(text string, tree *jsonNode) (*Edited, error) {
	if err := s.checkMasks(text, tree); err != nil {
		return nil, err
	}
	e := &Edited{Masked: s.doc.Masked}
	inner := s.doc.Body
	if s.doc.Kind == Protobuf {
		out, checks, err := encodeAs(s.def, inner, s.tree, tree, text, s.limits.Left())
		if err != nil {
			return nil, err
		}
		inner, e.Checks = out, checks
	} else {
		if !sameJSON(s.tree, tree) {
			inner = slices.Concat(inner[:len(inner)-len(withoutBOM(inner))], []byte(text))
		}
		e.addPassed("Valid JSON, " + deadletter.Bytes(len(inner)))
	}
	after := s.read(inner)
	if e.JSON = after.JSON; after.Kind != s.doc.Kind || after.JSON == "" {
		return nil, &EditError{
			Message: fmt.Sprintf(
				"the new body has %s and would be too large to show as JSON: replace the body as a whole",
				deadletter.Bytes(len(inner)),
			),
		}
	}
	var err error
	if s.now, err = parseJSON(after.JSON, s.trees); err != nil {
		return nil, err
	}
	same := sameJSON(s.tree, s.now)
	if same { // only the spelling differs
		inner = s.doc.Body
	}
	seen, err := s.finish(e, inner, !same)
	if err != nil {
		return nil, err
	}
	c := &changed{masked: s.doc.Masked || seen.Masked}
	if s.shown, s.shownNow = s.tree, s.now; c.masked {
		s.shown, s.shownNow = s.asShown(s.doc), s.asShown(seen)
	}
	for _, n := range []*jsonNode{s.shown, s.shownNow} {
		if n != nil {
			c.shown = append(c.shown, n)
		}
	}
	e.Changed = c.list(s.tree, s.now)
	e.Diff = Diff(s.text, after.JSON)
	if e.MaskedDiff = e.Diff; c.masked {
		e.MaskedDiff = Diff(s.doc.JSON, seen.JSON+seen.Text)
	}
	if lost := s.lost - after.withoutJSON; lost > 0 {
		e.addWarning(
			"loss: " + deadletter.Plural(lost, "value", "values") +
				" without a JSON form dropped, with what was removed or replaced",
		)
	}
	if !same {
		for _, name := range sameIdentity(s.tree, s.now) {
			if s.def != nil {
				if fd := s.def.Desc.Fields().ByJSONName(name); fd != nil {
					name = string(fd.Name())
				}
			}
			e.addWarning("Same `" + name + "`: a consumer that saw it may skip it")
		}
	}
	return e, nil
}

// asShown returns the tree of a body as people see it, or nil if they do not see it as JSON.
func (s *editing) asShown(d *Document) *jsonNode {
	n, err := (&jsonParser{text: d.JSON, budget: s.trees, allowDuplicates: true}).parse()
	if err != nil {
		return nil
	}
	return n
}

const writesMask = Masked + " stands for a value that is masked, and is none: write the value, which people who may reveal see in the editor and with reveal"

// checkMasks returns an error if the JSON after an edit has more masks in its values and names than
// the stored one. Somebody then began with JSON that was shown masked, and the edit would send the
// mask in place of the value.
func (s *editing) checkMasks(text string, tree *jsonNode) error {
	stored := make(map[string]int) // a body may contain such a text
	each := func(n *jsonNode, found func(text string, at int, path string) bool) {
		n.walk("", func(n *jsonNode, path string) bool {
			for _, name := range n.names {
				if strings.Contains(name.text, Masked) && !found(name.text, name.from, dotted(path, name.text)) {
					return false
				}
			}
			return !strings.Contains(n.text, Masked) || found(n.text, n.from, path)
		})
	}
	each(s.tree, func(text string, _ int, _ string) bool {
		stored[text]++
		return true
	})
	var mistake error
	each(tree, func(mask string, at int, path string) bool {
		if stored[mask]--; stored[mask] < 0 {
			line, column := position(text, at)
			mistake = &EditError{Line: line, Column: column, Path: path, Message: writesMask}
		}
		return mistake == nil
	})
	return mistake
}

// finish wraps the new body in the layers of the old one, and checks the result. It returns the new
// body as people see it.
func (s *editing) finish(e *Edited, inner []byte, changed bool) (*Document, error) {
	e.Body = s.body
	if !bytes.Equal(inner, s.doc.Body) {
		var doubts []Check
		var err error
		if e.Body, doubts, err = wrap(s.layers(), inner, s.limits.Left()); err != nil {
			return nil, err
		}
		e.Checks = append(e.Checks, doubts...)
	}
	if err := checkSize(e.Body, s.limits.Bytes); err != nil {
		return nil, err
	}
	if text := layersText(s.doc.Layers); text != "" {
		e.addPassed(text)
	}
	e.addPassed(fmt.Sprintf("%s to send (limit %s)", deadletter.Bytes(len(e.Body)), deadletter.Bytes(int(s.limits.Bytes))))
	if !changed {
		e.addWarning(nothingChanged)
		return s.doc, nil
	}
	e.warnOfHeaders(s.body, s.hints.Headers)
	again := s.decoder.Decode(e.Body, s.hints, s.limits.Left())
	if again.Kind != s.doc.Kind || again.Type != s.doc.Type || !sameLayers(again.Layers, s.doc.Layers) ||
		!bytes.Equal(again.Body, inner) {
		what := again.typeOrKind()
		if text := layersText(again.Layers); text != "" {
			what += " in " + strings.TrimSuffix(text, ", as received")
		}
		e.addWarning("On its own, the new body would be read as something else: " + what)
	}
	return again, nil
}

// layers returns the layers of the body. A body in ASCII is also in the charset that the letter
// declares, if the charset contains ASCII, and an edit must be written in it.
func (s *editing) layers() []Layer {
	list := s.doc.Layers
	isText := func(l Layer) bool { return l.encoding != nil || l.text }
	isASCII := func(b []byte) bool { return !slices.ContainsFunc(b, func(c byte) bool { return c >= utf8.RuneSelf }) }
	at, content := len(list), s.doc.Body
	if i := slices.IndexFunc(list, isEnvelope); i >= 0 {
		at, content = i, list[i].outer
	}
	if s.doc.Kind == Protobuf || slices.ContainsFunc(list, isText) || !isASCII(content) {
		return list
	}
	c := s.decoder.reading(&Document{Body: content}, s.hints, s.limits.Left()).declaredCharset()
	if l := (Layer{Name: c.name, encoding: c.enc}); c.enc != nil && l.writes(content, content) {
		return slices.Insert(slices.Clone(list), at, l)
	}
	return list
}

// isEnvelope reports whether a layer is JSON around the data.
func isEnvelope(l Layer) bool { return len(l.After) > 0 && l.Name != "base64" }

// sameLayers reports whether two bodies have the same kinds of layers. Charsets do not count,
// because a text without special characters is the same in all of them.
func sameLayers(a, b []Layer) bool {
	isCharset := func(l Layer) bool { return l.encoding != nil }
	a, b = slices.DeleteFunc(slices.Clone(a), isCharset), slices.DeleteFunc(slices.Clone(b), isCharset)
	return slices.EqualFunc(a, b, func(a, b Layer) bool { return a.Name == b.Name })
}

func checkSize(body []byte, limit int64) error {
	if int64(len(body)) > limit {
		return &EditError{
			Message: fmt.Sprintf(
				"the new body has %s, and at most %s can be sent: make it smaller", deadletter.Bytes(len(body)),
				deadletter.Bytes(int(limit)),
			),
		}
	}
	return nil
}
