package payload

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/deadletteroffice/dlo/internal/budget"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/descriptor"
	"github.com/deadletteroffice/dlo/internal/payload/payloadtest"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/dynamicpb"
)

// check fails the test if a document breaks a rule that applies to every document, whatever its
// body is.
func check(t *testing.T, d *Document, b *budget.Budget, size int) {
	t.Helper()
	checkWithin(t, b)
	if d.Kind == "" || d.Size != size {
		t.Errorf("kind %q, size %d", d.Kind, d.Size)
	}
	if len(d.Layers) > maxLayers {
		t.Errorf("%d layers", len(d.Layers))
	}
	if d.JSON != "" && !json.Valid([]byte(d.JSON)) {
		t.Errorf("JSON %q", d.JSON)
	}
	if n := countNodes(d.Fields); n > 2*maxNodes {
		t.Errorf("%d nodes", n)
	}
	s := Summary(d, "")
	if len(s) > maxSummary || s != visible(s, "") || !utf8.ValidString(s) {
		t.Errorf("summary %q", s)
	}
	if d.Text != visible(d.Text, "\n\t") {
		t.Errorf("text %q", d.Text)
	}
	for _, line := range append(d.Notes, d.Problem) {
		if line != visible(line, "") {
			t.Errorf("note %q", line)
		}
	}
	for _, st := range d.Steps {
		if st.Text != visible(st.Text, "") || st.Text == "" {
			t.Errorf("step %q", st.Text)
		}
	}
	var walk func([]Node)
	walk = func(nodes []Node) {
		for i := range nodes {
			n := &nodes[i]
			for _, s := range []string{n.Name, n.Value, n.Note, n.Type} {
				if s != visible(s, "") {
					t.Errorf("node %+v", *n)
				}
			}
			for _, r := range n.Ranges {
				if r.From < 0 || r.From >= r.To || r.To > len(d.Body) {
					t.Errorf("range %v of %d bytes", r, len(d.Body))
				}
			}
			walk(n.Children)
		}
	}
	walk(d.Fields)
	if rows := d.Hexdump(256).Rows; (len(rows) == 0) != (len(d.Body) == 0 || d.Masked) {
		t.Error("no hex")
	}
}

func FuzzDecode(f *testing.F) {
	seed := func(b []byte) {
		for _, typ := range []string{
			"", email, "Kinds", "acme.odd.Order", "Cart", "google.protobuf.Any", "google.protobuf.Struct",
		} {
			f.Add(b, "application/protobuf", "", typ)
		}
	}
	seed(sample(f))
	seed(encodeStd(sample(f)))
	seed(payloadtest.Gzipped(f, sample(f)))
	seed(bytes.Repeat([]byte{0x12, 0x00}, 100))
	seed(payloadtest.LengthPrefixed(9, bytes.Repeat([]byte{1}, 100)))
	seed(payloadtest.Nested([]byte{0x18, 1}, 0xa2, 110))
	seed([]byte{0x52, 0xff, 0xff, 0xff, 0xff, 0x07, 'x'})
	seed(append([]byte{0x18}, bytes.Repeat([]byte{0xff}, 11)...))
	seed([]byte(`{"a":[1,{"b":"\ud800"}],"a":null,"4111111111111111":"4111111111111111"}`))
	seed([]byte("text \u202e\x1b[31m"))
	seed(zstded(f, sample(f)))
	seed(snappied(f, sample(f)))
	seed(confluent(7, []byte{4, 2, 0}, sample(f)))
	f.Add(
		cloudEvent("application/protobuf", `"data_base64":"`+string(encodeStd(sample(f)))+`"`),
		"application/cloudevents+json", "", "",
	)
	f.Add([]byte(massTransitBody), "application/vnd.masstransit+json", "", "")
	f.Add([]byte(easyNetQBody), "application/json", "", easyNetQType)
	seed(encode(f, "Kinds", `{"detail": {"@type": "x/acme.notify.v1.Kinds", "tags": ["4111111111111111"]}, "extra": {"k": [1]}, "people": {"1": {}}, "at": "2026-01-01T00:00:00Z", "timeout": "1s"}`))
	seed(encode(f, "acme.odd.Order", `{"line": {"sku": "s"}, "extra": [{"n": 1}], "[acme.odd.remark]": "x"}`))
	for _, b := range [][]byte{
		section(0x77, short(0xc1, wire([]byte{4}, short(0xa3, []byte("id")), []byte{0x54, 7}, []byte{0x50, 1}, list([]byte{0x40})))),
		section(0x76, list(short(0xa0, sample(f)))), section(0x75, long(0xb0, sample(f))),
		section(0x77, long(0xf0, []byte{0, 0, 0, 2, 0x82, 1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8})),
		wire(section(0x75, short(0xa0, []byte("a"))), section(0x75, short(0xa0, []byte("b")))),
		grpc(delimited(sample(f))), grpcFlag(1, payloadtest.Gzipped(f, sample(f))),
		[]byte(`{"a": ["` + string(encodeStd(sample(f))) + `"]}`),
	} {
		f.Add(b, "", "", "amqp-1.0")
		f.Add(b, "", "", "")
	}
	f.Add([]byte("x"), `application/json; messageType="`, "gzip, base64,,br", "type.googleapis.com/")
	f.Fuzz(func(t *testing.T, body []byte, contentType, contentEncoding, typ string) {
		h := Hints{ContentType: contentType, ContentEncoding: contentEncoding, Type: typ, Queue: typ}
		bindings := []deadletter.Binding{{Queue: "*", Type: email}}
		kept := bytes.Clone(body)
		for _, mask := range []*Mask{nil, pattern} {
			b := budget.NewBudget()
			doc := (&Decoder{Types: schemas(), Bindings: bindings, Mask: mask}).Decode(body, h, b)
			check(t, doc, b, len(body))
			if strings.Contains(doc.Problem, "internal error") {
				t.Errorf("a panic was contained: %s", doc.Problem)
			}
		}
		if !bytes.Equal(body, kept) {
			t.Error("the body was changed")
		}
		tiny := &budget.Budget{Bytes: 64, Fields: 8, Depth: 3, Memory: 1 << 12}
		check(t, (&Decoder{Types: schemas(), Mask: pattern}).Decode(body, h, tiny), tiny, len(body))
	})
}

