package deadletter

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// Annotation is a consumer's report on a message that it rejected. It identifies the message and
// says why the message was rejected. Everything in it is untrusted.
type Annotation struct {
	ID            int64 // id in the store; 0 = not stored yet
	Broker, VHost string

	// The following fields identify the death, the most reliable field first. At least one of Token,
	// MessageID and Body is set.
	Token                       string // value of the header dlo-token in the message
	MessageID                   string
	Body                        []byte // SHA-256 of the body; nil = not reported
	Queue, Exchange, RoutingKey string // queue, exchange and routing key of the delivery that was rejected

	ErrorType, Message, Stack string
	Service, Version          string // name and version of the consumer
	At                        time.Time

	By string // name of the reporter in histories, without masked values
}

// AnnotationWindow is the time for which an annotation waits for its letter, or a letter for its
// annotation. Consumers report when they reject a message, so it normally takes seconds until both
// have arrived. It can take minutes if the broker or dlo is restarted in between.
const AnnotationWindow = 15 * time.Minute

// These are the limits on an annotation, in bytes.
const (
	MaxAnnotation  = 64 << 10 // size of the whole annotation; a larger one is rejected
	maxErrorType   = 500
	maxMessage     = 4 << 10
	maxStack       = 16 << 10
	maxServiceName = 200 // maximum length of Service, and of Version
)

const wholeAnnotation = "annotation" // name that stands for the whole annotation in a FieldError

// ByAnnotation is the value of Failure.By for a failure that comes from an annotation.
const ByAnnotation = "annotation"

// ReadAnnotation parses an annotation from a JSON object. It ignores unknown members, treats empty
// members as missing, and cuts texts that are too long. Errors are FieldErrors. Each error names a
// member but never quotes the member's value. The name "annotation" stands for the whole object.
func ReadAnnotation(b []byte) (Annotation, error) {
	if len(b) > MaxAnnotation {
		return Annotation{}, FieldErrors{
			{wholeAnnotation, fmt.Sprintf("an annotation has at most %d bytes", MaxAnnotation)},
		}
	}
	d := json.NewDecoder(bytes.NewReader(b))
	var members map[string]json.RawMessage
	if err := d.Decode(&members); err != nil || members == nil {
		return Annotation{}, FieldErrors{{wholeAnnotation, "give a JSON object"}}
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return Annotation{}, FieldErrors{{wholeAnnotation, "there is something after the JSON object"}}
	}
	var a Annotation
	var body, at string
	var refused FieldErrors
	for _, m := range []struct {
		name string
		into *string
		most int // maximum length in bytes
		cut  bool
	}{
		{"broker", &a.Broker, maxKey, false},
		{"vhost", &a.VHost, maxKey, false},
		{"dlo_token", &a.Token, maxKey, false},
		{"message_id", &a.MessageID, maxKey, false},
		{"queue", &a.Queue, MaxQueueName, false},
		{"exchange", &a.Exchange, maxKey, false},
		{"routing_key", &a.RoutingKey, maxKey, false},
		{"body_sha256", &body, 2 * sha256.Size, false},
		{"error_type", &a.ErrorType, maxErrorType, true},
		{"message", &a.Message, maxMessage, true},
		{"stack", &a.Stack, maxStack, true},
		{"service", &a.Service, maxServiceName, true},
		{"version", &a.Version, maxServiceName, true},
		{"at", &at, maxKey, false},
	} {
		var text *string
		if raw, ok := members[m.name]; ok && json.Unmarshal(raw, &text) != nil {
			refused = append(refused, FieldError{m.name, "a text is wanted"})
		} else if text == nil {
			continue
		} else if !m.cut && len(*text) > m.most {
			refused = append(refused, FieldError{m.name, fmt.Sprintf("it has at most %d bytes", m.most)})
		} else {
			*m.into = Cut(*text, m.most)
		}
	}
	if body != "" {
		var err error
		if a.Body, err = hex.DecodeString(body); err != nil || len(a.Body) != sha256.Size {
			a.Body, refused = nil, append(refused, FieldError{
				"body_sha256", "give the SHA-256 of the body, 64 hexadecimal digits",
			})
		}
	}
	if at != "" {
		var err error
		if a.At, err = time.Parse(time.RFC3339, at); err != nil || a.At.Year() < 1970 {
			refused = append(refused, FieldError{"at", "give a time in RFC 3339, for example 2026-11-20T14:00:00Z"})
		}
		a.At = a.At.UTC()
	}
	if len(refused) > 0 {
		return Annotation{}, refused
	}
	if a.Token == "" && a.MessageID == "" && a.Body == nil {
		refused = append(refused, FieldError{
			"message_id", "nothing says which message it is about: give message_id, dlo_token or body_sha256",
		})
	}
	if strings.TrimSpace(a.ErrorType+a.Message+a.Stack) == "" {
		refused = append(refused, FieldError{
			"message", "nothing says what went wrong: give message, error_type or stack",
		})
	}
	if len(refused) > 0 {
		return Annotation{}, refused
	}
	return a, nil
}

