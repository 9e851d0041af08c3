package web_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/web"
)

// slowLists is a store whose lists do not return until a test releases them.
type slowLists struct {
	web.Store
	asked   atomic.Int32
	crowded atomic.Bool // more than two lists ran at the same time
	let     chan struct{}
}

func (s *slowLists) wait() {
	if s.asked.Add(1) > 2 {
		s.crowded.Store(true)
	}
	<-s.let
	s.asked.Add(-1)
}

func (s *slowLists) Letters(
	ctx context.Context, q query.Query, p deadletter.Page,
) ([]deadletter.Row, string, string, error) {
	s.wait()
	return s.Store.Letters(ctx, q, p)
}

func (s *slowLists) Facets(ctx context.Context, q query.Query, bodies ...string) (deadletter.Facets, error) {
	s.wait()
	return s.Store.Facets(ctx, q, bodies...)
}

// TestListsLeaveReadersToOthers checks that at most two lists run at the same time. Half of the
// store's readers then remain free for requests by id. If a client disconnects while its request
// waits, the request must stop waiting.
func TestListsLeaveReadersToOthers(t *testing.T) {
	t.Parallel()
	s := &slowLists{let: make(chan struct{})}
	h := open(t, func(o *web.Options) { s.Store, o.Store = o.Store, s })
	id := h.receive("sms", 1, "x")[0]
	var lists sync.WaitGroup
	gone, leave := context.WithCancel(t.Context())
	for _, path := range []string{
		"/letters?q=a*", "/api/v1/letters?q=b*", "/api/v1/letters/facets?q=c*", "/letters?q=d*", "/api/v1/letters?q=e*",
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
