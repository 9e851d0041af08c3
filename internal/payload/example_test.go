package payload_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing/fstest"

	"github.com/deadletteroffice/dlo/internal/budget"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/descriptor"
	"github.com/deadletteroffice/dlo/internal/payload"
)

const webhook = `
syntax = "proto3";
package acme.hooks.v1;
message WebhookDelivery {
  string url = 1;
  int64 tenant = 2;
  bool retried = 3;
}`

func ExampleDecoder_Decode() {
	types := descriptor.NewRegistry()
	if _, err := types.AddSource("hooks", fstest.MapFS{
		"acme/hooks/v1/hooks.proto": {Data: []byte(webhook)},
	}); err != nil {
		fmt.Println(err)
		return
	}
	d := &payload.Decoder{
		Types:    types,
		Bindings: []deadletter.Binding{{Queue: "webhook-*", Type: "acme.hooks.v1.WebhookDelivery"}},
	}
	body := base64.StdEncoding.EncodeToString([]byte("\x0a\x11https://a.example\x10\xd5\xf8\x02"))

	doc := d.Decode([]byte(body), payload.Hints{Queue: "webhook-queue"}, budget.NewBudget())
	fmt.Println(doc.Kind, doc.Type, "by", doc.Chosen)
	for _, s := range doc.Steps {
		fmt.Println(s.OK, s.Text)
	}
	for _, n := range doc.Fields {
		fmt.Println(strings.TrimSpace(fmt.Sprintf("%d %s %s %s", n.Number, n.Name, n.Value, n.Note)))
	}
	fmt.Println(doc.JSON)
	fmt.Println(payload.Summary(doc, ""))
	// Output:
	// protobuf acme.hooks.v1.WebhookDelivery by the binding of webhook-*
	// true base64, standard alphabet, padded
	// true protobuf by the binding of webhook-*, whole body used
	// 1 url "https://a.example"
	// 2 tenant 48213
	// 3 retried false default, not on the wire
	// {
	//   "url": "https://a.example",
	//   "tenant": "48213"
	// }
	// url: "https://a.example", tenant: 48213
}

func ExampleDecoder_Decode_mask() {
	masks := payload.Masks{JSON: []deadletter.FieldPath{{"card", "number"}}}
	d := &payload.Decoder{Mask: masks.Body()}
	doc := d.Decode([]byte(`{"card":{"number":"4111 1111 1111 1111","name":"Dana"}}`), payload.Hints{}, nil)
	fmt.Println(doc.JSON)
	fmt.Println(payload.Summary(doc, ""), doc.Masked)
	// Output:
	// {
	//   "card": {
	//     "number": "••••",
	//     "name": "Dana"
	//   }
	// }
	// card.number: ••••, card.name: "Dana" true
}

func ExampleDecoder_Edit() {
	types := descriptor.NewRegistry()
	if _, err := types.AddSource("hooks", fstest.MapFS{
		"acme/hooks/v1/hooks.proto": {Data: []byte(webhook)},
	}); err != nil {
		fmt.Println(err)
		return
	}
	d := &payload.Decoder{Types: types}
	h := payload.Hints{Type: "acme.hooks.v1.WebhookDelivery"}
	body := []byte(base64.StdEncoding.EncodeToString([]byte("\x0a\x11https://a.example\x10\xd5\xf8\x02\x7a\x03new")))

	e, _ := d.Editable(body, h, nil)
	fmt.Println(e.Type, e.Wrapping)
	edited, err := d.Edit(body, h, strings.Replace(e.Text, "a.example", "b.example", 1), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	raw, _ := base64.StdEncoding.DecodeString(string(edited.Body))
	fmt.Printf("%q %v\n", raw, edited.Changed)
	for _, c := range edited.Checks {
		fmt.Println(c.OK, c.Text)
	}
	_, err = d.Edit(body, h, "{\n  \"tenant\": \"none\"\n}", nil)
	fmt.Println(err)
	// Output:
	// acme.hooks.v1.WebhookDelivery base64, as received
	// "\n\x11https://b.example\x10\xd5\xf8\x02z\x03new" [url]
	// true Valid JSON, valid for the type
	// true Encoded again to 28 B, decodes back unchanged
	// true 1 field that the JSON does not show, 5 B, carried over
	// true base64, as received
	// true 40 B to send (limit 16 MiB)
	// line 2, column 13: tenant: write a whole number from -9223372036854775808 to 9223372036854775807
}

func ExampleDocument_Value() {
	doc := new(payload.Decoder).Decode(
		[]byte(`{"to":{"address":"dana@example.com"},"items":[{"sku":"A-1"}]}`), payload.Hints{}, nil,
	)
	address, _, ok := doc.Value("to.address")
	fmt.Println(address, ok)
	for _, path := range []string{"items.[0].sku", "items.sku"} {
		sku, _, ok := doc.Value(path)
		fmt.Println(sku, ok)
	}
	// Output:
	// dana@example.com true
	// A-1 true
	// A-1 true
}

func ExampleRegistry_LoadDir() {
	types := descriptor.NewRegistry()
	err := types.LoadDir(fstest.MapFS{
		"hooks.proto": {Data: []byte(webhook)},
		"old.binpb":   {Data: []byte("half a file")},
	})
	fmt.Println(err)
	fmt.Println(types.Types())
	// Output:
	// old.binpb: this is not a descriptor set
	// [acme.hooks.v1.WebhookDelivery]
}