// Failure converts an annotation to a Failure.
func (a *Annotation) Failure() Failure {
	return Failure{
		By:         ByAnnotation,
		Type:       a.ErrorType,
		Message:    a.Message,
		Stack:      a.Stack,
		Queue:      a.Queue,
		Exchange:   a.Exchange,
		RoutingKey: a.RoutingKey,
		Service:    a.Service,
		Version:    a.Version,
		FailedAt:   a.At,
	}
}

// Many reports whether the annotation explains every letter that it fits. An annotation without a
// token and without the name of a queue explains all of them. Any other annotation explains only
// one death.
func (a *Annotation) Many() bool { return a.Token == "" && a.Queue == "" }

// Fits reports whether the annotation describes a death. The parameter k contains the keys of the
// death, and o is its origin. The caller must compare the broker and the vhost.
//
// If the annotation has a token, only the token must be equal. Otherwise, the message id, the body
// and the place must match, as far as the annotation contains them. If dlo sent the message, two
// further values in the annotation count as a match: an exchange of dlo, and the name of the
// message's queue as the routing key.
func (a *Annotation) Fits(k DeathKeys, o Origin) bool {
	if a.Token != "" {
		return a.Token == k.Token
	}
	return (a.MessageID == "" || a.MessageID == k.MessageID) && (a.Body == nil || bytes.Equal(a.Body, k.Body)) &&
		a.From(o)
}

// From reports whether the annotation can describe a delivery to the given queue. Empty fields of
// the annotation match every delivery. An annotation with a token matches every delivery.
func (a *Annotation) From(o Origin) bool {
	return a.Token != "" || (a.Queue == "" || a.Queue == o.Queue) &&
		(a.Exchange == "" || a.Exchange == o.Exchange || OwnQueue(a.Exchange)) &&
		(a.RoutingKey == "" || a.RoutingKey == o.RoutingKey || a.RoutingKey == o.Queue)
}

// Reporter returns the service and version of the consumer that rejected the message. An unknown
// part is left out.
func (f *Failure) Reporter() string { return strings.TrimSpace(f.Service + " " + f.Version) }

// DeathKeys contains the values by which an annotation can identify a death.
type DeathKeys struct {
	Token, MessageID string
	Body             []byte // SHA-256 of the body; nil = no annotation can explain this death
}

// DeathKeys returns the values by which an annotation can identify the latest death of the letter.
func (l *Letter) DeathKeys() DeathKeys {
	body := l.Body
	if l.Attempts > 0 {
		_, body = l.Current()
	}
	sum := sha256.Sum256(body)
	token, _ := l.Arrived.Headers[HeaderToken].(string)
	return DeathKeys{Token: token, MessageID: l.Arrived.MessageID, Body: sum[:]}
}

// Annotated says what the store did with a list of annotations: how many were new, how many were
// already stored, and how many letters they explain.
type Annotated struct {
	New    int `json:"new"`
	Again  int `json:"again"`  // number of annotations that were already stored within the window
	Joined int `json:"joined"` // number of stored letters that the annotations now explain
}
