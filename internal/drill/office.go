package drill

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Running is a dlo that the drill has started.
type Running interface {
	Addr() string // host:port
	Stop() error  // and wait
}

// look is a snapshot of the reports of one dlo.
type look struct {
	at       time.Time
	status   int // status of /readyz; 0 = no response
	problems []problem
	inboxes  map[string]bool // inbox name -> whether dlo reads the inbox
	page     page
}

// problem is one problem in /readyz.
type problem struct {
	Kind, Severity, Title, Text, Cure, Broker, Inbox, Queue string
}

// office is a dlo that the drill has started. Its store and configuration are in the drill's
// folder. The drill polls it continuously.
type office struct {
	name    string
	running Running
	url     string
	cancel  context.CancelFunc
	done    sync.WaitGroup

	mu   sync.Mutex
	seen look
}

// lookEvery is the interval between two looks at a dlo.
const lookEvery = 500 * time.Millisecond

// start starts a dlo with the given configuration.
func (g *ground) start(ctx context.Context, name, config string) (*office, error) {
	path := filepath.Join(g.folder, name+".yaml")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		return nil, err
	}
	running, err := g.o.Start(ctx, path, g.amqp(), g.management())
	if err != nil {
		return nil, err
	}
	watching, cancel := context.WithCancel(ctx)
	o := &office{name: name, running: running, url: "http://" + running.Addr(), cancel: cancel}
	o.done.Go(func() { o.watch(watching) })
	g.mu.Lock()
	defer g.mu.Unlock()
	g.offices[name] = o
	return o, nil
}

// office returns the dlo with the given name, or nil if there is none.
func (g *ground) office(name string) *office {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.offices[name]
}

// stop stops a dlo if it exists.
func (g *ground) stop(name string) error {
	g.mu.Lock()
	o := g.offices[name]
	delete(g.offices, name)
	g.mu.Unlock()
	if o == nil {
		return nil
	}
	o.cancel()
	o.done.Wait()
	return o.running.Stop()
}

func (o *office) watch(ctx context.Context) {
	for {
		l := o.look(ctx)
		if ctx.Err() != nil {
			return
		}
		o.mu.Lock()
		o.seen = l
		o.mu.Unlock()
		if pause(ctx, lookEvery) != nil {
			return
		}
	}
}

// now returns the newest look.
func (o *office) now() look {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.seen
}

func (o *office) look(ctx context.Context) look {
	l := look{at: time.Now(), inboxes: map[string]bool{}}
	var ready struct {
		Problems []problem
		Brokers  []struct {
			Inboxes []struct {
				Queue    string
				Draining bool
			}
		}
	}
	var text []byte
	if l.status, text = o.get(ctx, "/readyz"); json.Unmarshal(text, &ready) != nil {
		return look{at: l.at}
	}
	l.problems = ready.Problems
	for _, b := range ready.Brokers {
		for _, i := range b.Inboxes {
			l.inboxes[i.Queue] = i.Draining
		}
	}
	if _, text = o.get(ctx, "/"); len(text) > 0 {
		l.page = readPage(string(text))
	}
	return l
}

// get requests a page. It returns status 0 if there was no response.
func (o *office) get(ctx context.Context, path string) (int, []byte) {
	status, text, _ := o.ask(ctx, http.MethodGet, path, "")
	return status, text
}

// askWait is the time limit for a response.
const askWait = 10 * time.Second

func (o *office) ask(ctx context.Context, method, path, body string) (int, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, askWait)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, o.url+path, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return answer.StatusCode, text, err
}

// post sends a POST request to dlo's API.
func (o *office) post(ctx context.Context, path string, body any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	status, answer, err := o.ask(ctx, http.MethodPost, path, string(text))
	if err == nil && status >= 300 {
		err = fmt.Errorf("POST %s: %d: %.300s", path, status, answer)
	}
	return err
}

// count returns the number of letters that match a query, or -1 if there was no response.
func (o *office) count(ctx context.Context, query string) int {
	var answer struct{ Count int }
	status, text := o.get(ctx, "/api/v1/letters/count?exact=1&q="+url.QueryEscape(query))
	if status != http.StatusOK || json.Unmarshal(text, &answer) != nil {
		return -1
	}
	return answer.Count
}

// letters returns the ids of the newest 50 letters that match a query.
func (o *office) letters(ctx context.Context, query string) (ids []string) {
	var answer struct{ Letters []struct{ ID string } }
	if _, text := o.get(ctx, "/api/v1/letters?limit=50&q="+url.QueryEscape(query)); json.Unmarshal(text, &answer) != nil {
		return nil
	}
	for _, l := range answer.Letters {
		ids = append(ids, l.ID)
	}
	return ids
}

// pause waits for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// errSlow is returned if something that the drill waits for did not happen in time.
var errSlow = errors.New("it took too long")

// until waits until done returns true. It returns an error after limit.
func until(ctx context.Context, what string, limit time.Duration, done func() bool) error {
	for end := time.Now().Add(limit); !done(); {
		if time.Now().After(end) {
			return fmt.Errorf("%s: %w: %s", what, errSlow, limit)
		}
		if err := pause(ctx, lookEvery/2); err != nil {
			return err
		}
	}
	return nil
}
