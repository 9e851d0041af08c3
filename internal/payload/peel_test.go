package payload

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/budget"
	"github.com/deadletteroffice/dlo/internal/payload/payloadtest"
	"github.com/deadletteroffice/dlo/internal/testenv"
)

func encodeStd(b []byte) []byte { return []byte(base64.StdEncoding.EncodeToString(b)) }

func layers(d *Document) string {
	var names []string
	for _, l := range d.Layers {
		n := l.Name
		if l.Detail != "" {
			n += " (" + l.Detail + ")"
		}
		names = append(names, n)
	}
	return strings.Join(names, " > ")
}

// TestPeel compares what is found in each body with testdata/peel.golden.
func TestPeel(t *testing.T) {
	t.Parallel()
	body := sample(t)
	raw := base64.RawURLEncoding.EncodeToString([]byte("\xfb\xff\xfe" + strings.Repeat("x", 20)))
	lines := string(encodeStd(body))
	lines = lines[:76] + "\r\n" + lines[76:152] + "\r\n" + lines[152:] + "\r\n"
	var z bytes.Buffer
	w := zlib.NewWriter(&z)
	_, _ = w.Write([]byte(`{"a":1}`))
	_ = w.Close()
	tests := []struct {
		name string
		body []byte
		h    Hints
	}{
		{"message as it is", body, Hints{Type: email}},
		{"base64 message", encodeStd(body), Hints{Type: email}},
		{"base64 message in lines", []byte(lines), Hints{Type: email}},
		{
			"base64 message, URL alphabet, not padded",
			[]byte(base64.RawURLEncoding.EncodeToString(body)),
			Hints{Type: email},
		},
		{"gzip message", payloadtest.Gzipped(t, body), Hints{Type: email}},
		{"base64 of gzip of a message", encodeStd(payloadtest.Gzipped(t, body)), Hints{Type: email}},
		{"gzip of base64 of gzip", payloadtest.Gzipped(t, encodeStd(payloadtest.Gzipped(t, body))), Hints{Type: email}},
		{
			"base64 message of a type that is not known, but said to be protobuf",
			encodeStd(body),
			Hints{ContentType: "application/protobuf; messageType=a.B"},
		},
		{"base64 message of which nothing is said", encodeStd(body), Hints{}},
		{"base64 message that two types may read", []byte("Cg9hdWQtYzNpMnh4MjctMTkSCUdyYWNlIDc0MA=="), Hints{}},
		{
			"base64 message that no type reads",
			encodeStd([]byte("\x0a\x0faud-c2i3x27x-19\x12\x09Grace 740\x38\x07\x40\x09\x4a\x05abcde")),
			Hints{},
		},
		{"base64 of an identifier and noise", []byte("b3JkZXIx/////////////////w=="), Hints{}},
		{"base64 message of a type that is named and not known", encodeStd(body), Hints{Type: "acme.nope.v1.X"}},
		{"base64 JSON", encodeStd([]byte(`{"a":1}`)), Hints{}},
		{"base64 text", encodeStd([]byte("the quick brown fox")), Hints{}},
		{"gzip text", payloadtest.Gzipped(t, []byte("text")), Hints{}},
		{"gzip of nothing", payloadtest.Gzipped(t, nil), Hints{}},
		{"named base64 of noise", []byte(raw), Hints{ContentEncoding: "base64"}},
		{
			"named gzip, base64: the last was applied last",
			encodeStd(payloadtest.Gzipped(t, body)),
			Hints{Type: email, ContentEncoding: "gzip, base64"},
		},
		{"named deflate", z.Bytes(), Hints{ContentEncoding: "deflate"}},
		{"named gzip that is none", []byte(`{"a":1}`), Hints{ContentEncoding: "gzip"}},
		{"named base64 that is none", []byte(`{"a":1}`), Hints{ContentEncoding: "base64"}},
		{"character set as content encoding", []byte(`{"a":1}`), Hints{ContentEncoding: "utf-8"}},
		{"unknown content encoding", []byte(`{"a":1}`), Hints{ContentEncoding: "br"}},
		{"broken gzip", payloadtest.Gzipped(t, body)[:40], Hints{Type: email}},
		{
			"gzip with a wrong checksum",
			append(payloadtest.Gzipped(t, body)[:len(payloadtest.Gzipped(t, body))-8], 1, 2, 3, 4, 5, 6, 7, 8),
			Hints{},
		},
		{"word", []byte("password"), Hints{}},
		{"word with a digit", []byte("hello123"), Hints{Type: email}},
		{"hex digest", []byte("d41d8cd98f00b204e9800998ecf8427e"), Hints{}},
		{"number", []byte("1234567890123456"), Hints{}},
		{"CamelCase name", []byte("OrderPlacedEventHandlerFactoryBean01"), Hints{}},
		{"path", []byte("usr/local/share/doc"), Hints{}},
		{"sentence", []byte("this is not base64 at all"), Hints{}},
		{"padding in the middle", []byte("AAAA=AAAAAAA"), Hints{}},
	}
	var all strings.Builder
	for _, tt := range tests {
		b := budget.NewBudget()
		doc := (&Decoder{Types: schemas()}).Decode(tt.body, tt.h, b)
		all.WriteString(peeled(tt.name, doc))
		if doc.Size != len(tt.body) {
			t.Errorf("%s: size %d", tt.name, doc.Size)
		}
		checkWithin(t, b)
	}
	testenv.GoldenText(t, "peel.golden", all.String())
}

