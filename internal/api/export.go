package api

import (
	"encoding/json"
	"time"
	"unicode/utf8"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// ExportedLetter is one line of GET /letters/export and POST /letters/import. It contains
// everything that another dlo needs to import the letter.
type ExportedLetter struct {
	V     int              `json:"v"`
	ID    deadletter.ID    `json:"id"`
	State deadletter.State `json:"state"`
	// Masked reports whether a part of the letter is masked. The body of such a letter is omitted,
	// and its headers are masked.
	Masked bool `json:"masked,omitzero"`
	// Damaged names the contents that changed in the file of the store after dlo stored them.
	Damaged    string                      `json:"damaged,omitzero"`
	Origin     ExportedOrigin              `json:"origin"`
	Inbox      Text                        `json:"inbox"`
	Exchange   Text                        `json:"exchange"` // exchange from which the letter was delivered to dlo
	RoutingKey Text                        `json:"routing_key"`
	ReceivedAt time.Time                   `json:"received_at"`
	DiedAt     time.Time                   `json:"died_at"` // null = unknown
	Reason     Text                        `json:"reason"`
	Attempts   int                         `json:"attempts"`
	Type       string                      `json:"type"`
	Error      string                      `json:"error"`
	Why        string                      `json:"why"`
	Properties deadletter.Properties       `json:"properties"`
	Headers    map[string]deadletter.Typed `json:"headers"`
	// Encoded holds the properties and headers in their AMQP encoding. It is set only if JSON
	// cannot represent them exactly.
	Encoded []byte  `json:"encoded,omitzero"`
	Body    *[]byte `json:"body"` // null = the body is masked or purged
}

// ExportedOrigin is the place where an exported letter died last.
type ExportedOrigin struct {
	Broker     string `json:"broker"`
	VHost      Text   `json:"vhost"`
	Queue      Text   `json:"queue"`
	Exchange   Text   `json:"exchange"`
	RoutingKey Text   `json:"routing_key"`
}

// Text is a string of any bytes. Its JSON is a string, or {"b": base64} if the bytes are not valid
// UTF-8.
type Text string

func (t Text) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(t)) {
		return json.Marshal(string(t))
	}
	return json.Marshal(map[string][]byte{"b": []byte(t)})
}

func (t *Text) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '{' {
		var raw struct{ B []byte }
		err := json.Unmarshal(b, &raw)
		*t = Text(raw.B)
		return err
	}
	return json.Unmarshal(b, (*string)(t))
}
