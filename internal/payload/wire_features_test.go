package payload

import (
	"bytes"
	"encoding/base64"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/deadletteroffice/dlo/internal/payload/payloadtest"
)

// TestWireFeatures makes three edits of a body for each feature of the wire format: no change, a
// new value of the same length in one field, and a longer value in that field. Everything else in
// the message must stay equal, in raw bodies and in base64. If nothing changes, the bytes stay.
func TestWireFeatures(t *testing.T) {
	t.Parallel()
	features := append(payloadtest.WireFeatures(),
		payloadtest.WireFeature{
			Name: "Struct", Type: "acme.notify.v1.Kinds",
			Body: encode(t, "acme.notify.v1.Kinds", `{"extra": {"a": [1, null, {"b": "x"}], "c": true}}`),
		},
		payloadtest.WireFeature{
			Name: "Struct with the names of marks", Type: "acme.notify.v1.Kinds",
			Body: encode(
				t, "acme.notify.v1.Kinds",
				`{"extra": {"@x": {"numberValue": "NaN"}, "a": [{"@x": {}}, {"@@x": {"@x": []}, "@x": null}], "b": {"@type": "x"}}}`,
			),
		},
	)
	for _, tt := range features {
		t.Run(tt.Name, func(t *testing.T) {
			t.Parallel()
			field := payloadtest.EditedField[tt.Type].Name
			h := Hints{Type: tt.Type}
			for i, encoded := range []func([]byte) []byte{bytes.Clone, encodeStd} {
				unwrapped := func(body []byte) []byte {
					if i == 0 {
						return body
					}
					b, err := base64.StdEncoding.DecodeString(string(body))
					if err != nil {
						t.Fatal(err)
					}
					return b
				}
				for _, v := range []uint64{7, 8, 300} {
					body, want := encoded(tt.With(7)), encoded(tt.With(v))
					text := editText(t, editor(), body, h)
					edited := strings.Replace(
						text, `"`+field+`": 7`, `"`+field+`": `+map[uint64]string{7: "7", 8: "8", 300: "300"}[v], 1,
					)
					if v != 7 && edited == text {
						t.Fatalf("no %s in %s", field, text)
					}
					e, err := editor().Edit(body, h, edited, nil)
					if err != nil {
						t.Fatalf("%d: %v of %s", v, err, edited)
					}
					if v == 7 {
						if !bytes.Equal(e.Body, body) {
							t.Errorf("unchanged: of %q\ngot %q", body, e.Body)
						}
						continue
					}
					sameMessage(t, tt.Type, unwrapped(e.Body), unwrapped(want))
					patch := `[{"op": "replace", "path": "/` + field + `", "value": ` + map[uint64]string{
						8: "8", 300: "300",
					}[v] + `}]`
					e, err = editor().Patch(body, h, []byte(patch), nil)
					if err != nil {
						t.Fatalf("patch %s: %v", patch, err)
					}
					sameMessage(t, tt.Type, unwrapped(e.Body), unwrapped(want))
				}
			}
		})
	}
}

// sameMessage fails if two bodies are not equal as messages of a type, with their unknown fields.
func sameMessage(t testing.TB, typ string, got, want []byte) {
	t.Helper()
	defs, _ := schemas().Lookup(typ)
	var messages [2]*dynamicpb.Message
	for i, body := range [][]byte{got, want} {
		messages[i] = dynamicpb.NewMessage(defs[0].Desc)
		if err := unmarshal(body, messages[i], defs[0].Types); err != nil {
			t.Fatalf("%x: %v", body, err)
		}
	}
	if !proto.Equal(messages[0], messages[1]) {
		t.Errorf("got  %x\nwant %x", got, want)
	}
}
