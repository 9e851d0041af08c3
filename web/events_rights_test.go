package web_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/web"
)

// TestAStreamEndsWithTheRights checks that an event stream ends when its reader loses the right to
// it. It must also end when the queues that its reader may see have changed.
func TestAStreamEndsWithTheRights(t *testing.T) {
	t.Parallel()
	for _, then := range []deadletter.Principal{
		{},
		{
			Name:   "ana",
			Grants: []deadletter.Grant{{Role: deadletter.RoleReader, Places: deadletter.Places{Queues: []string{"b"}}}},
		},
	} {
		var who atomic.Pointer[deadletter.Principal]
		who.Store(&deadletter.Principal{
			Name:   "ana",
			Grants: []deadletter.Grant{{Role: deadletter.RoleReader, Places: deadletter.Places{Queues: []string{"a"}}}},
		})
		h := open(t, func(o *web.Options) {
			o.Hosts = nil
			o.Actor = func(*http.Request) (deadletter.Principal, error) {
				if p := who.Load(); p.Name != "" {
					return *p, nil
				}
				return deadletter.Principal{}, fmt.Errorf("%w: say who you are", deadletter.ErrSignIn)
			}
		})
		server := httptest.NewServer(h)
		defer server.Close()
		stream, err := http.Get(server.URL + "/events")
		if err != nil || stream.StatusCode != http.StatusOK {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() {
			_, err := io.Copy(io.Discard, stream.Body)
			ended <- err
		}()
		who.Store(&then)
		h.late.Store(int64(11 * time.Second))
		select {
		case err := <-ended:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(20 * time.Second):
			t.Errorf("the stream goes on for %+v", then)
		}
		stream.Body.Close()
		h.Drain()
	}
}
