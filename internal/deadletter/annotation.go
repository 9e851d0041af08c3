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

// Annotation is what a consumer says of a message beside its reject: which message, and why. All of
// it is untrusted.
type Annotation struct {
	ID            int64 // in the store; 0 = not there yet
	Broker, VHost string

	// Which death it is of, the surest first. Of Token, MessageID and Body at least one is said.
	Token                       string // the header dlo-token that the message carried
	MessageID                   string
	Body                        []byte // SHA-256 of the body; nil = not said
	Queue, Exchange, RoutingKey string // of the delivery

	ErrorType, Message, Stack string
	Service, Version          string // of the consumer
	At                        time.Time

	By string // who says so, as a history may have it: without what is masked
}

// AnnotationWindow is how long an annotation and its letter wait for each other, whichever comes
// first. Consumers report as they reject, so that seconds are enough; a broker or a dlo that is
// restarted in between takes minutes.
const AnnotationWindow = 15 * time.Minute

// What is taken and kept of an annotation, bytes.
const (
	MaxAnnotation  = 64 << 10 // in all; more is refused
	maxErrorType   = 500
	maxMessage     = 4 << 10
	maxStack       = 16 << 10
	maxServiceName = 200 // and version
)

const wholeAnnotation = "annotation" // stands for a member, where the object itself is wrong

// ByAnnotation is who says of a failure that comes from an annotation.
const ByAnnotation = "annotation"

// ReadAnnotation reads one JSON object. Members that it does not know are ignored, empty ones are
// not said, and texts that are longer than what is kept are cut. Errors are FieldErrors, which name
// a member and never quote its value; "annotation" is the object itself.
func ReadAnnotation(b []byte) (Annotation, error) {
	if len(b) > MaxAnnotation {
		return Annotation{}, FieldErrors{{wholeAnnotation, fmt.Sprintf("an annotation has at most %d bytes", MaxAnnotation)}}
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
		most int // bytes
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
			a.Body, refused = nil, append(refused, FieldError{"body_sha256", "give the SHA-256 of the body, 64 hexadecimal digits"})
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
		refused = append(refused, FieldError{"message_id", "nothing says which message it is about: give message_id, dlo_token or body_sha256"})
	}
	if strings.TrimSpace(a.ErrorType+a.Message+a.Stack) == "" {
		refused = append(refused, FieldError{"message", "nothing says what went wrong: give message, error_type or stack"})
	}
	if len(refused) > 0 {
		return Annotation{}, refused
	}
	return a, nil
}

// Failure is what it says went wrong.
func (a *Annotation) Failure() Failure {
	return Failure{
		By: ByAnnotation, Type: a.ErrorType, Message: a.Message, Stack: a.Stack, Queue: a.Queue, Exchange: a.Exchange, RoutingKey: a.RoutingKey, Service: a.Service, Version: a.Version, FailedAt: a.At,
	}
}

// Many says that an annotation is good for every letter that it fits: it names a message, and none
// of the queues that may have had it. Others are of one death each.
func (a *Annotation) Many() bool { return a.Token == "" && a.Queue == "" }

// Fits says whether it is of the death that DeathKeys and origin are of, besides its broker and
// vhost. A message that dlo had sent is delivered by its queue's name, or through an exchange of
// dlo.
func (a *Annotation) Fits(k DeathKeys, o Origin) bool {
	if a.Token != "" {
		return a.Token == k.Token
	}
	return (a.MessageID == "" || a.MessageID == k.MessageID) && (a.Body == nil || bytes.Equal(a.Body, k.Body)) && a.From(o)
}

// From says whether it may be of a delivery to the queue of o, as far as it says so.
func (a *Annotation) From(o Origin) bool {
	return a.Token != "" || (a.Queue == "" || a.Queue == o.Queue) && (a.Exchange == "" || a.Exchange == o.Exchange || OwnQueue(a.Exchange)) &&
		(a.RoutingKey == "" || a.RoutingKey == o.RoutingKey || a.RoutingKey == o.Queue)
}

// Reporter is who gave the message up: service and version, as far as they are said.
func (f *Failure) Reporter() string { return strings.TrimSpace(f.Service + " " + f.Version) }

// DeathKeys are what an annotation can name a death by.
type DeathKeys struct {
	Token, MessageID string
	Body             []byte // SHA-256; nil = there are no keys: nobody waits for a word on this death
}

// DeathKeys returns the keys of the latest death of a letter, whole.
func (l *Letter) DeathKeys() DeathKeys {
	body := l.Body
	if l.Attempts > 0 {
		_, body = l.Current()
	}
	sum := sha256.Sum256(body)
	token, _ := l.Arrived.Headers[HeaderToken].(string)
	return DeathKeys{Token: token, MessageID: l.Arrived.MessageID, Body: sum[:]}
}

// Annotated is what became of annotations.
type Annotated struct {
	New    int
	Again  int // the same was said within the window
	Joined int // letters that were there before
}
