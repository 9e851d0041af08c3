package payload

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"google.golang.org/protobuf/encoding/protowire"
)

// These are the limits for the guessed text of a value whose type is unknown. The text must fit
// into one line of a page.
const (
	maxGuess       = 200 // the maximum size in bytes
	maxGuessFields = 6
	maxGuessDepth  = 3
)

// unknownNode returns the node of a field that its type does not know. The number and the wire type
// are certain. The rest is marked as a guess.
func (t *tree) unknownNode(it *item, at spot) Node {
	n := Node{
		Number:  int32(it.number),
		Name:    "unknown",
		Unknown: true,
		Kind:    Wire,
		Type:    wireName(it.wire),
		Ranges:  wholeRanges(it.there),
	}
	g := &guess{}
	n.Value = g.value(it.number, it.wire, it.raw, at, 1)
	n.Masked = g.masked
	t.masked = t.masked || g.masked
	t.shown += len(n.Value)
	return n
}

func wireName(t protowire.Type) string {
	switch t {
	case protowire.VarintType:
		return "varint"
	case protowire.Fixed32Type:
		return "fixed32"
	case protowire.Fixed64Type:
		return "fixed64"
	case protowire.BytesType:
		return "length-delimited"
	case protowire.StartGroupType:
		return "group"
	}
	return "?"
}

type guess struct {
	masked bool
	spent  int
}

// value describes the parameter "raw", which is the value of a field without its tag. The result is
// safe to print and has at most about maxGuess bytes.
func (g *guess) value(num protowire.Number, typ protowire.Type, raw []byte, at spot, depth int) string {
	if at.hidden {
		g.masked = true
		return Masked
	}
	if s, other, ok := wireNumber(typ, raw); ok {
		if other != "" && (typ != protowire.VarintType || depth == 1) {
			s += " or " + other
		}
		return g.text(at, s)
	}
	if typ == protowire.StartGroupType {
		inner, n := protowire.ConsumeGroup(num, raw)
		if n < 0 {
			return "damaged"
		}
		return "group: " + g.fields(inner, at, depth)
	}
	b, n := protowire.ConsumeBytes(raw)
	switch {
	case n < 0:
		return "damaged"
	case len(b) == 0:
		return "empty"
	}
	if shown, masked := at.apply(string(b[:min(len(b), maxShown)])); masked {
		g.masked = true
		shown, _ = cut(visible(shown, ""), maxGuess)
		return shown
	}
	if printable(b) {
		s, left := cut(string(b), maxGuess)
		s = quoted(s)
		if left > 0 {
			s += " and " + deadletter.Bytes(left) + " more"
		}
		if depth == 1 {
			return "reads as text: " + s
		}
		return s
	}
	if depth <= maxGuessDepth && wireShaped(b, 1000) {
		s := g.fields(b, at, depth)
		if depth == 1 {
			return "reads as message: " + s
		}
		return "{" + s + "}"
	}
	return deadletter.Bytes(len(b)) + ": " + hexGroups(b[:min(len(b), 16)]) + ellipsis(len(b) > 16)
}

// wireNumber returns a value that is not length-delimited as an unsigned number, and as the other
// number that it may plausibly be, or "". The result "ok" is false for other values.
func wireNumber(typ protowire.Type, raw []byte) (text, other string, ok bool) {
	switch typ {
	case protowire.VarintType:
		v, _ := protowire.ConsumeVarint(raw)
		if v > math.MaxInt64 {
			other = strconv.FormatInt(int64(v), 10)
		}
		return strconv.FormatUint(v, 10), other, true
	case protowire.Fixed32Type:
		v := binary.LittleEndian.Uint32(raw)
		return strconv.FormatUint(uint64(v), 10), plausibleText(float64(math.Float32frombits(v)), 32), true
	case protowire.Fixed64Type:
		v := binary.LittleEndian.Uint64(raw)
		return strconv.FormatUint(v, 10), plausibleText(math.Float64frombits(v), 64), true
	}
	return "", "", false
}

// fields describes the fields of a message: `1: "batsh", 2: 2002`.
func (g *guess) fields(b []byte, at spot, depth int) string {
	var w strings.Builder
	i := 0
	for num, f := range rawFields(b) {
		if i > 0 {
			w.WriteString(", ")
		}
		if i == maxGuessFields || w.Len()+g.spent > maxGuess {
			w.WriteString("…")
			break
		}
		fmt.Fprintf(&w, "%d: %s", num, g.value(num, f.typ, f.raw, at, depth+1))
		i++
	}
	g.spent += w.Len()
	return w.String()
}

func (g *guess) text(at spot, s string) string {
	shown, masked := at.apply(s)
	g.masked = g.masked || masked
	return visible(shown, "")
}

func ellipsis(more bool) string {
	if more {
		return "…"
	}
	return ""
}
