package payload

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/budget"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/descriptor"
	"github.com/deadletteroffice/dlo/internal/payload/payloadtest"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
)

// registryOf returns a registry of sets. Each set is a text with the definitions of its messages.
func registryOf(t testing.TB, sets ...string) *descriptor.Registry {
	t.Helper()
	r := descriptor.NewRegistry()
	for i, source := range sets {
		fields := map[string]descriptorpb.FieldDescriptorProto_Type{"string": 9, "int64": 3, "bytes": 12, "bool": 8}
		file := &descriptorpb.FileDescriptorProto{
			Name: proto.String("a.proto"), Package: proto.String("a"), Syntax: proto.String("proto3"),
		}
		for _, line := range strings.Split(source, ";") { // "Name string int64"
			words := strings.Fields(line)
			m := &descriptorpb.DescriptorProto{Name: &words[0]}
			for n, w := range words[1:] {
				m.Field = append(m.Field, &descriptorpb.FieldDescriptorProto{
					Name: proto.String(string(rune('a' + n))), Number: proto.Int32(int32(n + 1)),
					Type: fields[w].Enum(), Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(),
				})
			}
			file.MessageType = append(file.MessageType, m)
		}
		b, err := proto.Marshal(&descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{file}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.AddSet(string(rune('a'+i)), b); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// threeFields is {1: "hello", 2: 300, 3: "world"}.
var threeFields = []byte("\x0a\x05hello\x10\xac\x02\x1a\x05world")

func TestMatch(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		types   []string
		body    []byte
		h       Hints
		verdict Verdict
		first   string
		why     string
	}{
		{name: "one type", types: []string{"A string int64 string"}, body: threeFields, verdict: Matched, first: "a.A"},
		{
			name:    "alike",
			types:   []string{"A string int64 string; B string int64 string"},
			body:    threeFields,
			verdict: Ambiguous,
			first:   "a.A",
			why:     "ambiguous: a.A, a.B",
		},
		{
			name:    "one has more fields",
			types:   []string{"A string int64 string bytes bool bytes; B string int64 string"},
			body:    threeFields,
			verdict: Ambiguous,
			first:   "a.B",
			why:     "ambiguous: a.B, a.A",
		},
		{
			name:    "seen before",
			types:   []string{"A string int64 string; B string int64 string"},
			body:    threeFields,
			h:       Hints{Prior: map[string]float64{"a.B": 1}},
			verdict: Matched,
			first:   "a.B",
		},
		{
			name:    "a type property like the name",
			types:   []string{"Ab string int64 string; UserCreated string int64 string"},
			body:    threeFields,
			h:       Hints{Type: "user.created"},
			verdict: Matched,
			first:   "a.UserCreated",
		},
		{
			name:    "what was before does not fit",
			types:   []string{"A string int64 string; B int64 string"},
			body:    threeFields,
			h:       Hints{Prior: map[string]float64{"a.B": 1}},
			verdict: Matched,
			first:   "a.A",
		},
		{
			name:    "priors that are no weights",
			types:   []string{"A string int64 string; B string int64 string"},
			body:    threeFields,
			h:       Hints{Prior: map[string]float64{"a.A": -5, "a.B": 1e300}},
			verdict: Matched,
			first:   "a.B",
		},
		{
			name:    "texts have no control characters",
			types:   []string{"A string int64 string; B string int64 bytes"},
			body:    []byte("\x0a\x05hello\x10\xac\x02\x1a\x05\x01\x02\x03\x04\x00"),
			verdict: Unknown,
			first:   "a.B",
			why:     "the body says too little to tell types apart",
		},
		{
			name:    "too many unknown bytes",
			types:   []string{"A string int64"},
			body:    append(bytes.Clone(threeFields), "\x22\x10xxxxxxxxxxxxxxx\x01"...),
			verdict: Unknown,
		},
		{
			name:    "two sets define it alike",
			types:   []string{"A string int64 string", "A string int64 string"},
			body:    threeFields,
			verdict: Matched,
			first:   "a.A",
		},
		{
			name:    "two sets define it differently",
			types:   []string{"A string", "A string int64 string"},
			body:    threeFields,
			verdict: Matched,
			first:   "a.A",
		},
		{
			name:    "too short",
			types:   []string{"A string int64 string"},
			body:    []byte{8, 1, 16, 1},
			verdict: Unknown,
			why:     "the body is too short to tell",
		},
		{
			name:    "too little",
			types:   []string{"A string int64 string"},
			body:    []byte("\x10\x01\x1a\x05\xc3\xa9\xc3\xa9x"),
			verdict: Unknown,
			why:     "the body says too little to tell types apart",
		},
		{
			name:    "too little, and alike",
			types:   []string{"A string string; B string string"},
			body:    []byte("\x0a\x0faud-c2i3x27x-19\x12\x09Grace 740"),
			verdict: Ambiguous,
			first:   "a.A",
			why:     "ambiguous: a.A, a.B",
		},
		{name: "empty", types: []string{"A string"}, verdict: Unknown, why: "the body is empty"},
		{
			name:    "text",
			types:   []string{"A string"},
			body:    []byte("\n\x20" + strings.Repeat("x", 32)),
			verdict: Ambiguous,
			why:     "ambiguous: a.A, or text",
		},
		{
			name:    "tagged texts of several types",
			types:   []string{"A string; B string"},
			body:    []byte("\n\x20" + strings.Repeat("x", 32)),
			verdict: Ambiguous,
			why:     "ambiguous: a.A, a.B, or text",
		},
		{
			name:    "tagged texts that were of one type",
			types:   []string{"A string string; B string string"},
			body:    []byte("\n\x20" + strings.Repeat("x", 32) + "\x12\x20" + strings.Repeat("y", 32)),
			h:       Hints{Prior: map[string]float64{"a.B": 1}},
			verdict: Matched,
			first:   "a.B",
		},
		{
			name:    "tagged texts of no type",
			types:   []string{"A int64"},
			body:    []byte("\n\x20" + strings.Repeat("x", 32)),
			verdict: Unknown,
			why:     "no type can decode it",
		},
		{
			name:    "a text that ends before its length",
			types:   []string{"A string"},
			body:    []byte("\n\x21" + strings.Repeat("x", 32)),
			verdict: Unknown,
			why:     "the body is text",
		},
		{
			name:    "common before",
			types:   []string{"A string int64 string; B string int64 string; C string int64 string"},
			body:    threeFields,
			h:       Hints{Prior: map[string]float64{"a.C": 0.6, "a.B": 0.4}},
			verdict: Ambiguous,
			first:   "a.C",
			why:     "ambiguous: a.C, a.B, a.A",
		},
		{
			name:    "JSON",
			types:   []string{"A string"},
			body:    []byte(`{"a": "hello", "b": 300}`),
			verdict: Unknown,
			why:     "the body is text",
		},
		{name: "no types", body: threeFields, verdict: Unknown, why: "no types are registered"},
		{
			name:    "noise",
			types:   []string{"A string"},
			body:    []byte{0xff, 0xfe, 0, 0, 1, 2, 3, 4, 5},
			verdict: Unknown,
			why:     "it does not read as protobuf of any type",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := budget.NewBudget()
			got := (&Decoder{Types: registryOf(t, tt.types...)}).Match(tt.body, tt.h, b)
			checkWithin(t, b)
			if got.Verdict != tt.verdict ||
				tt.first != "" && (len(got.Matches) == 0 || got.Matches[0].Type != tt.first) ||
				tt.why != "" && got.Why != tt.why {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestMatchSaysWhy(t *testing.T) {
	t.Parallel()
	got := (&Decoder{Types: schemas()}).Match(sample(t), Hints{}, nil)
	if want := "13 of 157 B in 1 field unknown, 8 of 9 fields present, 1 plausible time"; len(got.Matches) != 1 ||
		strings.Join(got.Matches[0].Why, ", ") != want {
		t.Errorf("got %+v", got)
	}
	doc := (&Decoder{
		Types: registryOf(t, "A string int64 string; B string int64 string"),
	}).Decode(encodeStd(threeFields), Hints{}, nil)
	if doc.Kind != Binary || doc.Ranking.Verdict != Ambiguous ||
		!strings.Contains(stepsText(doc), "matched against 2 types: ambiguous: a.A, a.B") || doc.Problem != "" {
		t.Errorf("got %s, %q", doc.Kind, stepsText(doc))
	}
}

func TestComparisonDoesNotAllocate(t *testing.T) {
	body := sample(t)
	x := typesOf(schemas())
	var m matcher
	var e evidence
	round := func() {
		if !m.tree.read(body, 1000) {
			t.Fatal("no message")
		}
		m.outline.fill(&m.tree)
		c := comparison{tree: &m.tree, unread: int64(len(body))}
		for i := range x.types {
			if !m.outline.refuses(&x.signatures[i], c.unread) && c.decodes(x.types[i].shape, &e) {
				_ = e.score()
			}
		}
	}
	round()
	if n := testing.AllocsPerRun(10, round); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestMatchOfManyTypes compares a body with a hundred thousand types that can all decode it. The
// budget must end the comparison, and no type may be reported as a match.
func TestMatchOfManyTypes(t *testing.T) {
	if testing.Short() {
		t.Skip("builds 100,000 types")
	}
	r := descriptor.NewRegistry()
	one := typesOf(registryOf(t, "A string int64 string")).types[0]
	x := &typeIndex{names: 100_000}
	for range x.names {
		x.types = append(x.types, one)
		x.signatures = append(x.signatures, one.shape.signature())
	}
	r.Memo(indexKey{}, func([]*descriptor.Resolver) any { return x })
	body := bytes.Repeat(threeFields, 20)
	b := budget.NewBudget()
	got := (&Decoder{Types: r}).Match(body, Hints{}, b)
	checkWithin(t, b)
	if got.Verdict == Matched || got.Left == 0 || b.Used().Fields > maxVisits+maxWireFields {
		t.Errorf("%+v, used %+v", got, b.Used())
	}
}

// TestTypesThatAreNotCompared covers a large body for which the budget is not enough to compare all
// types. The types that are not compared must be counted and named. Types that the queue had before
// must still be compared, and the body may match one of them. It must not match if a type that was
// not compared could fit almost as well.
func TestTypesThatAreNotCompared(t *testing.T) {
	t.Parallel()
	r := registryOf(
		t, "A string int64 string; B string int64 string; C string int64 string; D int64", "C string int64 string",
	)
	var tree wireTree
	tree.read(threeFields, 100)
	match := func(h Hints) Ranking {
		b := budget.NewBudget()
		b.Fields = 2 * (tree.fields + int64(len(tree.nodes))) // enough for one type
		return (&Decoder{Types: r}).Match(threeFields, h, b)
	}
	if got := match(Hints{}); got.Verdict != Ambiguous || got.Tied != 1 || got.Left != 2 || got.Why != "too large to compare with 2 of 4 types: from a.B to a.C" {
		t.Errorf("%+v", got)
	}
	if got := match(Hints{Prior: map[string]float64{"a.C": 1}}); got.Verdict != Matched || got.Matches[0].Type != "a.C" || got.Left != 1 {
		t.Errorf("with what was before: %+v", got)
	}
	if got := match(Hints{Prior: map[string]float64{"a.C": 1}, Type: "b"}); got.Verdict != Ambiguous {
		t.Errorf("one that is left out is named nearly so: %+v", got)
	}
}

// TestHostileBodiesAreMatchedInBounds checks how much memory dlo uses to match a body with types.
// Whatever the body contains, this must never be more than the sum of two amounts: the budget, and
// the memory that is kept for the next body.
func TestHostileBodiesAreMatchedInBounds(t *testing.T) {
	const size = 16_000_000
	groups := func(depth, inside int) []byte {
		b := bytes.Repeat([]byte{0x08, 1}, inside/2)
		return append(append(bytes.Repeat([]byte{0x0b}, depth), b...), bytes.Repeat([]byte{0x0c}, depth)...)
	}
	bodies := map[string][]byte{
		"empty sub-messages": bytes.Repeat([]byte{0x0a, 0x00}, size/2),
		"just few enough fields": bytes.Repeat(
			append([]byte{0x0a, 0x4e}, bytes.Repeat([]byte{0x01}, 78)...), 190_000,
		),
		"one text":                   payloadtest.LengthPrefixed(1, bytes.Repeat([]byte{'x'}, size-100)),
		"one text that is a message": payloadtest.LengthPrefixed(1, bytes.Repeat([]byte{'P', '1'}, size/2-100)),
		"packed":                     payloadtest.LengthPrefixed(9, bytes.Repeat([]byte{1}, size-100)),
		"nested":                     payloadtest.Nested(bytes.Repeat([]byte{0x08, 1}, size/2-1000), 0x0a, 90),
		"nested texts":               payloadtest.Nested(bytes.Repeat([]byte{'x'}, size-1000), 0x0a, 90),
		"groups":                     groups(5000, size-20_000),
		"groups that do not end":     bytes.Repeat([]byte{0x0b}, size),
	}
	for name, body := range bodies {
		if testing.Short() {
			body = body[:len(body)/100]
		}
		d := &Decoder{Types: invented()}
		typesOf(d.Types)
		b := budget.NewBudget()
		start := time.Now()
		var got Ranking
		used := payloadtest.Allocated(func() { got = d.Match(body, Hints{ContentType: "application/protobuf"}, b) })
		checkWithin(t, b)
		t.Logf("%s: %v, %s, %s", name, time.Since(start), deadletter.Bytes(int(used)), got.Verdict)
		if used > 2<<20 {
			t.Errorf("%s: allocated %s, %+v", name, deadletter.Bytes(int(used)), got)
		}
	}
}
