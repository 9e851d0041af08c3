package payload

import (
	"cmp"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Kind is what a body, or a value in it, is. Pages colour by it.
type Kind string

// Kinds of bodies.
const (
	Protobuf Kind = "protobuf"
	JSON     Kind = "json"
	Text     Kind = "text"
	Binary   Kind = "binary"
	Empty    Kind = "empty"
)

// Kinds of values.
const (
	String    Kind = "string"
	Number    Kind = "number"
	Bool      Kind = "bool"
	Bytes     Kind = "bytes"
	Enum      Kind = "enum"
	Message   Kind = "message" // a JSON object too
	List      Kind = "list"
	Map       Kind = "map"
	Timestamp Kind = "timestamp"
	Duration  Kind = "duration"
	Null      Kind = "null"
	Wire      Kind = "wire" // an unknown field: number and wire type are certain, the value is a guess
	More      Kind = "more" // no value: stands for what is not shown
)

// Document is a body as people read it. All its texts are safe to print in one go: control,
// bidirectional and zero-width characters are written as escapes. Masked values are masked in all
// of them, except in Body.
type Document struct {
	Kind Kind
	Size int // bytes as stored

	Type   string   // full name of the protobuf type it was decoded as, "" otherwise
	Chosen string   // how that type was found: "the type property"
	Set    string   // the descriptor set and version that has the type: "notify 1f2e3d4c"
	Also   []string // other sets that define the type differently
	Named  string   // the type that the letter or a binding names, also when it could not be used

	// ShapeOnly says that nothing in the letter names Type, not even nearly: the shape of the body
	// fits it, and what its queue had before may.
	ShapeOnly bool

	Ranking Ranking // the registered types that read the body, when nothing named one; without a verdict when they were not compared

	// Problem is one sentence on why the body is not shown as what the letter says it is, such as
	// "acme.v1.X (the type property) is not registered"; "" when it is.
	Problem  string
	TooLarge bool // "too large to decode safely": Problem says which limit

	Body   []byte  // the peeled body; NOT masked
	Layers []Layer // what was peeled, outermost first
	Steps  []Step  // how it was read: everything that was tried, in order

	Fields      []Node // the tree, by field number; of a JSON body in the order of the body
	JSON        string // indented by two spaces; "" when there is none
	Text        string // of a text body, at most 64 KiB
	Notes       []string
	JSONProblem string // why there is no JSON of a body that was decoded, or which of its values are marked; safe to print

	Failure deadletter.Failure // what an envelope says of why the message was given up, and what it calls it; texts are masked, as written otherwise, and NOT made visible

	UnknownFields int // fields on the wire that the type does not know, on all levels; the JSON leaves them out
	UnknownBytes  int64
	Added         []deadletter.AddedField // fields beside its own that the type does not have, by number, at most deadletter.MaxAdded
	Masked        bool                    // something in the body is masked

	by        deadletter.Reading                       // of Type
	guarded   bool                                     // when nobody can read the body, it is hidden
	plausible []deadletter.FieldPath                   // by field numbers: what other types hide that the body may be of
	hideAll   bool                                     // the hex view must show nothing
	hidden    func(limit int, hide func(from, to int)) // tells the masked byte ranges of Body that begin below limit
}

// Layer is one encoding or envelope that was taken off: what it was, and what it takes to wrap
// another body the same way.
type Layer struct {
	Name   string // "base64", "gzip", "deflate", "bzip2", "zstd", "snappy", "Confluent", "CloudEvents", "MassTransit", "EasyNetQ error"
	Detail string // "standard alphabet, padded"; may be ""
	Bytes  int    // size of what came out

	// The outer body is Before, the data as the rest says, After. Both are parts of the outer body,
	// and NOT masked.
	Before, After []byte  // white space around base64, the prefix of Confluent, the JSON around the data
	Quoted        bool    // the data, or its base64, is escaped as in a JSON string; the quotes are in Before and After
	Base64        *Base64 // the data is written as base64
	Bare          bool    // of deflate: without the header and checksum of zlib

	outer []byte // what it was taken off
}

// Outside returns what a layer was taken off, the outermost with 0: the body as it is stored. NOT
// masked; nil when there is no such layer.
func (d *Document) Outside(layer int) []byte {
	if layer < 0 || layer >= len(d.Layers) {
		return nil
	}
	return d.Layers[layer].outer
}

// Step is one line of "How it was read".
type Step struct {
	OK   bool
	Text string
}

// Node is one field, entry or element.
type Node struct {
	Number   int32  // field number; 0 in JSON and for entries and elements
	Name     string // field name as in the schema, "[pkg.name]" of an extension, "[0]" of an element, `"key"` of a map entry
	Value    string // as shown; strings with their quotes; "" for messages
	Note     string // said beside the value: "2 entries", "default, not on the wire", "16 B", how much of it is left out
	Kind     Kind
	Type     string // "string", "map<string, string>", the short name of a message or enum, the wire type of an unknown field
	Unknown  bool   // the type does not know this field
	Default  bool   // not on the wire, the default of a field without presence
	Masked   bool
	Ranges   []Range // its bytes in Body, with tags; several when it is there more than once. Of a JSON member with its name
	Children []Node

	text string // the value itself, masked, at most maxValue bytes; of scalars only
	left int    // bytes of the value that are not in it
}

// Range is a range of bytes, From included, To not.
type Range struct{ From, To int }

func (d *Document) step(ok bool, text string) { d.Steps = append(d.Steps, Step{ok, text}) }

func (d *Document) note(text string) { d.Notes = append(d.Notes, text) }

// problem keeps the first.
func (d *Document) problem(text string) {
	if d.Problem == "" {
		d.Problem = text
	}
}

// tooLarge turns the document into one of bytes only.
func (d *Document) tooLarge(why string) {
	d.Kind, d.TooLarge = Binary, true
	d.Problem = "too large to decode safely: " + why
	d.step(false, d.Problem)
	d.hideUnread()
}

// hideUnread hides a body that was not decoded, when it may hold what is masked.
func (d *Document) hideUnread() {
	if d.guarded && len(d.Body) > 0 {
		d.Masked, d.hideAll = true, true
	}
}

// what is what the body was read as, in a word.
func (d *Document) what() string { return cmp.Or(d.Type, string(d.Kind)) }

// Reading is how the body was read.
func (d *Document) Reading() deadletter.Reading {
	switch {
	case d.Type != "":
		return d.by
	case d.TooLarge:
		return deadletter.ReadTooLarge
	case d.Kind == JSON:
		return deadletter.ReadAsJSON
	case d.Kind == Text:
		return deadletter.ReadAsText
	case d.Kind == Empty:
		return deadletter.ReadEmpty
	case d.Ranking.Verdict == Ambiguous:
		return deadletter.ReadAmbiguous
	}
	return deadletter.ReadUnknown
}

// Value returns the value at a path of names such as "to.address", "labels.env" (an entry of a map)
// or "items.[0].sku", as text without quotes: numbers in decimal, enums by name, bytes in hex,
// times as on the page. Without an index, "items.sku" is that of the first element that has one. A
// masked value is returned masked, and masked says so. Only what the tree shows is found, and a
// value has at most 4 KiB. Keys and JSON names may have dots in them.
func (d *Document) Value(path string) (value string, masked, ok bool) {
	if n := lookup(d.Fields, path); n != nil {
		return n.text, n.Masked, true
	}
	return "", false, false
}

func lookup(nodes []Node, path string) *Node {
	for i := range nodes {
		n := &nodes[i]
		if n.Unknown || n.Kind == More {
			continue
		}
		name := n.Key()
		if name == path && n.scalar() {
			return n
		}
		rest, ok := strings.CutPrefix(path, name+".")
		if !ok {
			continue
		}
		if found := lookup(n.Children, rest); found != nil {
			return found
		}
		if n.Kind != List {
			continue
		}
		for j := range n.Children {
			if found := lookup(n.Children[j].Children, rest); found != nil {
				return found
			}
		}
	}
	return nil
}

// Key is the name as paths have it: of a map entry, the key without its quotes.
func (n *Node) Key() string {
	if len(n.Name) >= 2 && n.Name[0] == '"' {
		return n.Name[1 : len(n.Name)-1]
	}
	return n.Name
}

// Scalar returns a value that is neither a message, a list or a map nor one of an unknown field.
func (n *Node) Scalar() (text string, ok bool) { return n.text, n.scalar() }

func (n *Node) scalar() bool {
	switch n.Kind {
	case Message, List, Map, More, Wire:
		return false
	}
	return true
}
