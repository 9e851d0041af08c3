package deadletter

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// These are the headers that dlo adds to every message that it publishes. Their names do not begin
// with x-, which is the prefix of the broker. They survive dead-lettering on every version
// (measured on 3.10.8, 4.0.5, 4.3.6).
const (
	HeaderID      = "dlo-id"      // id of the letter
	HeaderToken   = "dlo-token"   // token of the attempt
	HeaderAttempt = "dlo-attempt" // number of the attempt, as an int64 counted from 1
)

// MaxProperties is the maximum size in bytes of the encoded properties of a message that dlo sends.
// A frame has at most 131,072 bytes, which is RabbitMQ's default frame_max. A publisher that sends
// a larger frame loses its connection (501). If the message dies again, its properties grow by at
// most 2 KB. RabbitMQ sends the resulting frame even if it is too large, but other clients do not
// read such a frame.
const MaxProperties = 120_000

// Change is a field that Sanitise removed or replaced, with its value and the reason.
type Change struct{ Field, Was, Why string }

// Notable reports whether a change must be recorded in the history of the letter. A change to a
// header that the broker or dlo writes for each message is not recorded.
func (c Change) Notable() bool {
	name := strings.TrimPrefix(c.Field, "header ")
	return !BrokerOwned(name) && name != HeaderID && name != HeaderToken && name != HeaderAttempt &&
		c.Field != "delivery_mode"
}

// Sanitise returns the properties with which dlo publishes a letter, and the changes that it made
// to the properties p. It removes three kinds of properties: those that belong to the broker, those
// that would send a second copy to another queue (CC, BCC), and those that make the broker close
// the publisher's channel (406). Everything else stays, with its type. Sanitise adds nothing,
// because dlo's own headers come from the attempt.
func Sanitise(p Properties) (Properties, []Change) {
	var changes []Change
	drop := func(field, was, why string) { changes = append(changes, Change{field, Visible(Cut(was, 200)), why}) }
	if p.UserID != "" {
		drop("user_id", p.UserID, "the broker accepts only the publisher's own user")
		p.UserID = ""
	}
	if p.Expiration != "" {
		drop("expiration", p.Expiration, "it would expire again")
		p.Expiration = ""
	}
	if strings.HasPrefix(p.ReplyTo, "amq.rabbitmq.reply-to") {
		drop("reply_to", p.ReplyTo, "a direct reply-to address ends with the connection that asked")
		p.ReplyTo = ""
	}
	if p.DeliveryMode != 2 {
		drop("delivery_mode", fmt.Sprint(p.DeliveryMode), "persistent, so that a broker restart does not lose it")
		p.DeliveryMode = 2
	}
	headers := make(Table, len(p.Headers)+3)
	for k, v := range p.Headers {
		if why := strippedHeader(k); why != "" {
			drop("header "+Visible(k), fmt.Sprint(v), why)
			continue
		}
		headers[k] = v
	}
	p.Headers = headers
	slices.SortFunc(changes, func(a, b Change) int { return strings.Compare(a.Field, b.Field) })
	return p, changes
}

// strippedHeader returns the reason why a header is never sent again. If the header may stay, it
// returns "".
func strippedHeader(key string) string {
	switch {
	case key == "CC" || key == "BCC":
		return "it would send copies to other queues"
	case BrokerOwned(key):
		return "the broker writes it"
	case key == HeaderID || key == HeaderToken || key == HeaderAttempt:
		return "dlo writes it again for each attempt"
	}
	return ""
}

// BrokerOwned reports whether RabbitMQ itself writes a header.
func BrokerOwned(key string) bool {
	return key == headerDeath || key == headerDeliveryCount || key == headerAcquiredCount ||
		strings.HasPrefix(key, prefixFirstDeath) || strings.HasPrefix(key, prefixLastDeath)
}

// Publishable returns nil if the properties can be published. The properties must include dlo's own
// headers. If they cannot be published, the error says why the broker would close the channel or
// the connection.
func Publishable(p Properties) error {
	if err := checkEncodable(p.Headers, 0); err != nil {
		return err
	}
	return p.Fits(MaxProperties)
}

// Fits returns nil if the encoded properties have at most the given number of bytes. If they have
// more, the error contains both numbers and names the header that takes the most bytes. If the
// properties cannot be encoded, Fits returns the error of the encoder.
func (p Properties) Fits(most int) error {
	encoded, err := p.Encode()
	if err != nil || len(encoded) <= most {
		return err
	}
	name, size := p.largestHeader()
	return fmt.Errorf(
		"the properties take %d bytes, more than the %d that fit into a frame; header %q takes %d of them: shorten or remove it",
		len(encoded), most, Visible(name), size,
	)
}

// largestHeader returns the header whose encoding is the largest. Of several equal ones, it returns
// the one whose name comes first.
func (p Properties) largestHeader() (name string, size int) {
	for k, v := range p.Headers {
		b, err := appendField(nil, v, 0)
		if n := 1 + len(k) + len(b); err == nil && (n > size || n == size && k < name) {
			name, size = k, n
		}
	}
	return name, size
}

// maxPublishNesting is the maximum nesting of tables and arrays that the client library can read
// (amqp091-go v1.16.0: 32). A consumer that receives deeper nesting loses its connection (502).
const maxPublishNesting = 32

// checkEncodable returns nil if a header value can be published. Otherwise the error says why not.
func checkEncodable(v any, depth int) error {
	if depth > maxPublishNesting {
		return fmt.Errorf("nested deeper than %d, which other clients cannot read: remove it", maxPublishNesting)
	}
	switch v := v.(type) {
	case Unread:
		return fmt.Errorf("it could not be read (%s), so it cannot be sent as it was: remove it", v.Why)
	case Table:
		for k, e := range v {
			if err := checkEncodable(e, depth+1); err != nil {
				return fmt.Errorf("header %q: %w", Visible(k), err)
			}
		}
	case []any:
		for _, e := range v {
			if err := checkEncodable(e, depth+1); err != nil {
				return err
			}
		}
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("a double that is not a number cannot be published: the broker answers 541")
		}
	case float32:
		if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
			return fmt.Errorf("a float that is not a number cannot be published: the broker answers 541")
		}
	}
	return nil
}
