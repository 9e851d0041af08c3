package payload

import (
	"cmp"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Kind is the kind of a body or of a value in it. Pages use it for colours.
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
	Message   Kind = "message" // also a JSON object
	List      Kind = "list"
	Map       Kind = "map"
	Timestamp Kind = "timestamp"
	Duration  Kind = "duration"
	Null      Kind = "null"
	Wire      Kind = "wire" // unknown field: number and wire type are certain, the value is a guess
	More      Kind = "more" // not a value: represents the omitted rest
)

// Document is a decoded body in the form that people read. All its texts are safe to print:
// control, bidirectional and zero-width characters are escaped. Masked values are masked everywhere
// except in Body.
type Document struct {
	Kind Kind
	Size int // bytes as stored

	Type   string   // full name of the protobuf type it was decoded as, "" otherwise
	Chosen string   // how that type was found: "the type property"
	Set    string   // the descriptor set and version that has the type: "notify 1f2e3d4c"
	Also   []string // other sets that define the type differently
	Named  string   // the type named by the letter or a binding, even if it could not be used

	// ShapeOnly means that nothing in the letter names Type, not even approximately. Type was
	// chosen because it fits the shape of the body and possibly the queue's history.
	ShapeOnly bool

	Ranking Ranking // registered types that can decode the body, if nothing named a type; no verdict = not compared

	// Problem is one sentence on why the body is not shown as the letter declares it, such as
	// "acme.v1.X (the type property) is not registered". It is "" if the body is shown as declared.
	Problem  string
	TooLarge bool // "too large to decode safely": Problem says which limit

	Body   []byte  // the body without its layers; NOT masked
	Layers []Layer // layers removed, outermost first
	Steps  []Step  // how the body was read: everything that was tried, in order

	Fields      []Node // the tree, by field number; for JSON, in the body's order
	JSON        string // indented by two spaces; "" when there is none
	Text        string // of a text body, at most 64 KiB
	Notes       []string
	JSONProblem string // why a decoded body has no JSON, or which of its values are marked; safe to print

	Failure deadletter.Failure // an envelope's failure and message type; texts are masked but otherwise unchanged and NOT made visible

	UnknownFields int // fields on the wire that the type does not know, at all levels; missing from the JSON
	UnknownBytes  int64
	Added         []deadletter.AddedField // top-level fields that the type does not have, by number, at most deadletter.MaxAdded
	Masked        bool                    // part of the body is masked

	by        deadletter.Reading                       // of Type
	guarded   bool                                     // the body is hidden if it cannot be decoded
	plausible []deadletter.FieldPath                   // by field number: fields hidden by other types that may fit the body
	hideAll   bool                                     // the hex view must show no bytes
	hidden    func(limit int, hide func(from, to int)) // calls hide for the masked byte ranges of Body that begin below limit
}

// Layer is an encoding or envelope that was removed. It contains everything needed to wrap another
// body in the same way.
type Layer struct {
	Name   string // "base64", "gzip", "deflate", "bzip2", "zstd", "snappy", "Confluent", "CloudEvents", "MassTransit", "EasyNetQ error"
	Detail string // "standard alphabet, padded"; may be ""
	Bytes  int    // size after removing the layer

	// The outer body consists of Before, the encoded data and After. The other fields say how the
	// data is encoded. Before and After are parts of the outer body and NOT masked.
	Before, After []byte  // white space around base64, the Confluent prefix, the JSON around the data
	Quoted        bool    // the data or its base64 is escaped as a JSON string; the quotes are in Before and After
	Base64        *Base64 // the data is encoded as base64
	Bare          bool    // deflate only: without the zlib header and checksum

	outer []byte // the body including this layer
}

// Outside returns the body including a layer. Layer 0 is the outermost layer, for which Outside
// returns the stored body. The result is NOT masked. It is nil if the layer does not exist.
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

// Node is a field, map entry or list element.
type Node struct {
	Number   int32  // field number; 0 in JSON and for entries and elements
	Name     string // field name as in the schema, "[pkg.name]" of an extension, "[0]" of an element, `"key"` of a map entry
	Value    string // as shown; strings with their quotes; "" for messages
	Note     string // shown beside the value: "2 entries", "default, not on the wire", "16 B", how much of it is left out
	Kind     Kind
	Type     string // "string", "map<string, string>", the short name of a message or enum, the wire type of an unknown field
	Unknown  bool   // the type does not know this field
	Default  bool   // not on the wire: the default of a field without presence
	Masked   bool
	Ranges   []Range // its bytes in Body including tags; several if it occurs more than once; for JSON including the name
	Children []Node

	text string // the value itself, masked, at most maxValue bytes; scalars only
	left int    // bytes of the value missing from text
}

// Range is a range of bytes: From is included, To is not.
type Range struct{ From, To int }

func (d *Document) step(ok bool, text string) { d.Steps = append(d.Steps, Step{ok, text}) }

func (d *Document) note(text string) { d.Notes = append(d.Notes, text) }

// problem sets Problem unless it is already set.
func (d *Document) problem(text string) {
	if d.Problem == "" {
		d.Problem = text
	}
}

// tooLarge turns the document into one that only shows bytes.
func (d *Document) tooLarge(why string) {
	d.Kind, d.TooLarge = Binary, true
	d.Problem = "too large to decode safely: " + why
	d.step(false, d.Problem)
	d.hideUnread()
}

// hideUnread hides a body that was not decoded if it may contain masked values.
func (d *Document) hideUnread() {
	if d.guarded && len(d.Body) > 0 {
		d.Masked, d.hideAll = true, true
	}
}

// what describes in a word how the body was read.
func (d *Document) what() string { return cmp.Or(d.Type, string(d.Kind)) }

// Reading returns how the body was read.
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

// Value returns the value at a path of names such as "to.address", "labels.env" (a map entry) or
// "items.[0].sku". The value is text without quotes: numbers in decimal, enums by name, bytes in
// hex, times as on the page. Without an index, "items.sku" means the first element that has a
// value. For a masked value, Value returns the mask and sets masked. Value finds only values that
// the tree shows and that have at most 4 KiB. Keys and JSON names may contain dots.
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

// Key returns the name used in paths. For a map entry, it is the key without quotes.
func (n *Node) Key() string {
	if len(n.Name) >= 2 && n.Name[0] == '"' {
		return n.Name[1 : len(n.Name)-1]
	}
	return n.Name
}

// Scalar returns a node's value, unless it is a message, list, map or unknown field.
func (n *Node) Scalar() (text string, ok bool) { return n.text, n.scalar() }

func (n *Node) scalar() bool {
	switch n.Kind {
	case Message, List, Map, More, Wire:
		return false
	}
	return true
}
