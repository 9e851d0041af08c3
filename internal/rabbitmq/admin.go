package rabbitmq

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Admin makes changes through RabbitMQ's HTTP API. Code that processes letters never uses it.
type Admin struct{ m *Management }

// adminWait is the timeout of a request. It is long because RabbitMQ deletes a vhost with all its
// queues in one request.
const adminWait = 60 * time.Second

// NewAdmin returns a client for a management API. The URL of this API contains the user and the
// password. It sends no request yet.
func NewAdmin(raw string) (*Admin, error) {
	m, err := newManagement(raw)
	if err != nil {
		return nil, err
	}
	m.client.Timeout = adminWait
	return &Admin{m}, nil
}

// Do sends body as JSON. If "into" is not nil, Do decodes the response into the value to which
// "into" points. The error wraps ErrNotFound for 404, ErrForbidden for 401 and 403, and ErrInvalid
// for any other response that is not a success. The error contains the API's message.
func (a *Admin) Do(ctx context.Context, method, path string, body, into any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	if body == nil {
		text = nil
	}
	r, err := http.NewRequestWithContext(ctx, method, a.m.base+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	r.SetBasicAuth(a.m.user, a.m.password.read())
	r.Header.Set("Content-Type", "application/json")
	answer, err := a.m.client.Do(r)
	if err != nil {
		return fmt.Errorf("%w: the management API: %w", deadletter.ErrUnavailable, withoutURL(err))
	}
	defer answer.Body.Close()
	said, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("%w: the management API: %w", deadletter.ErrUnavailable, err)
	}
	kind := deadletter.ErrInvalid
	switch answer.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		kind = deadletter.ErrForbidden
	case http.StatusNotFound:
		kind = deadletter.ErrNotFound
	}
	if answer.StatusCode >= 300 {
		return fmt.Errorf(
			"%w: %s %s: the management API answered %s: %s", kind, method, path, answer.Status,
			deadletter.Visible(deadletter.Cut(string(bytes.TrimSpace(said)), 300)),
		)
	}
	if into == nil || len(said) == 0 {
		return nil
	}
	return json.Unmarshal(said, into)
}