func FuzzPeel(f *testing.F) {
	seed := func(b []byte, contentEncoding string) { f.Add(b, contentEncoding, "", email) }
	seed(encodeStd(sample(f)), "")
	seed(payloadtest.Gzipped(f, sample(f)), "gzip")
	seed(encodeStd(encodeStd(encodeStd(encodeStd(sample(f))))), "base64,base64,base64,base64")
	seed([]byte("AAAA-_+/=="), "")
	seed([]byte("hello123"), "deflate")
	seed(payloadtest.Gzipped(f, sample(f))[:30], "")
	seed(zstded(f, sample(f)), "")
	seed(zstded(f, sample(f))[:30], "zstd")
	seed(append(zstded(f, sample(f)), zstded(f, make([]byte, 1<<16))...), "")
	seed(snappied(f, sample(f)), "")
	seed(snappied(f, sample(f))[:30], "snappy")
	seed(confluent(7, []byte{0}, sample(f)), "")
	seed(confluent(7, []byte{4, 2, 0}, sample(f)), "")
	seed(confluent(7, nil, []byte(`{"a":1}`)), "")
	f.Add(confluent(7, []byte{1, 0x80, 0xff}, nil), "", "application/protobuf", "")
	f.Add(cloudEvent("application/json", `"data":{"a":"4111111111111111"}`), "", "application/cloudevents+json", "")
	f.Add(cloudEvent("text/xml", `"data":"<a>\u0000\/</a>"`), "", "application/cloudevents+json", "")
	f.Add(
		cloudEvent("application/protobuf", `"data_base64":"`+string(encodeStd(sample(f)))+`"`), "",
		"application/cloudevents+json", "",
	)
	f.Add(
		cloudEvent("application/cloudevents+json", `"data":`+string(cloudEvent("", `"data_base64":"AAAA\r"`))), "",
		"application/cloudevents+json", "",
	)
	f.Add([]byte(massTransitBody), "", "application/vnd.masstransit+json", "")
	f.Add([]byte(easyNetQBody), "", "application/json", easyNetQType)
	f.Fuzz(func(t *testing.T, body []byte, contentEncoding, contentType, typ string) {
		b := &budget.Budget{Bytes: 1 << 20, Fields: 10_000, Depth: 20, Memory: 8 << 20}
		if int64(len(body)) > b.Bytes {
			return
		}
		r := (&Decoder{Types: schemas(), Mask: pattern}).reading(&Document{Body: body}, Hints{
			ContentEncoding: contentEncoding, ContentType: contentType, Type: typ,
		}, b)
		r.peel()
		checkWithin(t, b)
		total := 0
		for _, l := range r.doc.Layers {
			total += l.Bytes
		}
		if len(r.doc.Layers) > maxLayers || int64(total) > b.Bytes {
			t.Errorf("layers %+v", r.doc.Layers)
		}
		if n := len(r.doc.Layers); n > 0 && r.doc.Layers[n-1].Bytes != len(r.doc.Body) {
			t.Errorf("layers %+v, body of %d bytes", r.doc.Layers, len(r.doc.Body))
		}
		outer := len(body)
		for _, l := range r.doc.Layers {
			if len(l.Before)+len(l.After) > outer || l.Before == nil && l.After != nil ||
				l.Quoted && (l.Before == nil || l.After == nil) {
				t.Errorf("layer %+v of %d bytes", l, outer)
			}
			outer = l.Bytes
		}
		if n := len(r.doc.Layers); n > 0 {
			l := r.doc.Layers[0]
			if !bytes.HasPrefix(body, l.Before) || !bytes.HasSuffix(body, l.After) {
				t.Errorf("layer %+v", l)
			}
		}
	})
}

