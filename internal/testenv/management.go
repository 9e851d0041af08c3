package testenv

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// API sends a request to the node's management API as the user "guest". The path starts with /api/,
// and its segments must already be escaped (vhost / is %2F). If "body" is not nil, it is sent as
// JSON. If "into" is not nil, it points to the value into which the response is decoded. For a
// status of 300 or more, API returns an error with the status and the broker's message.
func (n *Node) API(method, path string, body, into any) error {
	var sent io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return fmt.Errorf("%s %s: %w", method, path, err)
		}
		sent = bytes.NewReader(text)
	}
	r, err := http.NewRequest(method, n.ManagementURL()+path, sent)
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	r.SetBasicAuth("guest", "guest")
	r.Header.Set("Content-Type", "application/json")
	// this header is not sent; it lets net/http retry if the server has just closed the idle
	// connection
	r.Header["Idempotency-Key"] = []string{}
	answer, err := n.client.Do(r)
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
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	return nil
}

// CreateVHost creates an empty vhost and grants the user "guest" all rights in it.
func (n *Node) CreateVHost(name string) error {
	put := func() error { return n.API(http.MethodPut, "/api/vhosts/"+url.PathEscape(name), struct{}{}, nil) }
	err := put()
	// on a busy machine, the creation of a vhost can take longer than 60 s, and the API then closes
	// the connection
	if errors.Is(err, io.EOF) {
		err = put()
	}
	if err != nil {
		return err
	}
	all := map[string]string{"configure": ".*", "write": ".*", "read": ".*"}
	if err := n.API(http.MethodPut, "/api/permissions/"+url.PathEscape(name)+"/guest", all, nil); err != nil {
		return err
	}
	return n.vhostRuns(name)
}

// vhostRuns waits until every node serves a vhost. On a busy machine, the API of a node already
// responds while the node still refuses connections, because the vhost is down.
func (n *Node) vhostRuns(name string) error {
	for deadline := time.Now().Add(answersWithin); ; time.Sleep(100 * time.Millisecond) {
		var vhost struct {
			State map[string]string `json:"cluster_state"`
		}
		if err := n.API(http.MethodGet, "/api/vhosts/"+url.PathEscape(name), nil, &vhost); err != nil {
			return err
		}
		runs := len(vhost.State) > 0
		for _, state := range vhost.State {
			runs = runs && state == "running"
		}
		if runs {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("vhost %s does not run: %v", name, vhost.State)
		}
	}
}

// DeleteVHost deletes a vhost with its content and closes the connections to it.
func (n *Node) DeleteVHost(name string) error {
	return n.API(http.MethodDelete, "/api/vhosts/"+url.PathEscape(name), nil, nil)
}
