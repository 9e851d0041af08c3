package main

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// control is the content of a file in the demo's folder. `demo fix` and `demo break` read this file
// to find the running demo.
type control struct {
	URL       string // address of the running demo, on the loopback interface
	Token     string // secret for requests; without it, a web page in a browser could call the demo
	Dashboard string
}

func controlFile(folder string) string { return filepath.Join(folder, "control.json") }

func readControl(folder string) (control, error) {
	var c control
	text, err := os.ReadFile(controlFile(folder))
	if err != nil {
		return c, err
	}
	return c, json.Unmarshal(text, &c)
}

// serveControl starts an HTTP server for `demo fix` and `demo break`, and stops it when ctx is
// done. It writes the server's address to the control file. For each request it calls "deploy" and
// responds with the sentence that "deploy" returns.
func serveControl(ctx context.Context, folder, dashboard string, deploy func(fixed bool) string) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	c := control{"http://" + l.Addr().String(), rand.Text(), dashboard}
	text, err := json.Marshal(c)
	if err == nil {
		err = os.WriteFile(controlFile(folder), text, 0o600)
	}
	if err != nil {
		l.Close()
		return err
	}
	mux := http.NewServeMux()
	for path, fixed := range map[string]bool{"POST /fix": true, "POST /break": false} {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), []byte(c.Token)) != 1 {
				http.Error(w, "not for you", http.StatusForbidden)
				return
			}
			fmt.Fprintln(w, deploy(fixed))
		})
	}
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go server.Serve(l)
	context.AfterFunc(ctx, func() { server.Close() })
	return nil
}

// tellDemo sends "fix" or "break" to the running demo and prints the response.
func tellDemo(ctx context.Context, folder, what string, out io.Writer) error {
	c, err := readControl(folder)
	if errors.Is(err, os.ErrNotExist) {
		return errors.New("no demo runs here; start one with: make demo")
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL+"/"+what, nil)
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", c.Token)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return fmt.Errorf("the demo does not answer, so it was killed; start another with: make demo (%w)", err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("the demo refuses: %s", answer.Status)
	}
	_, err = io.Copy(out, answer.Body)
	return err
}