// FuzzScan checks that decoding stays within the budget if the scan succeeds, and that the decoder
// fails if the scan fails.
func FuzzScan(f *testing.F) {
	f.Add(sample(f), true)
	f.Add([]byte{0x52, 0xff, 0xff, 0xff, 0xff, 0x07, 'x'}, true)
	f.Add(
		encode(
			f, "acme.odd.Order",
			`{"line": {"sku": "s"}, "extra": [{"n": 1}], "unpacked": [1], "[acme.odd.codes]": [1, 2]}`,
		),
		false,
	)
	f.Add(append(bytes.Repeat([]byte{0xa3, 0x06}, 50), bytes.Repeat([]byte{0xa4, 0x06}, 50)...), false)
	f.Fuzz(func(t *testing.T, body []byte, kinds bool) {
		name := "acme.odd.Order"
		if kinds {
			name = "Kinds"
		}
		compareWithDecoder(t, name, body)
	})
}

// FuzzScanCost checks the memory that a successful scan counts. It must not be less than the memory
// that the decoder then allocates for the message and its JSON.
func FuzzScanCost(f *testing.F) {
	types := []string{email, "Kinds", "acme.odd.Order", "google.protobuf.Any", "google.protobuf.Struct"}
	seed := func(body []byte) {
		for i := range types {
			f.Add(body, uint8(i), uint8(1))
			f.Add(body, uint8(i), uint8(50))
		}
	}
	seed(sample(f))
	seed(encode(f, "Kinds", `{"detail": {"@type": "x/acme.notify.v1.Kinds", "tags": ["4111111111111111"]}, "extra": {"k": [1]}, "people": {"1": {}}, "at": "2026-01-01T00:00:00Z", "timeout": "1s"}`))
	seed(encode(f, "acme.odd.Order", `{"line": {"sku": "s"}, "extra": [{"n": 1}], "unpacked": [1], "[acme.odd.codes]": [1, 2]}`))
	seed([]byte{0xba, 0x01, 0x00})
	seed([]byte{0x52, 0x01, 'x'})
	seed([]byte{0xa0, 0x06, 0x01})
	seed(payloadtest.LengthPrefixed(9, bytes.Repeat([]byte{1}, 100)))
	seed(payloadtest.LengthPrefixed(
		23, payloadtest.LengthPrefixed(25, payloadtest.LengthPrefixed(5, payloadtest.LengthPrefixed(1, []byte{
			0x0a, 0x01, 'k', 0x12, 0x02, 0x20, 0x01,
		}))),
	))
	seed(payloadtest.LengthPrefixed(14, append(payloadtest.LengthPrefixed(1, []byte("t/acme.notify.v1.Kinds")), payloadtest.LengthPrefixed(2, []byte{0x18, 1, 0xba, 0x01, 0x00})...)))
	seed(payloadtest.Nested([]byte{0x18, 1}, 0xa2, 60))
	seed(append([]byte{0x18, 1}, payloadtest.LengthPrefixed(900, make([]byte, 1200))...)) // unknown bytes
	f.Fuzz(func(t *testing.T, body []byte, typ, times uint8) {
		defs, _ := schemas().Lookup(types[int(typ)%len(types)])
		def := defs[0]
		if body = bytes.Repeat(body, int(times)); len(body) > 1<<16 {
			return
		}
		s := &descriptor.Scan{Budget: budget.NewBudget(), Types: def.Types}
		if s.Run(body, def.Desc) != nil || s.Memory > s.Budget.Memory || s.JsonBytes > maxJSON {
			return
		}
		// The function "least" returns the memory that the decoder allocates. It takes the minimum
		// of several runs, because other goroutines of the fuzzer may allocate memory during a run.
		least := func(limit int64, f func()) int64 {
			f()
			used := payloadtest.Allocated(f)
			for n := 0; used > limit && n < 5; n++ {
				used = min(used, payloadtest.Allocated(f))
			}
			return used
		}
		var m *dynamicpb.Message
		var err error
		decode := func() {
			m = dynamicpb.NewMessage(def.Desc)
			err = unmarshal(body, m, def.Types)
		}
		limit := s.Memory
		if used := least(limit, decode); used > limit {
			t.Errorf(
				"%s of %d bytes: decoding allocates %d bytes, %d were counted", def.Desc.FullName(), len(body), used,
				s.Memory,
			)
		}
		if err != nil {
			return
		}
		limit += 6*s.JsonBytes + 1<<14 // and buffers, for which jsonOf charges enough
		if used := least(limit, func() {
			decode()
			protojson.MarshalOptions{Resolver: def.Types, AllowPartial: true}.Marshal(m)
		}); used > limit {
			t.Errorf(
				"%s of %d bytes: decoding and JSON allocate %d bytes, %d were counted", def.Desc.FullName(), len(body),
				used, limit,
			)
		}
	})
}

