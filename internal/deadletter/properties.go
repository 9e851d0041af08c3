package deadletter

import (
	"encoding/binary"
	"fmt"
	"iter"
	"time"
)

// Properties contains the 13 properties of an AMQP 0-9-1 basic message. A missing property is zero.
// The client library cannot distinguish it from an empty string, priority 0 or delivery mode 0
// (RABBITMQ: measured on 3.10.8, 4.0.5 and 4.3.6).
type Properties struct {
	ContentType     string    `json:"content_type,omitzero"`
	ContentEncoding string    `json:"content_encoding,omitzero"`
	Headers         Table     `json:"-"`
	DeliveryMode    uint8     `json:"delivery_mode,omitzero"` // 2 = persistent
	Priority        uint8     `json:"priority,omitzero"`
	CorrelationID   string    `json:"correlation_id,omitzero"`
	ReplyTo         string    `json:"reply_to,omitzero"`
	Expiration      string    `json:"expiration,omitzero"` // in milliseconds, as text
	MessageID       string    `json:"message_id,omitzero"`
	Timestamp       time.Time `json:"timestamp,omitzero"` // in whole seconds
	Type            string    `json:"type,omitzero"`
	UserID          string    `json:"user_id,omitzero"`
	AppID           string    `json:"app_id,omitzero"`
}

// These are the flags of the properties in the AMQP 0-9-1 content header.
const (
	hasContentType     = 1 << 15
	hasContentEncoding = 1 << 14
	hasHeaders         = 1 << 13
	hasDeliveryMode    = 1 << 12
	hasPriority        = 1 << 11
	hasCorrelationID   = 1 << 10
	hasReplyTo         = 1 << 9
	hasExpiration      = 1 << 8
	hasMessageID       = 1 << 7
	hasTimestamp       = 1 << 6
	hasType            = 1 << 5
	hasUserID          = 1 << 4
	hasAppID           = 1 << 3
)

// shortStrings returns the properties that are short strings, in their order on the wire. Each has
// its flag, its name and a pointer to its value.
func (p *Properties) shortStrings() [9]struct {
	flag  uint16
	name  string
	value *string
} {
	return [9]struct {
		flag  uint16
		name  string
		value *string
	}{
		{hasContentType, "content_type", &p.ContentType},
		{hasContentEncoding, "content_encoding", &p.ContentEncoding},
		{hasCorrelationID, "correlation_id", &p.CorrelationID},
		{hasReplyTo, "reply_to", &p.ReplyTo},
		{hasExpiration, "expiration", &p.Expiration},
		{hasMessageID, "message_id", &p.MessageID},
		{hasType, "type", &p.Type},
		{hasUserID, "user_id", &p.UserID},
		{hasAppID, "app_id", &p.AppID},
	}
}

// Texts returns the names and the values of the properties that are texts. The value of a property
// that is not set is "".
func (p Properties) Texts() iter.Seq2[string, string] {
	return func(yield func(name, value string) bool) {
		for _, s := range p.shortStrings() {
			if !yield(s.name, *s.value) {
				return
			}
		}
	}
}

// Encode encodes the properties as in an AMQP content header: first the flags, then the properties
// that are set, with the short strings first. The header table is sorted. Equal properties have
// equal encodings, as in AppendTable. The length differs by only a few bytes from the length on the
// wire. Errors name the property.
func (p Properties) Encode() ([]byte, error) {
	b := make([]byte, 2, 256)
	var flags uint16
	for _, s := range p.shortStrings() {
		if *s.value == "" {
			continue
		}
		if len(*s.value) > maxKey {
			return nil, fmt.Errorf("%w: %s is longer than 255 bytes", errField, s.name)
		}
		flags |= s.flag
		b = append(append(b, byte(len(*s.value))), *s.value...)
	}
	if p.DeliveryMode != 0 {
		flags |= hasDeliveryMode
		b = append(b, p.DeliveryMode)
	}
	if p.Priority != 0 {
		flags |= hasPriority
		b = append(b, p.Priority)
	}
	if !p.Timestamp.IsZero() {
		flags |= hasTimestamp
		b = binary.BigEndian.AppendUint64(b, uint64(p.Timestamp.Unix()))
	}
	if len(p.Headers) > 0 {
		flags |= hasHeaders
		var err error
		if b, err = AppendTable(b, p.Headers); err != nil {
			return nil, fmt.Errorf("headers: %w", err)
		}
	}
	binary.BigEndian.PutUint16(b, flags)
	return b, nil
}

// StoredProperties decodes properties as DecodeProperties does. If they cannot be decoded, it
// returns one header of the type Unread instead. A letter whose stored properties are damaged is
// therefore held with this reason, and delays no other letter.
func StoredProperties(b []byte) Properties {
	p, err := DecodeProperties(b)
	if err != nil {
		return Properties{Headers: Table{HeaderUnread: Unread{Field: b, Why: err.Error()}}}
	}
	return p
}

// DecodeProperties decodes properties that Encode has encoded.
func DecodeProperties(b []byte) (Properties, error) {
	r := &reader{b: b}
	flags := r.u16()
	var p Properties
	for _, s := range p.shortStrings() {
		if flags&s.flag != 0 {
			*s.value = r.short()
		}
	}
	if flags&hasDeliveryMode != 0 {
		p.DeliveryMode = r.u8()
	}
	if flags&hasPriority != 0 {
		p.Priority = r.u8()
	}
	if flags&hasTimestamp != 0 {
		p.Timestamp = time.Unix(int64(r.u64()), 0).UTC()
	}
	if flags&hasHeaders != 0 {
		p.Headers = r.table(0)
	}
	if r.err == nil && len(r.b) > 0 {
		r.err = fmt.Errorf("%d bytes left over", len(r.b))
	}
	if r.err != nil {
		return Properties{}, fmt.Errorf("stored properties: %w", r.err)
	}
	return p, nil
}
