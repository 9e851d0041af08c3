package notify

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"
)

const (
	requestTimeout = 5 * time.Second // maximum duration of a request, from the DNS look-up to the end of the response
	mostAnswer     = 64 << 10        // maximum number of bytes of a response that are read
	mostHeaders    = 16 << 10
)

// client sends HTTP POST requests to the address of a channel. A guard checks each connection, and
// no connection is reused. The client follows no redirects and uses no proxy from the environment.
type client struct {
	http  *http.Client
	guard *guard
	url   string
	now   func() time.Time // clock, for a Retry-After that contains a date
}

// newClient checks the address of a channel. Its errors do not contain the address, because that is
// a secret for some channels.
func newClient(address string, allowPrivate bool) (*client, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Host == "" || u.Opaque != "":
		return nil, errors.New("the url is missing or not valid")
	case u.Scheme != "https" && u.Scheme != "http":
		return nil, errors.New("the url has to begin with https://")
	case u.Scheme == "http" && !allowPrivate:
		return nil, errors.New(
			"the url has to begin with https://; plain http needs allow_private, and a private address",
		)
	}
	g := newGuard(allowPrivate, u.Scheme == "http")
	return &client{guard: g, url: address, now: time.Now, http: &http.Client{
		Timeout:       requestTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DialContext:            g.dial,
			TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
			TLSHandshakeTimeout:    requestTimeout,
			MaxResponseHeaderBytes: mostHeaders,
			DisableKeepAlives:      true,
			DisableCompression:     true,
		},
	}}, nil
}

// answer is the response of a receiver.
type answer struct {
	status int
	body   []byte // beginning of the body
	later  time.Duration
}

// postJSON sends a value as JSON. It returns the response with any status.
func (c *client) postJSON(ctx context.Context, v any) (answer, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return answer{}, permanentError("the message cannot be written: %v", err)
	}
	return c.post(ctx, nil, body)
}

// post sends a body. It returns the response with any status.
func (c *client) post(ctx context.Context, header http.Header, body []byte) (answer, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return answer{}, errors.New("the url is missing or not valid")
	}
	if header != nil {
		r.Header = header
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "dlo")
	resp, err := c.http.Do(r)
	if err != nil {
		return answer{}, explain(err)
	}
	defer resp.Body.Close()
	// an error is ignored, because the status counts even if the rest of the response does not
	// arrive
	read, _ := io.ReadAll(io.LimitReader(resp.Body, mostAnswer))
	return answer{status: resp.StatusCode, body: read, later: retryAfter(resp.Header.Get("Retry-After"), c.now())}, nil
}

// text returns the status in words, for example "202 Accepted".
func (a answer) text() string { return fmt.Sprintf("%d %s", a.status, http.StatusText(a.status)) }

// err returns the error for a status. It is nil for 2xx, and an ErrPermanent for the statuses that
// "permanent" lists. Any other status is an error after which the message is sent again.
func (a answer) err(permanent ...int) error {
	if a.status >= 200 && a.status < 300 {
		return nil
	}
	text := "the receiver answered " + a.text()
	if a.status >= 300 && a.status < 400 {
		text += ": redirects are not followed"
	}
	if slices.Contains(permanent, a.status) {
		return permanentError("%s", text)
	}
	if a.later > 0 {
		return &LaterError{After: a.later, Err: errors.New(text)}
	}
	return errors.New(text)
}

// retryAfter parses the header Retry-After, which contains seconds or a date. It returns 0 if there
// is none.
func retryAfter(s string, now time.Time) time.Duration {
	if n, err := strconv.Atoi(s); err == nil {
		return min(time.Duration(max(0, min(n, 1<<20)))*time.Second, maxLater)
	}
	if t, err := http.ParseTime(s); err == nil {
		return min(max(0, t.Sub(now)), maxLater)
	}
	return 0
}
