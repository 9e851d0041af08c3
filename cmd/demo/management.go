package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// management is a client for the management API of a broker. It works in one vhost.
type management struct {
	url    *url.URL // of the API, with user and password
	name   string   // of the vhost
	client *http.Client
}

func newManagement(address, vhost string) (*management, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("DLO_MANAGEMENT_URL is not a URL such as http://guest:guest@127.0.0.1:15672")
	}
	return &management{u, vhost, &http.Client{Timeout: 30 * time.Second}}, nil
}

// vhost returns the name of the vhost, escaped for use in a URL path.
func (m *management) vhost() string { return url.PathEscape(m.name) }

func (m *management) get(ctx context.Context, path string, into any) error {
	return m.call(ctx, http.MethodGet, path, nil, into)
}

func (m *management) put(ctx context.Context, path string, body any) error {
	return m.call(ctx, http.MethodPut, path, body, nil)
}

func (m *management) delete(ctx context.Context, path string) error {
	return m.call(ctx, http.MethodDelete, path, nil, nil)
}

// call sends a request with the JSON form of "body", or without a body if "body" is nil. It decodes
// the response into the value that "into" points to, unless "into" is nil. The caller must escape
// each segment of "path".
func (m *management) call(ctx context.Context, method, path string, body, into any) error {
	var sent io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		sent = bytes.NewReader(text)
	}
	address := m.url.Scheme + "://" + m.url.Host + strings.TrimSuffix(m.url.EscapedPath(), "/") + path
	r, err := http.NewRequestWithContext(ctx, method, address, sent)
	if err != nil {
		return err
	}
	password, _ := m.url.User.Password()
	r.SetBasicAuth(m.url.User.Username(), password)
	r.Header.Set("Content-Type", "application/json")
	answer, err := m.client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	if answer.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %s: %s", method, path, answer.Status, bytes.TrimSpace(text))
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(text, into)
}
