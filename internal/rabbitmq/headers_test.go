package rabbitmq

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/testenv"
)

// hostile is a list of properties that RabbitMQ accepts, and of the values that dlo must read from
// them. Some malformed properties are not in the list, because RabbitMQ rejects messages with them:
// unknown types, truncated fields and tables, bytes after the last property, and floats with the
// value NaN (541; 3.10.8, 4.0.5, 4.3.6).
var hostile = []struct {
	name, properties string
	want             deadletter.Properties
	unread           string // why the header "x" cannot be read; "" = it can be read
}{
	{
		"of 130,900 bytes", headers("x", "S"+longString(strings.Repeat("e", 130_900))),
		headersOf("x", strings.Repeat("e", 130_900)), "",
	},
	{"nested 33 deep", headers("x", nestedArrays(33)), headersOf("x", arrays(33)), ""},
	{
		"nested 1,000 deep", headers("a", "I\x00\x00\x00\x01", "x", nestedArrays(1_000), "z", "t\x01"),
		headersOf("a", int32(1), "z", true), "nested deeper than 64",
	},
	{
		"9,000 elements", headers("x", "A"+longString(strings.Repeat("V", 9_000))), headersOf("x", make([]any, 9_000)),
		"",
	},
	{
		"120,000 elements", headers("x", "A"+longString(strings.Repeat("V", 120_000))),
		headersOf("x", make([]any, 120_000)), "",
	},
	{"the type L", headers("x", "L\xff\xff\xff\xff\xff\xff\xff\xfe"), headersOf("x", int64(-2)), ""},
	{"no UTF-8", headers("\x05", "S"+longString("\xff\x00")), headersOf("\x05", "\xff\x00"), ""},
	{
		"a reserved property and flag", "\x20\x05" + longString(shortString("x")+"t\x01") + shortString("cluster"),
		headersOf("x", true), "",
	},
	{
		"a time at the end of all times",
		"\x00\x40\x7f\xff\xff\xff\xff\xff\xff\xff",
		deadletter.Properties{Timestamp: time.Unix(1<<63-1, 0).UTC()},
		"",
	},
	{"none", "\x00\x00", deadletter.Properties{}, ""},
	{"an empty table", headers(), deadletter.Properties{}, ""},
}

func headersOf(fields ...any) deadletter.Properties {
	t := deadletter.Table{}
	for i := 0; i < len(fields); i += 2 {
		t[fields[i].(string)] = fields[i+1]
	}
	return deadletter.Properties{Headers: t}
}

func arrays(n int) any {
	v := []any{}
	for range n - 1 {
		v = []any{v}
	}
	return v
}

// readingInbox returns an inbox with its own link. The queue may be of any type.
func readingInbox(t *testing.T, url string, limits Limits) *Inbox {
	t.Helper()
	_, inbox := linked(t, Broker{URL: url, Inboxes: []string{"inbox"}, AcceptLimited: []string{"inbox"}}, limits)
	if _, err := inbox.Open(t.Context(), deadletter.InboxSession{Prefetch: 1}); err != nil {
		t.Fatal(err)
	}
	return inbox
}

// takeAll reads and acknowledges windows until it has read the last letter. The parameter "last" is
// the body of this letter.
func takeAll(t *testing.T, inbox *Inbox, last string) (all []deadletter.Arrival, windows []int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for len(all) == 0 || string(all[len(all)-1].Body) != last {
		w, err := inbox.Next(ctx)
		if err != nil {
			t.Fatalf("after %d letters: %v", len(all), err)
		}
		all, windows = append(all, w...), append(windows, len(w))
		if err := inbox.Ack(w); err != nil {
			t.Fatal(err)
		}
		if err := inbox.Fence(); err != nil {
			t.Fatal(err)
		}
	}
	return all, windows
}

