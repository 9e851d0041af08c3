package payload

import (
	"bytes"
	"compress/flate"
	"compress/zlib"
	"encoding/base64"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/budget"
	"github.com/deadletteroffice/dlo/internal/payload/payloadtest"
	"pgregory.net/rapid"
)

func zlibbed(t testing.TB, b []byte) []byte {
	t.Helper()
	var w bytes.Buffer
	z := zlib.NewWriter(&w)
	_, err := z.Write(b)
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return w.Bytes()
}

func deflated(t testing.TB, b []byte) []byte {
	t.Helper()
	var w bytes.Buffer
	z, err := flate.NewWriter(&w, 9)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := z.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return w.Bytes()
}

// inLines returns base64 in lines, as used in mail.
func inLines(b []byte, alphabet *base64.Encoding, size int, end string) []byte {
	text := alphabet.EncodeToString(b)
	var w strings.Builder
	for len(text) > size {
		w.WriteString(text[:size] + end)
		text = text[size:]
	}
	return []byte(w.String() + text)
}

func TestEditWrapsAgain(t *testing.T) {
	t.Parallel()
	body := encode(
		t, email,
		`{"requestId": "req_1", "to": {"address": "dana@example.com"}, "template": {"name": "welcome_v3", "locale": "en-GB"}, "idempotencyKey": "+/+/+/+/"}`,
	)
	text := `{"requestId": "req_1", "template": {"name": "welcome_v3"}}`
	types := cloudEvent("application/protobuf; messageType="+email, `"data_base64": "`+string(encodeStd(body))+`"`)
	tests := []struct {
		name   string
		body   []byte
		h      Hints
		prefix string // prefix of the new body
		suffix string
		check  string
	}{
		{"base64", encodeStd(body), Hints{Type: email}, "", "", "ok base64, as received"},
		{
			"base64 with white space around",
			wire([]byte(" \r\n"), encodeStd(body), []byte("\n")),
			Hints{Type: email},
			" \r\n",
			"\n",
			"",
		},
		{
			"base64 of URLs, not padded",
			[]byte(base64.RawURLEncoding.EncodeToString(body)),
			Hints{Type: email},
			"",
			"",
			"",
		},
		{"base64 in lines", inLines(body, base64.StdEncoding, 76, "\r\n"), Hints{Type: email}, "", "", ""},
		{"base64 in short lines", inLines(body, base64.URLEncoding, 20, "\n"), Hints{Type: email}, "", "", ""},
		{"gzip", payloadtest.Gzipped(t, body), Hints{Type: email}, "\x1f\x8b", "", "ok gzip, as received"},
		{"zlib", zlibbed(t, body), Hints{Type: email, ContentEncoding: "deflate"}, "\x78", "", ""},
		{
			"bare deflate",
			deflated(t, body),
			Hints{Type: email, ContentEncoding: "deflate"},
			"",
			"",
			"ok deflate, as received",
		},
		{"zstd", zstded(t, body), Hints{Type: email}, "\x28\xb5\x2f\xfd", "", "ok zstd, as received"},
		{"snappy", snappied(t, body), Hints{Type: email}, "\xff\x06\x00\x00sNaPpY", "", "ok snappy, as received"},
		{
			"Confluent",
			confluent(7, []byte{4, 2, 0}, body),
			Hints{Type: email},
			"\x00\x00\x00\x00\x07\x04\x02\x00",
			"",
			"ok Confluent, as received",
		},
		{"Confluent JSON", confluent(7, nil, []byte(text)), Hints{}, "\x00\x00\x00\x00\x07{", "}", ""},
		{
			"base64 of gzip of base64",
			encodeStd(payloadtest.Gzipped(t, encodeStd(body))),
			Hints{Type: email},
			"H4sI",
			"",
			"ok base64 of gzip of base64, as received",
		},
		{
			"gzip of zstd of Confluent",
			payloadtest.Gzipped(t, zstded(t, confluent(7, []byte{0}, body))),
			Hints{Type: email},
			"\x1f\x8b",
			"",
			"ok gzip of zstd of Confluent, as received",
		},
		{
			"CloudEvent of JSON",
			cloudEvent("", `"data": `+text),
			Hints{ContentType: ce},
			`{"specversion": "1.0"`,
			`}, "comexampleothervalue": 5}`,
			"ok CloudEvents, as received",
		},
		{
			"CloudEvent of base64",
			types,
			Hints{ContentType: ce},
			`{"specversion": "1.0"`,
			`", "comexampleothervalue": 5}`,
			"ok Unknown",
		},
		{
			"base64 of gzip of a CloudEvent",
			encodeStd(payloadtest.Gzipped(t, types)),
			Hints{ContentType: ce},
			"H4sI",
			"",
			"ok base64 of gzip of CloudEvents, as received",
		},
		{
			"CloudEvent of base64 of gzip",
			cloudEvent(
				"application/protobuf; messageType="+email,
				`"data_base64": "`+string(encodeStd(payloadtest.Gzipped(t, body)))+`"`,
			),
			Hints{ContentType: ce},
			`{"specversion"`,
			`}`,
			"",
		},
		{
			"CloudEvent of text",
			cloudEvent(
				"text/x-json", `"data": "{\"requestId\":\"req_1\",\"template\":{\"name\":\"welcome_v3\\u00e4\"}}"`,
			),
			Hints{ContentType: ce},
			`{"specversion"`,
			`\"\n  }\n}", "comexampleothervalue": 5}`,
			"",
		},
		{
			"MassTransit",
			[]byte(`{"messageType": ["urn:message:A:B"], "message" : ` + text + `, "headers": {}}`),
			Hints{ContentType: mt},
			`{"messageType": ["urn:message:A:B"], "message" : {`,
			`}, "headers": {}}`,
			"ok MassTransit, as received",
		},
		{
			"EasyNetQ error",
			easyNetQOf(text, "application/json", "x"),
			Hints{Type: easyNetQType},
			`{"RoutingKey":"k","Exchange":"e","Exception":"x","Message":"{`,
			`}","DateTime":"2026-01-02T03:04:05Z","BasicProperties":{"ContentType":"application/json","Type":"x"}}`,
			"ok EasyNetQ error, as received",
		},
		{
			"EasyNetQ error of base64",
			easyNetQOf(string(encodeStd(body)), "application/octet-stream", email),
			Hints{Type: easyNetQType},
			`{"RoutingKey":"k"`,
			`}}`,
			"ok EasyNetQ error of base64, as received",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			before := decode(tt.body, tt.h)
			if len(before.Layers) == 0 {
				t.Fatal(stepsText(before))
			}
			e := change(t, editor(), tt.body, tt.h, "welcome_v3", `welcome_version_004`)
			after := decode(e.Body, tt.h)
			padding := strings.NewReplacer(", padded", "") // differs by chance if compressed
			if padding.Replace(layers(before)) != padding.Replace(layers(after)) || before.Kind != after.Kind ||
				before.Type != after.Type || !strings.Contains(
				after.JSON, "welcome_version_004",
			) {
				t.Errorf("got %s %s in %s, want %s: %q", after.Kind, after.Type, layers(after), layers(before), e.Body)
			}
			for i := range before.Layers {
				a, b := before.Layers[i], after.Layers[i]
				if !bytes.Equal(a.Before, b.Before) || !bytes.Equal(a.After, b.After) || a.Quoted != b.Quoted ||
					a.Bare != b.Bare || !reflect.DeepEqual(a.Base64, b.Base64) {
					t.Errorf("layer %+v was %+v", b, a)
				}
			}
			if !strings.HasPrefix(string(e.Body), tt.prefix) || !strings.HasSuffix(string(e.Body), tt.suffix) {
				t.Errorf("got %q", e.Body)
			}
			if strings.HasPrefix(tt.check, "ok Unknown") {
				tt.check = ""
			}
			if got := checksText(e); !strings.Contains(got, tt.check) || strings.Contains(got, "On its own") {
				t.Errorf("checks\n%s", got)
			}
			same, err := editor().Edit(tt.body, tt.h, editText(t, editor(), tt.body, tt.h), nil)
			if err != nil || !bytes.Equal(same.Body, tt.body) {
				t.Errorf("unchanged: %q, %v", same.Body, err)
			}
		})
	}
}

