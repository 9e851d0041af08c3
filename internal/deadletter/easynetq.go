package deadletter

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
)

// easyNetQError is a part of the property type in messages that EasyNetQ puts into its error
// queues. The whole property is "EasyNetQ.SystemMessages.Error, EasyNetQ".
const easyNetQError = "EasyNetQ.SystemMessages.Error"

// EasyNetQError reports whether a message is an EasyNetQ error, which is an envelope around the
// message that failed.
func EasyNetQError(p Properties) bool { return strings.Contains(p.Type, easyNetQError) }

// maximum number of EasyNetQ errors inside each other; an error is inside another if somebody
// requeued it without unwrapping it
const maxWrapped = 4

// UnwrapEasyNetQ returns the message inside an EasyNetQ error. The body comes from the member
// Message, and the properties come from BasicProperties. EasyNetQ's own tool Hosepipe sends a
// message in the same way. If the message cannot be unwrapped, the error says why.
//
// JSON does not contain the numeric types of headers. Therefore numbers become int64 or double, as
// they do when Hosepipe sends them.
func UnwrapEasyNetQ(body []byte) (p Properties, message []byte, err error) {
	for range maxWrapped {
		if p, body, err = unwrapOne(body); err != nil {
			return Properties{}, nil, fmt.Errorf("the error of EasyNetQ cannot be unwrapped: %w", err)
		}
		if !EasyNetQError(p) {
			return p, body, nil
		}
	}
	return Properties{}, nil, errors.New("the error of EasyNetQ cannot be unwrapped: it is wrapped too often")
}

func unwrapOne(body []byte) (p Properties, message []byte, err error) {
	var envelope struct {
		Message         *string
		BasicProperties *struct {
			ContentType, ContentEncoding, CorrelationID, ReplyTo, Expiration, MessageID, Type, UserID, AppID string

			Headers                           json.RawMessage
			DeliveryMode, Priority, Timestamp json.Number
		}
	}
	d := json.NewDecoder(strings.NewReader(strings.TrimPrefix(string(body), "\ufeff")))
	d.UseNumber()
	if err := d.Decode(&envelope); err != nil {
		return p, nil, errors.New("it is not the JSON that EasyNetQ writes")
	}
	switch in := envelope.BasicProperties; {
	case envelope.Message == nil:
		return p, nil, errors.New("it has no Message")
	case in == nil:
		return p, nil, errors.New("it has no BasicProperties")
	default:
		p = Properties{
			ContentType:     in.ContentType,
			ContentEncoding: in.ContentEncoding,
			CorrelationID:   in.CorrelationID,
			ReplyTo:         in.ReplyTo,
			Expiration:      in.Expiration,
			MessageID:       in.MessageID,
			Type:            in.Type,
			UserID:          in.UserID,
			AppID:           in.AppID,
		}
		if p.Headers, err = headersOfJSON(in.Headers); err != nil {
			return p, nil, err
		}
		if n, err := in.Priority.Int64(); err == nil && n > 0 && n <= math.MaxUint8 {
			p.Priority = uint8(n)
		}
		if n, err := in.DeliveryMode.Int64(); err == nil && (n == 1 || n == 2) {
			p.DeliveryMode = uint8(n)
		}
		if n, err := in.Timestamp.Int64(); err == nil && n > 0 && n < 1<<40 {
			p.Timestamp = time.Unix(n, 0).UTC()
		}
		for name, text := range map[string]string{
			"content_type": p.ContentType, "content_encoding": p.ContentEncoding, "correlation_id": p.CorrelationID,
			"reply_to": p.ReplyTo, "message_id": p.MessageID, "type": p.Type, "app_id": p.AppID,
		} {
			if len(text) > math.MaxUint8 {
				return p, nil, fmt.Errorf("its %s is longer than AMQP allows", name)
			}
		}
	}
	message, err = messageOf(*envelope.Message, p.ContentType)
	return p, message, err
}

// messageOf returns the body inside an EasyNetQ error. The body is plain text or, with
// Base64ErrorMessageSerializer, base64. If it is impossible to know which of the two it is,
// messageOf returns an error.
func messageOf(text, contentType string) ([]byte, error) {
	if strings.ContainsRune(text, '\ufffd') {
		return nil, errors.New("its Message has lost bytes that are not text")
	}
	decoded, err := base64.StdEncoding.DecodeString(text)
	isJSON := strings.Contains(strings.ToLower(contentType), "json")
	switch {
	case err != nil || text == "":
		return []byte(text), nil
	case isJSON && json.Valid([]byte(text)):
		return []byte(text), nil
	case isJSON && json.Valid(decoded), strings.Contains(
		contentType, "proto",
	), contentType == "application/octet-stream":
		return decoded, nil
	}
	return nil, errors.New("its Message may be text or base64")
}

// maxHeadersJSON is the maximum size in bytes of the headers in an EasyNetQ error. It is far above
// the 131,000 bytes of headers that the broker accepts.
const maxHeadersJSON = 1 << 20

// headersOfJSON converts the headers of a message from JSON. The size of the text is limited,
// because the parsed headers may take thirty times as much memory as the text.
func headersOfJSON(text []byte) (Table, error) {
	if len(text) > maxHeadersJSON {
		return nil, fmt.Errorf("its Headers have %s, above %s", Bytes(len(text)), Bytes(maxHeadersJSON))
	}
	if len(text) == 0 {
		return nil, nil
	}
	var headers map[string]any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&headers); err != nil {
		return nil, errors.New("its Headers are not an object")
	}
	table, _ := headerOfJSON(headers).(Table)
	return table, nil
}

// headerOfJSON converts a JSON value to a header value.
func headerOfJSON(v any) any {
	switch v := v.(type) {
	case map[string]any:
		t := make(Table, len(v))
		for name, value := range v {
			if len(name) <= math.MaxUint8 {
				t[name] = headerOfJSON(value)
			}
		}
		return t
	case []any:
		for i := range v {
			v[i] = headerOfJSON(v[i])
		}
		return v
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		n, _ := v.Float64()
		return n
	}
	return v
}

// Inside returns the message that died. If the delivery is an EasyNetQ error, this is the message
// in the body of the error. Otherwise it is the delivery itself. Inside unwraps an EasyNetQ error
// only if the error may contain one of dlo's tokens.
func (a *Arrival) Inside() *Arrival {
	if !EasyNetQError(a.Properties) || !strings.Contains(string(a.Body), HeaderToken) {
		return a
	}
	in := *a
	var err error
	if in.Properties, in.Body, err = UnwrapEasyNetQ(a.Body); err != nil {
		return a
	}
	return &in
}
