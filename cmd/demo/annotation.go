package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	amqp "github.com/rabbitmq/amqp091-go"
)

// annotation returns the JSON text of an annotation. It says why the message m, which came from the
// given queue, was rejected.
func annotation(queue string, m amqp.Delivery, why string) ([]byte, error) {
	body := sha256.Sum256(m.Body)
	token, _ := m.Headers[deadletter.HeaderToken].(string)
	return json.Marshal(struct {
		Queue     string `json:"queue"`
		MessageID string `json:"message_id,omitempty"`
		Body      string `json:"body_sha256"`
		Token     string `json:"dlo_token,omitempty"`
		Message   string `json:"message"`
		Service   string `json:"service"`
		Version   string `json:"version"`
	}{queue, m.MessageId, hex.EncodeToString(body[:]), token, why, queue + " worker", "1.0"})
}