// FuzzWireView checks the fields of a body whose type is unknown. Each byte must be in exactly one
// field, the fields must be in order, and nested fields must be inside their parents.
func FuzzWireView(f *testing.F) {
	f.Add(sample(f))
	f.Add(encode(f, "Kinds", `{"detail": {"@type": "x/acme.notify.v1.Kinds", "tags": ["4111111111111111"]}, "extra": {"k": [1]}, "people": {"1": {}}, "at": "2026-01-01T00:00:00Z", "timeout": "1s"}`))
	f.Add(encode(f, "acme.odd.Order", `{"line": {"sku": "s"}, "extra": [{"n": 1}], "unpacked": [1], "[acme.odd.codes]": [1, 2]}`))
	f.Add(bytes.Repeat([]byte{0x12, 0x00}, maxNodes+5))
	f.Add(payloadtest.Nested([]byte{0x18, 1}, 0xa2, 110))
	f.Add(append(bytes.Repeat([]byte{0xa3, 0x06}, 50), bytes.Repeat([]byte{0xa4, 0x06}, 50)...))
	f.Add([]byte{
		0x80, 0x80, 0x01, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 0x0d, 0xff, 0xff, 0xff, 0x7f,
		0x11, 0, 0, 0, 0, 0, 0, 0xf8, 0x7f,
	})
	f.Add([]byte("\x0a\x10\x34111111111111111"))
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, mask := range []*Mask{nil, pattern} {
			doc := (&Decoder{Mask: mask}).Decode(body, Hints{ContentType: "application/protobuf"}, nil)
			if doc.Kind != Binary || len(doc.Fields) == 0 {
				continue
			}
			cut := len(doc.Notes) > 0
			at := 0
			for i := range doc.Fields {
				n := &doc.Fields[i]
				if n.Kind == More {
					cut = true
					continue
				}
				if len(n.Ranges) != 1 || n.Ranges[0].From != at && !cut {
					t.Fatalf("field %d begins at %v, not at %d of %x", n.Number, n.Ranges, at, doc.Body)
				}
				at = n.Ranges[0].To
				num, typ, size := protowire.ConsumeField(doc.Body[n.Ranges[0].From:at])
				if int32(num) != n.Number || wireName(typ) != n.Type || size != at-n.Ranges[0].From {
					t.Fatalf(
						"%v is shown as field %d, %s; on the wire are %d, %s in %d bytes", n.Ranges, n.Number, n.Type,
						num, wireName(typ), size,
					)
				}
				checkNesting(t, n, 1)
			}
			if at != len(doc.Body) && !cut {
				t.Fatalf("the fields end at %d of %d bytes", at, len(doc.Body))
			}
		}
	})
}

// checkNesting checks that the children of a node are inside it, one after another.
func checkNesting(t *testing.T, n *Node, depth int) {
	t.Helper()
	if depth > maxTreeDepth {
		t.Fatalf("%d levels", depth)
	}
	at := n.Ranges[0].From
	for i := range n.Children {
		c := &n.Children[i]
		if c.Kind == More || len(c.Ranges) == 0 {
			continue
		}
		if c.Ranges[0].From < at || c.Ranges[0].To > n.Ranges[0].To {
			t.Fatalf("%v is not inside of %v, or before another", c.Ranges, n.Ranges)
		}
		at = c.Ranges[0].To
		checkNesting(t, c, depth+1)
	}
}

func FuzzAddSet(f *testing.F) {
	f.Add(descriptorSet(f, false))
	f.Add(payloadtest.LengthPrefixed(1, bytes.Repeat([]byte{0x22, 0x00}, 10)))
	f.Add(sample(f))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := descriptor.NewRegistry()
		names, err := r.AddSet("x", b)
		if err != nil {
			if len(r.Types()) > 0 {
				t.Error("an error, and something was added")
			}
			return
		}
		for _, n := range names {
			(&Decoder{Types: r}).Decode([]byte{8, 1, 0x12, 2, 8, 1}, Hints{Type: n}, nil)
		}
	})
}