// TestHeadersThatNoClientReads publishes letters with unusual headers. RabbitMQ accepts them, and
// passes them on unchanged or encodes them again when the letter dies. Half of these headers make
// amqp091-go close its connection. dlo must be able to read every one of them, and the letters
// between them, in one session.
func TestHeadersThatNoClientReads(t *testing.T) {
	t.Parallel()
	node := testenv.Broker(t)
	for _, kind := range []string{"classic", "quorum"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			_, url := node.VHost(t)
			p := newRawPublisher(t, url)
			p.declare(t, "inbox", amqp.Table{"x-queue-type": kind})
			p.declare(t, "work", dyingArguments("inbox"))
			for _, queue := range []string{"inbox", "work"} {
				for _, h := range hostile {
					p.publish(t, queue, h.properties, queue+" "+h.name)
					p.publish(t, queue, "\x00\x00", "good")
				}
			}
			p.publish(t, "work", "\x00\x00", "last")
			letters, _ := takeAll(t, readingInbox(t, url, Limits{
				Letters: 16, Bytes: 1 << 30, Linger: time.Millisecond,
			}), "last")
			got := map[string]deadletter.Properties{}
			good := 0
			for i := range letters {
				if string(letters[i].Body) == "good" {
					good++
				}
				got[string(letters[i].Body)] = letters[i].Properties
			}
			if len(letters) != 4*len(hostile)+1 || good != 2*len(hostile) {
				t.Errorf("%d letters, %d of them good", len(letters), good)
			}
			for _, h := range hostile {
				for _, queue := range []string{"inbox", "work"} {
					p := got[queue+" "+h.name]
					if _, died := p.Headers["x-death"].([]any); died != (queue == "work") {
						t.Errorf("%s, %s: the death of the letter: %v", h.name, queue, died)
					}
					check(t, queue+" "+h.name, p, h.want, h.unread)
				}
			}
		})
	}
}

// check compares the properties that dlo has read with those that were published.
func check(t *testing.T, name string, got, want deadletter.Properties, unread string) {
	t.Helper()
	headers := deadletter.Table{}
	for k, v := range got.Headers {
		if !deadletter.BrokerOwned(k) {
			headers[k] = v
		}
	}
	if u, ok := headers["x"].(deadletter.Unread); ok && u.Why == unread {
		delete(headers, "x")
		if len(u.Field) != 5_000 || u.Field[0] != 'A' {
			t.Errorf("%s: %d bytes of %q are kept", name, len(u.Field), u.Field[0])
		}
	} else if unread != "" {
		t.Errorf("%s: the header is %T", name, headers["x"])
	}
	got.Headers = headers
	a, err1 := got.Encode()
	b, err2 := want.Encode()
	if err1 != nil || err2 != nil || string(a) != string(b) {
		t.Errorf("%s: read as %.200s, %v, %v", name, fmt.Sprint(got), err1, err2)
	}
}

// everyType contains a header of each type that RabbitMQ knows. everyProperty contains each
// property that a message in AMQP can have.
var (
	everyType = headers(
		"V", "V", "t", "t\x05", "b", "b\xff", "B", "B\xff", "s", "s\xff\xfe", "u", "u\xff\xfe", "I",
		"I\xff\xff\xff\xfe", "i", "i\xff\xff\xff\xfe", "l", "l\xff\xff\xff\xff\xff\xff\xff\xfe",
		"f", "f\x3f\x80\x00\x00", "d", "d\x3f\xf0\x00\x00\x00\x00\x00\x01", "D", "D\x02\xff\xff\xff\xfe", "S",
		"S"+longString("a\xff\x00"), "x", "x"+longString("a\xff\x00"), "T", "T\x7f\xff\xff\xff\xff\xff\xff\xff",
		"A", "A"+longString("VI\x00\x00\x00\x01"+nestedArrays(20)), "F",
		"F"+longString(shortString("a")+"V"+shortString("")+"t\x00"), "", "V", "twice", "t\x01", "twice",
		"S"+longString("second"),
	)
	everyProperty = "\xff\xe8" + shortString("ct") + shortString("ce") + longString(shortString("a")+"V") + "\x02\x09" +
		shortString("corr") + shortString("reply") + shortString("60000") + shortString("id") +
		"\x00\x00\x00\x00\x60\x00\x00\x00" + shortString("type") + shortString("app")
)

// TestWhatTheClientReadsIsReadAlike compares how dlo and the AMQP client library decode the same
// properties, if the library can decode them. Earlier versions of dlo used the library for this.
// The results must be equal, so that dlo recognises a window that an earlier version left open.
func TestWhatTheClientReadsIsReadAlike(t *testing.T) {
	t.Parallel()
	_, url := testenv.VHost(t)
	p := newRawPublisher(t, url)
	p.declare(t, "inbox", amqp.Table{"x-queue-type": "classic"})
	p.declare(t, "work", dyingArguments("inbox"))
	all := map[string]string{"every type": everyType, "every property": everyProperty}
	for _, h := range hostile {
		all[h.name] = h.properties
	}
	inbox := readingInbox(t, url, Limits{Letters: 1, Bytes: 1 << 30})
	compared := 0
	for name, properties := range all {
		for _, queue := range []string{"inbox", "work"} {
			p.publish(t, queue, properties, name)
			theirs, ok := readByTheClient(t, url)
			ours, _ := takeAll(t, inbox, name)
			if !ok {
				continue
			}
			compared++
			if theirs != ours[0].Fingerprint {
				t.Errorf(
					"%s, %s: the client reads other properties than %.500s", name, queue,
					fmt.Sprint(ours[0].Properties),
				)
			}
		}
	}
	if compared < len(all) {
		t.Errorf("the client has read %d letters", compared)
	}
}