func TestEditThatIsNoEnvelopeAnyMore(t *testing.T) {
	t.Parallel()
	e, err := editor().Edit(
		[]byte(`{"messageType":["urn:message:A:B"],"message":{"a":1}}`), Hints{ContentType: mt}, `[1]`, nil,
	)
	if err != nil || string(e.Body) != `{"messageType":["urn:message:A:B"],"message":[1]}` ||
		!strings.Contains(checksText(e), "warn On its own, the new body would be read as something else: json") {
		t.Errorf("got %+v, %v", e, err)
	}
	e = change(t, editor(), encodeStd([]byte("the quick brown fox")), Hints{}, "the quick brown fox", "fox")
	if string(e.Body) != "Zm94" || !strings.Contains(
		checksText(e), "warn On its own, the new body would be read as something else: text",
	) {
		t.Errorf("got %s, %s", e.Body, checksText(e))
	}
	e = change(t, editor(), []byte("aGVsbG8gdGhlcmUgeW91"), Hints{ContentEncoding: "base64"}, "you", "all!")
	if string(e.Body) != "aGVsbG8gdGhlcmUgYWxsIQ==" ||
		!strings.Contains(
			checksText(e), "warn base64: the original does not show whether its base64 is padded; the new body is",
		) {
		t.Errorf("got %s, %s", e.Body, checksText(e))
	}
	_, err = (&Layer{Name: "CloudEvents", Quoted: true}).wrap([]byte{0xff})
	if err == nil {
		t.Error("bytes in a text")
	}
}

