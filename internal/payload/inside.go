package payload

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/deadletteroffice/dlo/internal/budget"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Inside is a message that a JSON body holds as base64 in one of its members, as rows of outbox
// tables do.
type Inside struct {
	Path   string          `json:"path"` // of the member, without the indexes of lists
	Type   string          `json:"type"`
	Chosen string          `json:"chosen"` // how the type was found
	Set    string          `json:"set"`
	JSON   json.RawMessage `json:"json"` // masked; null = there is none
}

const (
	maxInside = 8   // maximum number of texts of a body that are compared with types
	minInside = 16  // in characters; shorter texts are often words
	maxPath   = 255 // in bytes; no binding has a longer path
)

// insides finds the messages in a JSON body.
type insides struct {
	*reading
	spare *budget.Budget // the messages share a budget, so that the body around them can always be read
	seen  map[insideKey]inside
	at    *memberPath // of the text that is being read
}

type insideKey struct{ path, text string }

// memberPath is the path of a member, as a chain from the member to the outermost one.
type memberPath struct {
	up   *memberPath
	name string
}

// String returns the path, or "" if it has more than maxTreeDepth names or a very long one. No
// binding has such a path.
func (m *memberPath) String() string {
	var names []string
	for ; m != nil; m = m.up {
		if names = append(names, m.name); len(names) > maxTreeDepth || len(m.name) > maxAttribute {
			return ""
		}
	}
	slices.Reverse(names)
	return strings.Join(names, ".")
}

type inside struct {
	doc    *Document // nil = the text holds no message
	hidden bool      // the text may contain something that a mask hides
}

// insides returns nil if no types are known and nothing may be hidden. If types may hide fields,
// texts at the place and below it may be hidden.
func (r *reading) insides(root *place) *insides {
	if len(typesOf(r.Types).types) == 0 && !r.Mask.hides() {
		return nil
	}
	root.m.redacts = root.m.redacts || r.mayHideFields()
	if around := r.around; around != nil {
		root.path = around.at
		return &insides{r, around.spare, around.seen, nil}
	}
	return &insides{r, r.budget.Left(), map[insideKey]inside{}, nil}
}

// read reads a text at a place of the body. It is a message only if a binding names the type of the
// member, or if exactly one registered type fits. JSON and texts in base64 are read for the masks.
func (s *insides) read(p place, text string) (found inside) {
	if s == nil || len(text) < minInside || p.hidden {
		return inside{}
	}
	shape := base64Shape([]byte(text))
	if shape.why != "" {
		return inside{}
	}
	unread := inside{hidden: s.Mask.hides() || s.mayHideFields()}
	path := p.path.String()
	key := insideKey{path, text}
	if found, ok := s.seen[key]; ok {
		return found
	}
	if s.spare.TakeMemory(2*int64(len(text))) != nil {
		return unread
	}
	raw := make([]byte, len(shape.text)/4*3+3)
	raw = raw[:max(decodeBase64(raw, shape.text), 0)]
	isText := printable(raw) && !taggedTexts(raw) || beginsAsJSON(raw)
	if len(raw) == 0 || isText && !unread.hidden || !isText && !wireShaped(raw, 1000) && compression(raw) == "" &&
		!beginsAsFrame(raw, shape.text) {
		return inside{}
	}
	if len(s.seen) >= maxInside || path == "" && p.path != nil {
		return unread
	}
	doc := &Document{Body: raw, Size: len(raw)}
	s.at = p.path
	r := &reading{Decoder: s.Decoder, doc: doc, budget: s.spare, around: s, outer: p.spot}
	r.useHints(Hints{Queue: s.hints.Queue, Key: s.hints.Key, Path: path, hidden: s.hints.hidden})
	r.peelByLooks()
	if !doc.TooLarge {
		r.read()
	}
	found.hidden = doc.Masked || r.masked
	s.doc.doubtful = s.doc.doubtful || doc.doubtful
	bindable := path != "" && len(path) <= maxPath && visible(path, "") == path && !slices.Contains(s.doc.Members, path)
	if bindable && (doc.Kind == Protobuf || doc.Ranking.Verdict == Ambiguous || plainlyMessage(doc.Body)) {
		s.doc.Members = append(s.doc.Members, path)
	}
	if doc.Kind == Protobuf {
		found.doc = doc
		in := Inside{Path: path, Type: doc.Type, Chosen: doc.Chosen, Set: doc.Set}
		if doc.JSON != "" {
			in.JSON = json.RawMessage(doc.JSON)
		}
		s.doc.Inside = append(s.doc.Inside, in)
	} else if doc.TooLarge || r.mayMatch() && r.mayHideAny(doc.Body) {
		found.hidden = found.hidden || unread.hidden
	}
	s.seen[key] = found
	return found
}

// show puts the fields of a message into the node of the text that holds it.
func (s inside) show(t *tree, n *Node) {
	if s.doc == nil {
		return
	}
	n.Type = "base64 of " + s.doc.Type[strings.LastIndexByte(s.doc.Type, '.')+1:]
	n.addNote(s.doc.Type + ", by " + s.doc.Chosen + ", set " + s.doc.Set)
	if s.doc.UnknownFields > 0 {
		n.addNote(deadletter.Plural(s.doc.UnknownFields, "unknown field", "unknown fields"))
	}
	n.Children = t.adopt(s.doc.Fields)
}

// adopt returns nodes of another tree, as far as they have room in this one. Their ranges are of
// another body, so they are left out.
func (t *tree) adopt(nodes []Node) (kept []Node) {
	for _, n := range nodes {
		if t.takeNode() {
			n.Ranges, n.Children = nil, t.adopt(n.Children)
			t.shown += len(n.Value)
			kept = append(kept, n)
		}
	}
	return kept
}
