package payload

import (
	"cmp"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"golang.org/x/text/encoding"
)

// Kind is the kind of a body or of a value in it. Pages use it for colours.
type Kind string

// These are the kinds of bodies.
const (
	Protobuf Kind = "protobuf"
	JSON     Kind = "json"
	Text     Kind = "text"
	Binary   Kind = "binary"
	Empty    Kind = "empty"
)

// These are the kinds of values.
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
	Wire      Kind = "wire" // an unknown field: its number and wire type are certain, but its value is a guess
	More      Kind = "more" // not a value: stands for the rest, which is omitted
)

// Document is a decoded body in the form in which people read it. All its texts are safe to print:
// control, bidirectional and zero-width characters are escaped. Masked values are masked everywhere
// except in Body.
type Document struct {
	Kind Kind
	Size int // stored size in bytes

	Type   string   // full name of the protobuf type with which the body was decoded; "" = none
	Chosen string   // how that type was found, such as "the type property"
	Set    string   // set and version of the type: "notify 1f2e3d4c"
	Also   []string // other sets that define the type differently

	// ShapeOnly means that dlo chose the Type because it fits the shape of the body. Nothing in the
	// letter names this type or one with a similar name. The earlier letters of the queue may have
	// helped to choose it.
	ShapeOnly bool

	// if nothing names a type, the registered types that can decode the body; no verdict = they
	// were not compared
	Ranking Ranking

	// Problem is a sentence that says why the body is not shown in the form that the letter
	// declares, such as "acme.v1.X (the type property) is not registered". If the body is shown in
	// that form, Problem is "".
	Problem  string
	NoSchema bool // the bytes are those of a message, and there is no definition of a type for them
	TooLarge bool // the body is "too large to decode safely"; Problem names the limit

	Body   []byte  // the body without its layers; NOT masked
	Layers []Layer // the layers that were removed, outermost first
	Steps  []Step  // how the body was read: everything that was tried, in order

	Fields      []Node // the tree: fields by number for protobuf, members in the order of the body for JSON
	JSON        string // indented by two spaces; "" = there is no JSON
	Text        string // the text of a text body, at most 64 KiB
	Notes       []string
	JSONProblem string // why a decoded body has no JSON, or which of its values it shows as null; safe to print

	// the failure and the message type that an envelope reports; texts are masked, but otherwise
	// unchanged and NOT safe to print
	Failure deadletter.Failure

	Inside  []Inside // messages in members of a JSON body
	Members []string // paths of the members that hold messages, also of those whose type is unknown

	UnknownFields int // number of fields on the wire that the type does not know, at all levels; the JSON omits them
	UnknownBytes  int64
	// top-level fields that the type does not have, sorted by number, at most deadletter.MaxAdded
	Added  []deadletter.AddedField
	Masked bool // part of the body is masked

	// the type that the letter or a binding names, even if it could not be used; NOT masked
	named       string
	by          deadletter.Reading // how Type was found
	guarded     bool               // the body is hidden if it cannot be decoded
	doubtful    bool               // hidden because its type is a guess
	withoutJSON int                // number of values that have no JSON form, and of Anys whose content is not registered
}

// Layer is an encoding or envelope that was removed from a body. It contains everything that is
// needed to wrap another body in the same way.
type Layer struct {
	// "base64", "gzip", "deflate", "bzip2", "zstd", "snappy", "AMQP 1.0", "gRPC", "Confluent",
	// "length-delimited", "CloudEvents", "MassTransit", "EasyNetQ error", or a charset such as
	// "ISO-8859-1" or "windows-1252 (guessed)"
	Name   string
	Detail string // for example "standard alphabet, padded"; may be ""
	Bytes  int    // size in bytes of the body after the layer is removed

	// The body with this layer consists of Before, the encoded data and After. The other fields say
	// how the data is encoded. Before and After are copied from the body with the layer and are NOT
	// masked.
	Before, After []byte  // white space around base64, the head of a frame, the JSON around the data
	Quoted        bool    // the data, or its base64, is a JSON string with escapes; the quotes are in Before and After
	Base64        *Base64 // the data is encoded as base64
	Bare          bool    // only for deflate: there is no zlib header and no checksum

	encoding encoding.Encoding // of a charset; nil = the layer is something else

	newHead func(n int) []byte // of a frame with lengths: makes Before for encoded data of n bytes
	text    bool               // the frame holds a text

	outer []byte // the body before the layer was removed
}

// Outside returns the body as it was before a layer was removed. Layer 0 is the outermost layer,
// for which Outside returns the stored body. The result is NOT masked. It is nil if there is no
// such layer.
func (d *Document) Outside(layer int) []byte {
	if layer < 0 || layer >= len(d.Layers) {
		return nil
	}
	return d.Layers[layer].outer
}

// Step is one line of the section "How it was read" on a page.
type Step struct {
	OK   bool   `json:"ok"`
	Text string `json:"text"`
}

// Node is a field, a map entry or a list element of a decoded body.
type Node struct {
	Number int32 // field number; 0 in JSON, and for entries and elements
	// name of the field in the schema, "[pkg.name]" for an extension, "[0]" for an element, `"key"`
	// for a map entry
	Name  string
	Value string // the value as it is shown; strings are in quotes; "" for messages
	// text beside the value: "2 entries", "default, not on the wire", "16 B", or how much of the
	// value is omitted
	Note string
	Kind Kind
	// "string", "map<string, string>", the short name of a message or enum, or the wire type of an
	// unknown field
	Type    string
	Unknown bool // the type does not know this field
	Default bool // the field is not on the wire: the value is the default of a field without presence
	Masked  bool
	// the bytes of the node in Body, including tags; several ranges if the field occurs more than
	// once; in JSON including the name
	Ranges   []Range
	Children []Node

	also string // the other name of a field in the schema, see deadletter.FieldPath; "" = none
	text string // only for scalars: the value itself, masked, at most maxValue bytes
	left int    // number of bytes of the value that text omits
}

// Range is a range of bytes. It includes the byte at From, and ends before the byte at To.
type Range struct{ From, To int }

func (d *Document) step(ok bool, text string) { d.Steps = append(d.Steps, Step{ok, text}) }

func (d *Document) note(text string) { d.Notes = append(d.Notes, text) }

// problem sets Problem, unless it is set already.
func (d *Document) problem(text string) {
	if d.Problem == "" {
		d.Problem = text
	}
}

// tooLarge turns the document into one that shows only bytes.
func (d *Document) tooLarge(why string) {
	d.Kind, d.TooLarge = Binary, true
	d.Problem = "too large to decode safely: " + why
	d.step(false, d.Problem)
	d.hideUnread()
}

// hideUnread hides a body that was not decoded, if it may contain masked values.
func (d *Document) hideUnread() {
	if d.guarded && len(d.Body) > 0 {
		d.Masked = true
	}
}

// typeOrKind returns the type of the body. Without a type, it returns the kind.
func (d *Document) typeOrKind() string { return cmp.Or(d.Type, string(d.Kind)) }

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

// Key returns the name of a node in paths. For a map entry, it is the key without quotes.
func (n *Node) Key() string {
	if len(n.Name) >= 2 && n.Name[0] == '"' {
		return n.Name[1 : len(n.Name)-1]
	}
	return n.Name
}

// Scalar returns the value of a node. The result "ok" is false if the node is a message, a list, a
// map or an unknown field.
func (n *Node) Scalar() (text string, ok bool) { return n.text, n.isScalar() }

func (n *Node) isScalar() bool {
	switch n.Kind {
	case Message, List, Map, More, Wire:
		return false
	}
	return true
}
