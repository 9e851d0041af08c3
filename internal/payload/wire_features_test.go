package payload

import (
	"bytes"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/payload/payloadtest"
)

// TestWireFeatures makes three edits of a body for each feature of the wire format: no change, a
// new value of the same length in one field, and a longer value in that field. All other bytes must
// stay the same, in raw bodies and in base64.
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
				`{"extra": {"@wire": {"numberValue": "NaN"}, "a": [{"@wire": {}}, {"@@wire": {"@wire": []}, "@wire": null}], "b": {"@type": "x"}}}`,
			),
		},
	)
	for _, tt := range features {
		t.Run(tt.Name, func(t *testing.T) {
			t.Parallel()
			field := payloadtest.EditedField[tt.Type].Name
			h := Hints{Type: tt.Type}
			for _, encoded := range []func([]byte) []byte{bytes.Clone, encodeStd} {
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
					if !bytes.Equal(e.Body, want) {
						t.Errorf("%d: of %q\ngot  %q\nwant %q", v, body, e.Body, want)
					}
					if v == 7 {
						continue
					}
					patch := `[{"op": "replace", "path": "/` + field + `", "value": ` + map[uint64]string{
						8: "8", 300: "300",
					}[v] + `}]`
					e, err = editor().Patch(body, h, []byte(patch), nil)
					if err != nil || !bytes.Equal(e.Body, want) {
						t.Errorf("patch %s: %v\ngot %+v", patch, err, e)
					}
				}
			}
		})
	}
}