// TestWrapRandomLayers checks that every wrapped body can be unwrapped again.
func TestWrapRandomLayers(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		data := rapid.SliceOf(rapid.Byte()).Draw(t, "data")
		if rapid.Bool().Draw(t, "text") {
			data, _ = json.Marshal(rapid.String().Draw(t, "string"))
		}
		var list []Layer
		for range rapid.IntRange(1, 3).Draw(t, "layers") {
			l := Layer{
				Name: rapid.SampledFrom([]string{
					"base64", "gzip", "deflate", "zstd", "snappy", "Confluent", "CloudEvents",
				}).Draw(t, "name"),
			}
			switch l.Name {
			case "deflate":
				l.Bare = rapid.Bool().Draw(t, "bare")
			case "base64", "CloudEvents":
				l.Base64 = &Base64{URL: rapid.Bool().Draw(t, "URL"), NoPadding: rapid.Bool().Draw(t, "no padding")}
				if l.Base64.Line = rapid.IntRange(0, 3).Draw(t, "line") * 20; l.Base64.Line > 0 {
					l.Base64.Break = rapid.SampledFrom([]string{"\n", "\r\n", "\r"}).Draw(t, "break")
				}
				if l.Before, l.After = []byte(" \n"), []byte("\r\n"); l.Name == "CloudEvents" {
					l.Quoted, l.Before, l.After = true, []byte(`{"data_base64":"`), []byte(`"}`)
				}
			case "Confluent":
				l.Before = []byte{0, 0, 0, 0, 7, 0}
			}
			list = append(list, l)
		}
		out, _, err := wrap(list, data, budget.NewBudget())
		if err != nil {
			t.Fatal(err)
		}
		for i := range list {
			l := &list[i]
			switch {
			case l.Base64 != nil:
				if !bytes.HasPrefix(out, l.Before) || !bytes.HasSuffix(out, l.After) {
					t.Fatalf("%+v: %q", l, out)
				}
				out = out[len(l.Before) : len(out)-len(l.After)]
				if l.Quoted {
					out = []byte(unquoteJSON([]byte(`"` + string(out) + `"`)))
				}
				alphabet := base64.StdEncoding
				if l.Base64.URL {
					alphabet = base64.URLEncoding
				}
				if l.Base64.NoPadding {
					alphabet = alphabet.WithPadding(base64.NoPadding)
				}
				for line := range bytes.SplitSeq(out, []byte(l.Base64.Break)) {
					if l.Base64.Line > 0 && len(line) > l.Base64.Line {
						t.Fatalf("%+v: a line of %d", l, len(line))
					}
				}
				out = bytes.ReplaceAll(out, []byte(l.Base64.Break), nil)
				if out, err = alphabet.DecodeString(string(out)); err != nil {
					t.Fatalf("%+v: %v", l, err)
				}
			case l.Name == "Confluent":
				out = bytes.TrimPrefix(out, l.Before)
			default:
				was := *l
				if out, err = inflate(l, out, budget.NewBudget()); err != nil || l.Bare != was.Bare {
					t.Fatalf("%+v: %v", l, err)
				}
			}
		}
		if !bytes.Equal(out, data) {
			t.Fatalf("got %q, want %q", out, data)
		}
	})
}
