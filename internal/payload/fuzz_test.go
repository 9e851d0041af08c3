package payload

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

// check holds for every document, whatever the body.
func check(t *testing.T, d *Document, b *Budget, size int) {
	t.Helper()
	within(t, b)
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
	s := Summary(d)
	if len(s) > maxSummary || s != visible(s, "") || !utf8.ValidString(s) {
		t.Errorf("summary %q", s)
	}
	if d.Text != visible(d.Text, "\n\t") {
		t.Errorf("text %q", d.Text)
	}
	for _, line := range append(d.Notes, d.Problem, d.Named) {
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
	if rows := d.Hexdump(256).Rows; len(rows) == 0 && len(d.Body) > 0 {
		t.Error("no hex")
	}
}

func FuzzDecode(f *testing.F) {
	seed := func(b []byte) {
		for _, typ := range []string{"", email, "Kinds", "acme.odd.Order", "Cart", "google.protobuf.Any", "google.protobuf.Struct"} {
			f.Add(b, "application/protobuf", "", typ)
		}
	}
	seed(sample(f))
	seed(std(sample(f)))
	seed(gzipped(f, sample(f)))
	seed(bytes.Repeat([]byte{0x12, 0x00}, 100))
	seed(lengthPrefixed(9, bytes.Repeat([]byte{1}, 100)))
	seed(nested([]byte{0x18, 1}, 0xa2, 110))
	seed([]byte{0x52, 0xff, 0xff, 0xff, 0xff, 0x07, 'x'})
	seed(append([]byte{0x18}, bytes.Repeat([]byte{0xff}, 11)...))
	seed([]byte(`{"a":[1,{"b":"\ud800"}],"a":null,"4111111111111111":"4111111111111111"}`))
	seed([]byte("text \u202e\x1b[31m"))
	seed(zstded(f, sample(f)))
	seed(snappied(f, sample(f)))
	seed(confluent(7, []byte{4, 2, 0}, sample(f)))
	f.Add(cloudEvent("application/protobuf", `"data_base64":"`+string(std(sample(f)))+`"`), "application/cloudevents+json", "", "")
	f.Add([]byte(massTransitBody), "application/vnd.masstransit+json", "", "")
	f.Add([]byte(easyNetQBody), "application/json", "", easyNetQType)
	seed(encode(f, "Kinds", `{"detail": {"@type": "x/acme.notify.v1.Kinds", "tags": ["4111111111111111"]}, "extra": {"k": [1]}, "people": {"1": {}}, "at": "2026-01-01T00:00:00Z", "timeout": "1s"}`))
	seed(encode(f, "acme.odd.Order", `{"line": {"sku": "s"}, "extra": [{"n": 1}], "[acme.odd.remark]": "x"}`))
	f.Add([]byte("x"), `application/json; messageType="`, "gzip, base64,,br", "type.googleapis.com/")
	f.Fuzz(func(t *testing.T, body []byte, contentType, contentEncoding, typ string) {
		h := Hints{ContentType: contentType, ContentEncoding: contentEncoding, Type: typ, Queue: typ}
		bindings := []Binding{{Queue: "*", Type: email}}
		kept := bytes.Clone(body)
		for _, mask := range []*Mask{nil, pattern} {
			b := NewBudget()
			doc := (&Decoder{Types: schemas(), Bindings: bindings, Mask: mask}).Decode(body, h, b)
			check(t, doc, b, len(body))
			if strings.Contains(doc.Problem, "internal error") {
				t.Errorf("a panic was contained: %s", doc.Problem)
			}
		}
		if !bytes.Equal(body, kept) {
			t.Error("the body was changed")
		}
		tiny := &Budget{Bytes: 64, Fields: 8, Depth: 3, Memory: 1 << 12}
		check(t, (&Decoder{Types: schemas(), Mask: pattern}).Decode(body, h, tiny), tiny, len(body))
	})
}

func FuzzPeel(f *testing.F) {
	seed := func(b []byte, contentEncoding string) { f.Add(b, contentEncoding, "", email) }
	seed(std(sample(f)), "")
	seed(gzipped(f, sample(f)), "gzip")
	seed(std(std(std(std(sample(f))))), "base64,base64,base64,base64")
	seed([]byte("AAAA-_+/=="), "")
	seed([]byte("hello123"), "deflate")
	seed(gzipped(f, sample(f))[:30], "")
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
	f.Add(cloudEvent("application/protobuf", `"data_base64":"`+string(std(sample(f)))+`"`), "", "application/cloudevents+json", "")
	f.Add(cloudEvent("application/cloudevents+json", `"data":`+string(cloudEvent("", `"data_base64":"AAAA\r"`))), "", "application/cloudevents+json", "")
	f.Add([]byte(massTransitBody), "", "application/vnd.masstransit+json", "")
	f.Add([]byte(easyNetQBody), "", "application/json", easyNetQType)
	f.Fuzz(func(t *testing.T, body []byte, contentEncoding, contentType, typ string) {
		b := &Budget{Bytes: 1 << 20, Fields: 10_000, Depth: 20, Memory: 8 << 20}
		if int64(len(body)) > b.Bytes {
			return
		}
		r := (&Decoder{Types: schemas(), Mask: pattern}).reading(&Document{Body: body}, Hints{ContentEncoding: contentEncoding, ContentType: contentType, Type: typ}, b)
		r.peel()
		within(t, b)
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
			if len(l.Before)+len(l.After) > outer || l.Before == nil && l.After != nil || l.Quoted && (l.Before == nil || l.After == nil) {
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

// A scan that passes means that decoding stays within the budget, and a scan that fails means that the decoder fails.
func FuzzScan(f *testing.F) {
	f.Add(sample(f), true)
	f.Add([]byte{0x52, 0xff, 0xff, 0xff, 0xff, 0x07, 'x'}, true)
	f.Add(encode(f, "acme.odd.Order", `{"line": {"sku": "s"}, "extra": [{"n": 1}], "unpacked": [1], "[acme.odd.codes]": [1, 2]}`), false)
	f.Add(append(bytes.Repeat([]byte{0xa3, 0x06}, 50), bytes.Repeat([]byte{0xa4, 0x06}, 50)...), false)
	f.Fuzz(func(t *testing.T, body []byte, kinds bool) {
		name := "acme.odd.Order"
		if kinds {
			name = "Kinds"
		}
		compareWithDecoder(t, name, body)
	})
}

func FuzzAddSet(f *testing.F) {
	f.Add(descriptorSet(f, false))
	f.Add(lengthPrefixed(1, bytes.Repeat([]byte{0x22, 0x00}, 10)))
	f.Add(sample(f))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := NewRegistry()
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

func FuzzCheckSource(f *testing.F) {
	f.Add("syntax = \"proto3\"; message M { /* { */ string s = 1; // {\n map<string, M> m = 2; }")
	f.Fuzz(func(t *testing.T, s string) {
		if checkSource([]byte(s)) == nil {
			importsOf([]byte(s))
		}
	})
}
