package web

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// TestASlowListEnds checks that dlo stops a list of letters that takes too long. The error must say
// what to do, and the list must make room for other lists.
func TestASlowListEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := New(Options{})
		r := httptest.NewRequest("GET", "/letters", nil)
		slow := inTurn(w, func(r *http.Request) (int, error) {
			<-r.Context().Done()
			return 0, r.Context().Err()
		})
		for range maxLists + 1 {
			if _, err := slow(r); !errors.Is(err, deadletter.ErrInvalid) ||
				!strings.Contains(err.Error(), "stopped after 20 s; narrow it") {
				t.Error(err)
			}
		}
	})
}

// TestNobodyTakesAllLists checks that a person who requests many slow lists leaves room for others.
// dlo must forget the person after their last request has ended.
func TestNobodyTakesAllLists(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := New(Options{Actor: func(*http.Request) (deadletter.Principal, error) { return deadletter.Local, nil }})
		as := func(name string, do func(ctx context.Context) error) {
			if err := w.list(t.Context(), deadletter.Principal{Name: name}, do); err != nil {
				t.Error(err)
			}
		}
		for range 10 {
			go as("ana", func(context.Context) error { time.Sleep(5 * time.Second); return nil })
		}
		synctest.Wait()
		before := time.Now()
		as("bob", func(context.Context) error { return nil })
		if waited := time.Since(before); waited > 0 {
			t.Errorf("bob waited %s", waited)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(w.lists.own) > 0 || len(w.lists.places) > 0 {
			t.Errorf("%v have places, %d are taken", w.lists.own, len(w.lists.places))
		}
	})
}
