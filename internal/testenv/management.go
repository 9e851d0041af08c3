package testenv

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// API calls the management API of the node as guest. path starts with /api/ and has its parts
// escaped already (vhost / is %2F); body, unless nil, is sent as JSON; the answer is decoded into
// the pointer into, unless that is nil. An answer of 300 and more is an error with the status and
// what the broker said.
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
	r.Header["Idempotency-Key"] = []string{} // not sent: tells net/http that it may try again where the server has just closed the idle connection it took
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

// CreateVHost makes an empty vhost in which guest may do everything.
func (n *Node) CreateVHost(name string) error {
	if err := n.API(http.MethodPut, "/api/vhosts/"+url.PathEscape(name), struct{}{}, nil); err != nil {
		return err
	}
	all := map[string]string{"configure": ".*", "write": ".*", "read": ".*"}
	if err := n.API(http.MethodPut, "/api/permissions/"+url.PathEscape(name)+"/guest", all, nil); err != nil {
		return err
	}
	return n.vhostRuns(name)
}

// vhostRuns waits until a node serves a vhost: on a busy machine it answers before it does, and
// refuses connections to the vhost as down.
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

// DeleteVHost removes a vhost with all that is in it and closes the connections to it.
func (n *Node) DeleteVHost(name string) error {
	return n.API(http.MethodDelete, "/api/vhosts/"+url.PathEscape(name), nil, nil)
}