func TestPeelSaysWhatWasTried(t *testing.T) {
	t.Parallel()
	doc := decode(encodeStd(sample(t)), Hints{Type: email})
	want := []Step{
		{true, "base64, standard alphabet, padded"},
		{false, "gzip, zstd, snappy: no magic bytes"},
		{true, "protobuf by the type property, 13 of 157 B in 1 field unknown"},
	}
	// Because the message has an unknown field, dlo looks for further layers before it decodes the
	// message. Therefore, the second of the three steps reports this search.
	if len(doc.Steps) != len(want) {
		t.Fatalf("steps %+v", doc.Steps)
	}
	for i := range want {
		if doc.Steps[i] != want[i] {
			t.Errorf("step %d: %+v, want %+v", i, doc.Steps[i], want[i])
		}
	}
	doc = decode([]byte("hello123"), Hints{})
	if s := doc.Steps[0]; s.OK || s.Text != "base64: the characters fit, but what comes out is neither text nor of a known form" {
		t.Errorf("step %+v", s)
	}
}

func TestBase64OfBase64StopsAtThreeLayers(t *testing.T) {
	t.Parallel()
	body := sample(t)
	for range 20 { // the size grows by a third each time; 50 times would give 200 MB
		body = encodeStd(body)
	}
	for _, h := range []Hints{{}, {Type: email}, {ContentEncoding: strings.Repeat("base64,", 50)}} {
		b := budget.NewBudget()
		doc := (&Decoder{Types: schemas()}).Decode(body, h, b)
		if len(doc.Layers) != 3 || doc.Kind != Text {
			t.Errorf("%d layers, kind %s", len(doc.Layers), doc.Kind)
		}
		if last := doc.Steps[len(doc.Steps)-1]; !strings.Contains(stepsText(doc), "three layers are the most") {
			t.Errorf("last step %+v", last)
		}
		checkWithin(t, b)
	}
}

func stepsText(d *Document) string {
	var s []string
	for _, st := range d.Steps {
		s = append(s, st.Text)
	}
	return strings.Join(s, "\n")
}

func TestGzipBombIsCapped(t *testing.T) {
	t.Parallel()
	payloadtest.Unraced(t)
	bomb := payloadtest.Gzipped(t, make([]byte, 32<<20)) // 1000:1
	for _, body := range [][]byte{bomb, encodeStd(bomb)} {
		b := budget.NewBudget()
		doc := (&Decoder{Types: schemas()}).Decode(body, Hints{Type: email}, b)
		if doc.Kind != Binary || !doc.TooLarge ||
			doc.Problem != "too large to decode safely: more than 16 MiB when unpacked" {
			t.Errorf("got %s, %q", doc.Kind, doc.Problem)
		}
		checkWithin(t, b)
	}
	b := budget.NewBudget()
	doc := (&Decoder{}).Decode(payloadtest.Gzipped(t, []byte(strings.Repeat("a", 15<<20))), Hints{}, b)
	if doc.Kind != Text || doc.Layers[0].Bytes != 15<<20 {
		t.Errorf("15 MiB: got %s, problem %q", doc.Kind, doc.Problem)
	}
	checkWithin(t, b)
}

// checkWithin fails the test if a counter of the budget is above its limit.
func checkWithin(t testing.TB, b *budget.Budget) {
	t.Helper()
	if u := b.Used(); u.Bytes > b.Bytes || u.Fields > b.Fields || u.Memory > b.Memory || u.Depth > b.Depth {
		t.Errorf("used %+v of %+v", u, *b)
	}
}
