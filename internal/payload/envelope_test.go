package payload

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/deadletteroffice/dlo/internal/budget"
	"github.com/deadletteroffice/dlo/internal/descriptor"
	"github.com/deadletteroffice/dlo/internal/payload/payloadtest"
	"github.com/deadletteroffice/dlo/internal/testenv"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"google.golang.org/protobuf/encoding/protowire"
)

func zstded(t testing.TB, b []byte, opts ...zstd.EOption) []byte {
	t.Helper()
	var w bytes.Buffer
	z, err := zstd.NewWriter(&w, append([]zstd.EOption{zstd.WithEncoderConcurrency(1)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	// The encoder gets the data in pieces and does not know the size of the whole data. Therefore,
	// it writes the size into the frame only if an option says so.
	if _, err := z.ReadFrom(iotest.HalfReader(bytes.NewReader(b))); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return w.Bytes()
}

// zstdWhole returns a single frame with the size of its content, as most clients write it.
func zstdWhole(t testing.TB, b []byte) []byte {
	t.Helper()
	z, err := zstd.NewWriter(nil, zstd.WithSingleSegment(true), zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	return z.EncodeAll(b, nil)
}

func snappied(t testing.TB, b []byte) []byte {
	t.Helper()
	var w bytes.Buffer
	z := s2.NewWriter(&w, s2.WriterSnappyCompat(), s2.WriterConcurrency(1))
	if _, err := z.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return w.Bytes()
}

func confluent(schema uint32, place, b []byte) []byte {
	p := []byte{0, byte(schema >> 24), byte(schema >> 16), byte(schema >> 8), byte(schema)}
	return append(append(p, place...), b...)
}

func zigzags(values ...int64) (b []byte) {
	for _, v := range values {
		b = protowire.AppendVarint(b, protowire.EncodeZigZag(v))
	}
	return b
}

// cloudEvent returns the example event of the specification, with additional members.
func cloudEvent(contentType, data string) []byte {
	if contentType != "" {
		data = fmt.Sprintf(`"datacontenttype": %q, %s`, contentType, data)
	}
	return []byte(
		`{"specversion": "1.0", "type": "com.example.someevent", "source": "/mycontext", "id": "C234-1234-1234", "time": "2018-04-05T17:31:00Z", ` + data + `, "comexampleothervalue": 5}`,
	)
}

const (
	ce = "application/cloudevents+json"
	mt = "application/vnd.masstransit+json"

	// This is a shortened example from MassTransit's interoperability documentation.
	massTransitBody = `{
  "messageId": "181c0000-6393-3630-36a4-08daf4e7c6da",
  "sourceAddress": "rabbitmq://localhost/source",
  "destinationAddress": "rabbitmq://localhost/destination",
  "messageType": [
    "urn:message:Company.Project:CreateUser",
    "urn:message:Company.Project:ICommand"
  ],
  "message": {
    "username": "frankdrebin",
    "manager": "chief karlin"
  },
  "sentTime": "2023-01-12T21:55:53.714Z",
  "headers": {},
  "host": {"machineName": "MyComputer", "processId": 427}
}`

	easyNetQType = "EasyNetQ.SystemMessages.Error, EasyNetQ"
	easyNetQBody = `{"RoutingKey":"","Exchange":"Acme.Orders.Placed, Acme.Contracts","Queue":"Acme.Orders.Placed, Acme.Contracts_billing",` +
		`"Exception":"System.AggregateException: One or more errors occurred. (no price)\r\n ---> System.Exception: no price\r\n   at Billing.Price()",` +
		`"Message":"{\"OrderId\":7,\"Sku\":\"a\\\\b\"}","DateTime":"2026-01-02T03:04:05.678Z",` +
		`"BasicProperties":{"ContentType":"application/json","Headers":{},"DeliveryMode":2,"Type":"Acme.Orders.Placed, Acme.Contracts","ContentTypePresent":true}}`
)

func easyNetQOf(message, contentType, typ string) []byte {
	quote := func(s string) string { b, _ := json.Marshal(s); return string(b) }
	return []byte(
		`{"RoutingKey":"k","Exchange":"e","Exception":"x","Message":` + quote(message) +
			`,"DateTime":"2026-01-02T03:04:05Z","BasicProperties":{"ContentType":` + quote(
			contentType,
		) + `,"Type":` + quote(typ) + `}}`,
	)
}

// TestPeelEnvelopes compares what is found in each body with testdata/envelopes.golden.
func TestPeelEnvelopes(t *testing.T) {
	t.Parallel()
	body := sample(t)
	b64 := string(encodeStd(body))
	tests := []struct {
		name string
		body []byte
		h    Hints
	}{
		{"zstd message", zstded(t, body), Hints{Type: email}},
		{"zstd message that declares its size", zstdWhole(t, body), Hints{Type: email}},
		{"zstd named", zstded(t, []byte(`{"a":1}`)), Hints{ContentEncoding: "zstd"}},
		{"zstd of nothing", zstded(t, nil, zstd.WithZeroFrames(true)), Hints{}},
		{
			"two zstd frames",
			append(zstdWhole(t, []byte(strings.Repeat("twice ", 1000))), zstdWhole(t, []byte("and once"))...),
			Hints{},
		},
		{"zstd frame with a dictionary", []byte("\x28\xb5\x2f\xfd\x21\x07\x02\x11\x00\x00hi"), Hints{}},
		{"zstd frame with a large window", []byte("\x28\xb5\x2f\xfd\x00\x70\x11\x00\x00hi"), Hints{}},
		{"broken zstd", zstded(t, body)[:40], Hints{}},
		{"zstd with a wrong checksum", append(zstded(t, body)[:len(zstded(t, body))-4], 1, 2, 3, 4), Hints{}},
		{"zstd magic and no more", zstdMagic, Hints{}},
		{"named zstd that is none", []byte(`{"a":1}`), Hints{ContentEncoding: "zstd"}},
		{"base64 of zstd", encodeStd(zstded(t, body)), Hints{Type: email}},
		{"snappy message", snappied(t, body), Hints{Type: email}},
		{"snappy of several blocks", snappied(t, bytes.Repeat([]byte("text "), 100_000)), Hints{}},
		{"snappy named", snappied(t, []byte(`{"a":1}`)), Hints{ContentEncoding: "x-snappy-framed"}},
		{"broken snappy", snappied(t, body)[:40], Hints{}},
		{
			"snappy with a wrong checksum",
			append([]byte("\xff\x06\x00\x00sNaPpY\x01\x06\x00\x00\x01\x02\x03\x04"), "hi"...),
			Hints{},
		},
		{"bare snappy block", s2.EncodeSnappy(nil, []byte("text text text")), Hints{ContentEncoding: "snappy"}},
		{"Confluent message, first of its file", confluent(1234, []byte{0}, body), Hints{Type: email}},
		{"Confluent message, another", confluent(1<<31-1, zigzags(2, 1, 300), body), Hints{Type: email}},
		{
			"Confluent message of a type that is not known, but said to be protobuf",
			confluent(7, []byte{0}, body),
			Hints{ContentType: "application/protobuf; messageType=a.B"},
		},
		{"Confluent message of nothing", confluent(7, []byte{0}, nil), Hints{ContentType: "application/protobuf"}},
		{"Confluent message of which nothing is said", confluent(7, []byte{0}, body), Hints{}},
		{"Confluent JSON", confluent(8, nil, []byte(`{"a":1}`)), Hints{}},
		{"base64 of a Confluent message", encodeStd(confluent(7, []byte{0}, body)), Hints{Type: email}},
		{"Confluent schema 0", confluent(0, []byte{0}, body), Hints{Type: email}},
		{
			"Confluent place of 101 levels",
			confluent(7, append(zigzags(101), make([]byte, 101)...), body),
			Hints{Type: email},
		},
		{"Confluent place below 0", confluent(7, zigzags(1, -1), body), Hints{Type: email}},
		{"Confluent prefix that breaks off", confluent(7, zigzags(2, 1), nil), Hints{Type: email}},
		{"CloudEvent of JSON", cloudEvent("application/json", `"data": {"a": 1}`), Hints{ContentType: ce}},
		{
			"CloudEvent without a content type",
			cloudEvent("", `"data": "just a string"`),
			Hints{ContentType: ce + "; charset=UTF-8"},
		},
		{
			"CloudEvent with a byte order mark",
			append([]byte("\xef\xbb\xbf"), cloudEvent("", `"data": [1]`)...),
			Hints{ContentType: ce},
		},
		{"CloudEvent of XML", cloudEvent("application/xml", `"data": "<much wow=\"xml\"/>"`), Hints{ContentType: ce}},
		{
			"CloudEvent of protobuf",
			cloudEvent("application/protobuf; messageType="+email, `"data_base64": "`+b64+`"`),
			Hints{ContentType: ce},
		},
		{
			"CloudEvent of protobuf, slashes escaped",
			cloudEvent("application/protobuf", `"data_base64": "`+strings.ReplaceAll(b64, "/", `\/`)+`"`),
			Hints{ContentType: ce, Type: email},
		},
		{
			"CloudEvent with the type as dataschema",
			cloudEvent(
				"application/protobuf", `"dataschema": "type.googleapis.com/`+email+`", "data_base64": "`+b64+`"`,
			),
			Hints{ContentType: ce},
		},
		{
			"CloudEvent of gzip",
			cloudEvent(
				"application/octet-stream",
				`"data_base64": "`+string(encodeStd(payloadtest.Gzipped(t, []byte("text"))))+`"`,
			),
			Hints{ContentType: ce},
		},
		{
			"gzip of a CloudEvent",
			payloadtest.Gzipped(t, cloudEvent("", `"data": {}`)),
			Hints{ContentType: ce, ContentEncoding: "gzip"},
		},
		{
			"CloudEvent of a CloudEvent",
			cloudEvent(ce, `"data": `+string(cloudEvent("", `"data": 1`))),
			Hints{ContentType: ce},
		},
		{"CloudEvent of short data", cloudEvent("text/plain", `"data_base64": "aGk="`), Hints{ContentType: ce}},
		{"CloudEvent of no bytes", cloudEvent("text/plain", `"data_base64": ""`), Hints{ContentType: ce}},
		{"CloudEvent that nothing says", cloudEvent("", `"data": 1`), Hints{ContentType: "application/json"}},
		{"CloudEvent without data", cloudEvent("", `"x": 1`), Hints{ContentType: ce}},
		{"CloudEvent with both data", cloudEvent("", `"data": 1, "data_base64": "AAAA"`), Hints{ContentType: ce}},
		{"CloudEvent with two data", cloudEvent("", `"data": 1, "data": 2`), Hints{ContentType: ce}},
		{"CloudEvent with an escaped second data", cloudEvent("", `"data": 1, "d\u0061ta": 2`), Hints{ContentType: ce}},
		{"CloudEvent with data_base64 that is none", cloudEvent("", `"data_base64": "a b"`), Hints{ContentType: ce}},
		{"CloudEvent with data_base64 of another kind", cloudEvent("", `"data_base64": {}`), Hints{ContentType: ce}},
		{
			"CloudEvent of version 0.3",
			[]byte(`{"specversion":"0.3","type":"t","source":"s","id":"i","data":1}`),
			Hints{ContentType: ce},
		},
		{
			"CloudEvent without an id",
			[]byte(`{"specversion":"1.0","type":"t","source":"s","data":1}`),
			Hints{ContentType: ce},
		},
		{
			"CloudEvent with a number as id",
			[]byte(`{"specversion":"1.0","type":"t","source":"s","id":1,"data":1}`),
			Hints{ContentType: ce},
		},
		{
			"CloudEvent with an empty source",
			[]byte(`{"specversion":"1.0","type":"t","source":"","id":"1","data":1}`),
			Hints{ContentType: ce},
		},
		{"CloudEvent that is a list", []byte(`[1]`), Hints{ContentType: ce}},
		{"CloudEvent that is text", []byte(`hello`), Hints{ContentType: ce}},
		{"MassTransit", []byte(massTransitBody), Hints{ContentType: mt}},
		{"MassTransit that nothing says", []byte(massTransitBody), Hints{ContentType: "application/json"}},
		{"MassTransit without a message", []byte(`{"messageType":["urn:message:A:B"]}`), Hints{ContentType: mt}},
		{
			"MassTransit with text as message",
			[]byte(`{"messageType":["urn:message:A:B"],"message":"m"}`),
			Hints{ContentType: mt},
		},
		{
			"MassTransit with one type as text",
			[]byte(`{"messageType":"urn:message:A:B","message":{}}`),
			Hints{ContentType: mt},
		},
		{"MassTransit without types", []byte(`{"messageType":[],"message":{}}`), Hints{ContentType: mt}},
		{"MassTransit with other types", []byte(`{"messageType":["A.B"],"message":{}}`), Hints{ContentType: mt}},
		{
			"MassTransit with a number as type",
			[]byte(`{"messageType":["urn:message:A:B",1],"message":{}}`),
			Hints{ContentType: mt},
		},
		{"EasyNetQ error", []byte(easyNetQBody), Hints{ContentType: "application/json", Type: easyNetQType}},
		{
			"EasyNetQ error of base64 of a message",
			easyNetQOf(b64, "application/protobuf", email+", Acme"),
			Hints{Type: easyNetQType},
		},
		{"EasyNetQ error of text", easyNetQOf("hello there", "text/plain", ""), Hints{Type: easyNetQType}},
		{
			"EasyNetQ error of an error",
			easyNetQOf(easyNetQBody, "application/json", easyNetQType),
			Hints{Type: easyNetQType},
		},
		{"EasyNetQ message", []byte(`{"OrderId":7}`), Hints{Type: "Acme.Orders.Placed, Acme.Contracts"}},
		{
			"EasyNetQ error without properties",
			[]byte(`{"RoutingKey":"k","Exchange":"e","Exception":"x","Message":"m","DateTime":"d"}`),
			Hints{Type: easyNetQType},
		},
		{
			"EasyNetQ error with an object as message",
			[]byte(
				`{"RoutingKey":"k","Exchange":"e","Exception":"x","Message":{},"DateTime":"d","BasicProperties":{}}`,
			),
			Hints{Type: easyNetQType},
		},
	}
	var all strings.Builder
	for _, tt := range tests {
		b := budget.NewBudget()
		doc := (&Decoder{Types: schemas()}).Decode(tt.body, tt.h, b)
		all.WriteString(peeled(tt.name, doc))
		check(t, doc, b, len(tt.body))
		if strings.Contains(doc.Problem, "internal error") {
			t.Errorf("%s: %s", tt.name, doc.Problem)
		}
		body := tt.body
		for _, l := range doc.Layers {
			body = rewrapped(t, l, body)
		}
		if !bytes.Equal(body, doc.Body) {
			t.Errorf("%s: body %q", tt.name, doc.Body)
		}
	}
	testenv.GoldenText(t, "envelopes.golden", all.String())
}

// peeled returns what was found in the body of a case: its layers from the outside, what is in
// them, and the steps that led there.
func peeled(name string, doc *Document) string {
	s := fmt.Sprintf("%s: %s > %s\n", name, layers(doc), doc.Kind)
	for _, step := range doc.Steps {
		s += "    " + step.Text + "\n"
	}
	return s
}

// rewrapped removes a layer and adds it again. To add the layer, it uses only what the Layer
// describes. The result must be the same bytes. rewrapped returns the content of the layer.
func rewrapped(t *testing.T, l Layer, outer []byte) []byte {
	t.Helper()
	switch l.Name {
	case "gzip", "deflate", "zstd", "snappy": // any compressor is good enough
		out, err := inflate(&Layer{Name: l.Name}, outer, budget.NewBudget())
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	if !bytes.HasPrefix(outer, l.Before) || !bytes.HasSuffix(outer, l.After) ||
		len(outer) < len(l.Before)+len(l.After) {
		t.Fatalf("%q is not around it", l.Before)
	}
	data := outer[len(l.Before) : len(outer)-len(l.After)]
	unescaped := data
	if l.Quoted {
		var s string
		if json.Unmarshal([]byte(`"`+string(data)+`"`), &s) != nil || l.Before[len(l.Before)-1] != '"' ||
			l.After[0] != '"' {
			t.Fatalf("%q is not a string", data)
		}
		unescaped = []byte(s)
	}
	if l.Base64 == nil {
		return unescaped
	}
	enc := base64.StdEncoding
	if l.Base64.URL {
		enc = base64.URLEncoding
	}
	if l.Base64.NoPadding {
		enc = enc.WithPadding(base64.NoPadding)
	}
	text := unescaped
	if l.Base64.Line > 0 {
		text = bytes.ReplaceAll(text, []byte(l.Base64.Break), nil)
	}
	out, err := enc.DecodeString(string(text))
	if err != nil {
		t.Fatal(err)
	}
	again := enc.EncodeToString(out)
	if n := l.Base64.Line; n > 0 {
		var w strings.Builder
		for len(again) > n {
			w.WriteString(again[:n] + l.Base64.Break)
			again = again[n:]
		}
		again = w.String() + again
	}
	if again != string(unescaped) {
		t.Errorf("%q, wrapped again %q", unescaped, again)
	}
	return out
}

func TestBase64KeepsHowItIsWritten(t *testing.T) {
	t.Parallel()
	body := append([]byte("\xfb\xff\xfe"), strings.Repeat("x", 120)...)
	lines := func(s string, n int, end string) string {
		var w strings.Builder
		for ; len(s) > n; s = s[n:] {
			w.WriteString(s[:n] + end)
		}
		return w.String() + s
	}
	plain := base64.StdEncoding.EncodeToString(append(body, 1))
	tests := []struct {
		name          string
		File          string
		want          Base64
		before, after string
	}{
		{"standard", plain, Base64{}, "", ""},
		{"URL", base64.URLEncoding.EncodeToString(body), Base64{URL: true}, "", ""},
		{"not padded", base64.RawStdEncoding.EncodeToString(append(body, 1)), Base64{NoPadding: true}, "", ""},
		{
			"URL, not padded",
			base64.RawURLEncoding.EncodeToString(append(body, 1)),
			Base64{URL: true, NoPadding: true},
			"",
			"",
		},
		{"MIME", lines(plain, 76, "\r\n") + "\r\n", Base64{Line: 76, Break: "\r\n"}, "", "\r\n"},
		{"PEM", "\n" + lines(plain, 64, "\n") + "\n", Base64{Line: 64, Break: "\n"}, "\n", "\n"},
		{"old Macintosh", lines(plain, 64, "\r"), Base64{Line: 64, Break: "\r"}, "", ""},
		{"spaces around", "  " + plain + "\t ", Base64{}, "  ", "\t "},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			doc := decode([]byte(tt.File), Hints{ContentEncoding: "base64"})
			if len(doc.Layers) != 1 {
				t.Fatalf("steps\n%s", stepsText(doc))
			}
			l := doc.Layers[0]
			if *l.Base64 != tt.want || string(l.Before) != tt.before || string(l.After) != tt.after {
				t.Errorf("got %+v, %q, %q", *l.Base64, l.Before, l.After)
			}
			if got := rewrapped(t, l, []byte(tt.File)); !bytes.Equal(got, doc.Body) {
				t.Errorf("body %q", got)
			}
		})
	}
	if doc := decode(
		[]byte("QUJD\nREVGR0hJSktMTU5P\nUFFSU1Q="), Hints{ContentEncoding: "base64"},
	); layers(doc) != "base64 (standard alphabet, in uneven lines, padded)" {
		t.Error(layers(doc))
	}
}

func TestAnEnvelopeNamesTheType(t *testing.T) {
	t.Parallel()
	doc := decode([]byte(massTransitBody), Hints{ContentType: mt})
	if v, ok := doc.field(
		"username",
	); doc.named != "Company.Project.CreateUser" || v != "frankdrebin" || !ok || doc.Problem != "" {
		t.Errorf("named %q, problem %q, user %q", doc.named, doc.Problem, v)
	}
	doc = decode([]byte(easyNetQBody), Hints{Type: easyNetQType})
	if v, _ := doc.field("Sku"); doc.named != "Acme.Orders.Placed" || v != `a\b` || doc.Problem != "" {
		t.Errorf("named %q, problem %q, sku %q", doc.named, doc.Problem, v)
	}
	if want := "EasyNetQ wrote: System.AggregateException: One or more errors occurred. (no price)"; len(
		doc.Notes,
	) != 1 || doc.Notes[0] != want {
		t.Errorf("notes %q", doc.Notes)
	}
	doc = decode(cloudEvent("application/protobuf", `"data_base64": "CAE="`), Hints{ContentType: ce})
	if doc.named != "com.example.someevent" ||
		doc.Problem != "com.example.someevent (the type of the CloudEvent) is not registered" {
		t.Errorf("named %q, problem %q", doc.named, doc.Problem)
	}
}

func TestNamesOfDotNetTypes(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"Acme.Orders.Placed, Acme.Contracts":                                        "Acme.Orders.Placed",
		"Acme.Orders.Placed, Acme.Contracts, Version=1.0.0.0, Culture=neutral":      "Acme.Orders.Placed",
		"Acme.Orders.Placed:Acme.Contracts":                                         "Acme.Orders.Placed",
		"System.Collections.Generic.List`1[[System.String, mscorlib]], System.Core": "System.Collections.Generic.List`1[[System.String, mscorlib]], System.Core",
		"acme.v1.X":                   "acme.v1.X",
		"type.googleapis.com/acme.X":  "acme.X",
		"https://example.com/s/a.b.C": "a.b.C",
		"urn:acme:order":              "urn:acme:order",
		"order:created":               "order:created",
	} {
		if got := descriptor.TypeName(name); got != want {
			t.Errorf("%q: %q", name, got)
		}
	}
}
