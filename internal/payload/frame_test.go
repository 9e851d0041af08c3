package payload

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestAFrameKeepsItsLength reads bodies that begin with the length of what follows: sections of an
// AMQP 1.0 message as RabbitMQ 4.x hands them to a 0-9-1 consumer, and gRPC frames. They are not
// Confluent's, although their first bytes would fit. An edit would leave the old length in place,
// so it must be refused with the reason. A Confluent prefix that may hold a length is read, but an
// edit is refused as well.
func TestAFrameKeepsItsLength(t *testing.T) {
	t.Parallel()
	text := `{"id": 7, "tenant": "acme"}`
	short := func(section, constructor byte) []byte {
		return append([]byte{0, 0x53, section, constructor, byte(len(text))}, text...)
	}
	long := func(section, constructor byte, text string) []byte {
		n := len(text)
		return append([]byte{
			0, 0x53, section, constructor, byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n),
		}, text...)
	}
	for name, c := range map[string]struct {
		body   []byte
		layers string
		why    string
	}{
		"amqp-value string":      {short(0x77, 0xa1), "", "AMQP 1.0"},
		"amqp-value binary":      {short(0x77, 0xa0), "", "AMQP 1.0"},
		"amqp-value long string": {long(0x77, 0xb1, text), "", "AMQP 1.0"},
		"amqp-value long binary": {long(0x77, 0xb0, text), "", "AMQP 1.0"},
		"amqp-sequence":          {short(0x76, 0xc0), "", "AMQP 1.0"},
		"data":                   {short(0x75, 0xa0), "", "AMQP 1.0"},
		"gRPC":                   {confluent(uint32(len(text)), nil, []byte(text)), "", "gRPC"},
		"Confluent":              {confluent(7, nil, []byte(text)), "Confluent (schema 7)", ""},
		"Confluent, or a length": {
			confluent(5<<8|uint32(len(text)), nil, []byte(text)), fmt.Sprintf("Confluent (schema %d)", 5<<8|len(text)),
			fmt.Sprintf("its length of %d", len(text)),
		},
		"length in the other order": {
			confluent(uint32(len(text))<<24, nil, []byte(text)), fmt.Sprintf("Confluent (schema %d)", len(text)<<24),
			fmt.Sprintf("its length of %d", len(text)),
		},
	} {
		if got := layers(decode(c.body, Hints{})); got != c.layers {
			t.Errorf("%s: layers %q, want %q", name, got, c.layers)
		}
		_, patch := editor().Patch(
			c.body, Hints{}, []byte(`[{"op":"replace","path":"/tenant","value":"acme and sons"}]`), nil,
		)
		_, editable := editor().Editable(c.body, Hints{}, nil)
		for _, err := range []error{patch, editable} {
			var refused *EditError
			if c.why == "" && err != nil ||
				c.why != "" && (!errors.As(err, &refused) || !strings.Contains(err.Error(), c.why) ||
					!strings.Contains(err.Error(), "replace it as a whole")) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}
