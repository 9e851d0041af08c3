package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestForward checks that a request reaches the dashboard through `demo forward` with its host
// unchanged, which dlo compares with its own address.
func TestForward(t *testing.T) {
	t.Parallel()
	const host = "127.0.0.1:8672"
	dlo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, r.Host)
	}))
	defer dlo.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- forward(ctx, l, dlo.URL) }()
	request, err := http.NewRequest(http.MethodGet, "http://"+l.Addr().String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Host = host
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if said, err := io.ReadAll(answer.Body); err != nil || string(said) != host {
		t.Errorf("the dashboard was asked for %s, %v", said, err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
