package web_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/deadletteroffice/dlo/web"
)

// slowLists stops each list at the first check of its query, until a test releases the lists.
type slowLists struct {
	asked   atomic.Int32
	crowded atomic.Bool // more than two lists ran at the same time
	let     chan struct{}
}

func (s *slowLists) wait(string) bool {
	if s.asked.Add(1) > 2 {
		s.crowded.Store(true)
	}
	<-s.let
	s.asked.Add(-1)
	return false
}

// TestListsLeaveReadersToOthers checks that at most two lists run at the same time. Half of the
// store's readers then remain free for requests by id. If a client disconnects while its request
// waits, the request must stop waiting.
func TestListsLeaveReadersToOthers(t *testing.T) {
	t.Parallel()
	s := &slowLists{let: make(chan struct{})}
	h := open(t, func(o *web.Options) { o.Masked, o.Fields = s.wait, []string{"x"} })
	id := h.receive("sms", 1, "x")[0]
	var lists sync.WaitGroup
	gone, leave := context.WithCancel(t.Context())
	for _, path := range []string{
		"/letters?q=body.x:a", "/api/v1/letters?q=body.x:b", "/api/v1/letters/facets?q=body.x:c",
		"/letters?q=body.x:d", "/api/v1/letters?q=body.x:e",
	} {
		lists.Go(func() { h.get(path).want(t, 200) })
	}
	for s.asked.Load() < 2 {
		h.get("/letters/"+string(id)).want(t, 200)
	}
	h.get("/letters/"+string(id)).want(t, 200)
	leave()
	answer := httptest.NewRecorder()
	h.ServeHTTP(answer, httptest.NewRequestWithContext(gone, "GET", "http://localhost/api/v1/letters", nil))
	if answer.Code == 200 || !errors.Is(gone.Err(), context.Canceled) {
		t.Errorf("a client that went away got %d", answer.Code)
	}
	close(s.let)
	lists.Wait()
	if s.crowded.Load() {
		t.Error("more than two lists were read at a time")
	}
}