// readByTheClient computes the fingerprint of the inbox's first letter as the AMQP client library
// decodes it. It puts the letter back into the queue. The result is false if the letter makes the
// library close its connection.
func readByTheClient(t *testing.T, url string) (deadletter.Fingerprint, bool) {
	t.Helper()
	conn, err := amqp.Dial(url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	deliveries, err := ch.Consume("inbox", "", false, false, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	d, ok := <-deliveries
	if !ok {
		return deadletter.Fingerprint{}, false
	}
	a := deadletter.Arrival{
		Exchange:   d.Exchange,
		RoutingKey: d.RoutingKey,
		Body:       d.Body,
		Properties: deadletter.Properties{
			ContentType: d.ContentType, ContentEncoding: d.ContentEncoding, DeliveryMode: d.DeliveryMode,
			Priority: d.Priority, CorrelationID: d.CorrelationId, ReplyTo: d.ReplyTo,
			Expiration: d.Expiration, MessageID: d.MessageId, Timestamp: d.Timestamp, Type: d.Type, UserID: d.UserId,
			AppID: d.AppId,
		},
	}
	a.Properties.Headers, _ = ofClient(d.Headers).(deadletter.Table)
	print, err := a.Print()
	if err != nil {
		t.Fatal(err)
	}
	return print, true
}

// ofClient converts the value of a header from the types of the AMQP client library to dlo's types.
func ofClient(v any) any {
	switch v := v.(type) {
	case amqp.Table:
		out := deadletter.Table{}
		for k, e := range v {
			out[k] = ofClient(e)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = ofClient(e)
		}
		return out
	case amqp.Decimal:
		return deadletter.Decimal{Scale: v.Scale, Value: v.Value}
	}
	return v
}

// TestWindowsOfLargeHeadersAreSmall checks that the size of a window includes the memory of headers
// and their values. An array that contains only fields of type V takes 16 bytes of memory for each
// byte of the frame.
func TestWindowsOfLargeHeadersAreSmall(t *testing.T) {
	t.Parallel()
	for name, field := range map[string]string{
		"texts":  "S" + longString(strings.Repeat("e", 100_000)),
		"values": "A" + longString(strings.Repeat("V", 1_000)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, url := testenv.VHost(t)
			p := newRawPublisher(t, url)
			p.declare(t, "inbox", amqp.Table{"x-queue-type": "classic"})
			for range 100 {
				p.publish(t, "inbox", headers("x", field), "large")
			}
			p.publish(t, "inbox", "\x00\x00", "last")
			_, windows := takeAll(t, readingInbox(t, url, Limits{
				Letters: 500, Bytes: 1 << 20, Linger: time.Second,
			}), "last")
			for n, letters := range windows[1:] {
				if letters > 8 {
					t.Errorf("window %d has %d letters: %v", n+2, letters, windows)
				}
			}
		})
	}
}

// TestAnAnnotationWithALargeHeader checks that an annotation with a large header is stored like any
// other and does not end the session.
func TestAnAnnotationWithALargeHeader(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	_, url := testenv.VHost(t)
	p := newRawPublisher(t, url)
	p.declare(t, "notes", amqp.Table{"x-queue-type": "classic"})
	p.declare(t, "work", dyingArguments("notes"))
	for _, h := range hostile {
		p.publish(t, "work", h.properties, `{"message_id": "1", "message": "first"}`)
	}
	link, err := Connect(Broker{
		Name: "main", URL: url, InFlight: 1, ConfirmTimeout: time.Second,
	}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	taken := 0
	link.Annotations(ctx, Annotations{
		Queue: "notes", Refused: func() { t.Error("one is refused"); cancel() },
		Take: func(_ context.Context, list []deadletter.Annotation) error {
			if taken += len(list); taken == len(hostile) {
				cancel()
			}
			return nil
		},
	})
	if taken != len(hostile) {
		t.Errorf("%d annotations of %d", taken, len(hostile))
	}
}
