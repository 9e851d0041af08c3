package rabbitmq

import (
	"fmt"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	amqp "github.com/rabbitmq/amqp091-go"
)

// valueSize is the maximum memory in bytes that a header value takes in addition to its own bytes
// (TestHeadersTakeBoundedMemory of internal/deadletter).
const valueSize = 180

// arrival combines a delivery with the properties that the connection has kept for it. It also
// returns roughly how many bytes of memory the result takes.
func (i *Inbox) arrival(d *amqp.Delivery) (deadletter.Arrival, int, error) {
	raw, err := i.letters.take(d.MessageId)
	if err != nil {
		return deadletter.Arrival{}, 0, err
	}
	properties, values := deadletter.ReadProperties(raw)
	a := deadletter.Arrival{
		Exchange:    d.Exchange,
		RoutingKey:  d.RoutingKey,
		Tag:         d.DeliveryTag,
		Redelivered: d.Redelivered,
		Properties:  properties,
		Body:        d.Body,
	}
	a.Fingerprint, err = a.Print()
	return a, len(d.Body) + len(raw) + values*valueSize, err
}

func publishing(p deadletter.Properties, body []byte) amqp.Publishing {
	return amqp.Publishing{
		ContentType:     p.ContentType,
		ContentEncoding: p.ContentEncoding,
		Headers:         toTable(p.Headers),
		DeliveryMode:    p.DeliveryMode,
		Priority:        p.Priority,
		CorrelationId:   p.CorrelationID,
		ReplyTo:         p.ReplyTo,
		Expiration:      p.Expiration,
		MessageId:       p.MessageID,
		Timestamp:       p.Timestamp,
		Type:            p.Type,
		UserId:          p.UserID,
		AppId:           p.AppID,
		Body:            body,
	}
}

// whyNotEncodable returns the reason why a message cannot be written as AMQP 0-9-1 in frames of the
// given size. It returns nil if the message can be written.
//
// The AMQP client library (amqp091-go v1.16.0) detects some of these errors only while it writes,
// and then has to close the connection. It does not check the frame size at all, and the broker
// closes the connection if a frame is too large (501).
func whyNotEncodable(p *deadletter.Publishing, frame int) error {
	if n := len(p.Queue); n > 255 { // the length of a queue's name is one byte
		return fmt.Errorf("the name of the queue has %d bytes; 255 are possible", n)
	}
	return p.Properties.Fits(frame - frameHead - headSize - 1)
}

// toTable converts a table of headers to the type of the AMQP client library. This library has its
// own types for tables and decimals. All other values have the same Go types.
func toTable(t deadletter.Table) amqp.Table {
	if t == nil {
		return nil
	}
	out := make(amqp.Table, len(t))
	for k, v := range t {
		out[k] = toField(v)
	}
	return out
}

func toField(v any) any {
	switch v := v.(type) {
	case deadletter.Table:
		return toTable(v)
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = toField(e)
		}
		return out
	case deadletter.Decimal:
		return amqp.Decimal{Scale: v.Scale, Value: v.Value}
	}
	return v
}
