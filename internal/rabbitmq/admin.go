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

// Admin changes things through RabbitMQ's HTTP API. Nothing that serves letters does that.
type Admin struct{ m *Management }

// adminWait is for an answer: a vhost with all its queues is deleted in one request.
const adminWait = 60 * time.Second

// NewAdmin returns the API at a URL with user and password. It asks nothing yet.
func NewAdmin(raw string) (*Admin, error) {
	m, err := newManagement(raw)
	if err != nil {
		return nil, err
	}
	m.client.Timeout = adminWait
	return &Admin{m}, nil
}

// Do sends body as JSON, and reads the answer into into, where that is not nil. The error wraps
// ErrNotFound for 404, ErrForbidden for 401 and 403, ErrInvalid for any other answer that is none
// of success, and holds what the API says.
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
	r.SetBasicAuth(a.m.user, a.m.password)
	r.Header.Set("Content-Type", "application/json")
	answer, err := a.m.client.Do(r)
	if err != nil {
		return fmt.Errorf("%w: the management API: %w", deadletter.ErrUnavailable, scrub(err))
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
		return fmt.Errorf("%w: %s %s: the management API answered %s: %s", kind, method, path, answer.Status, deadletter.Visible(deadletter.Cut(string(bytes.TrimSpace(said)), 300)))
	}
	if into == nil || len(said) == 0 {
		return nil
	}
	return json.Unmarshal(said, into)
}
