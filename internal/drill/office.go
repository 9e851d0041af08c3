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
	Addr() string // returns the address as host:port
	Stop() error  // stops dlo and waits for its end
}

// look contains what a dlo reported at one time.
type look struct {
	at       time.Time
	status   int // status of /readyz; 0 = no response
	problems []problem
	inboxes  map[string]bool // name of an inbox -> whether dlo drains it
	page     page
}

// problem is one problem that the response of /readyz lists.
type problem struct {
	Kind, Severity, Title, Text, Cure, Broker, Inbox, Queue string
}

// office is a dlo that the drill has started. The store and the configuration of this dlo are in
// the folder of the drill. While this dlo runs, the drill reads its pages again and again.
type office struct {
	name    string
	running Running
	url     string
	cancel  context.CancelFunc
	done    sync.WaitGroup

	mu   sync.Mutex
	seen look
}

// lookEvery is the time after which the drill reads the pages of a dlo again.
const lookEvery = 500 * time.Millisecond

// start starts a dlo with the given configuration. From then on, the drill reads the pages of this
// dlo again and again.
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

// office returns the dlo with the given name. If there is none, it returns nil.
func (g *ground) office(name string) *office {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.offices[name]
}

// stop stops the dlo with the given name, if there is one.
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

// lastLook returns what the drill saw when it last read the pages of the dlo.
func (o *office) lastLook() look {
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

// get requests a path from dlo. If dlo does not respond, it returns the status 0.
func (o *office) get(ctx context.Context, path string) (int, []byte) {
	status, text, _ := o.ask(ctx, http.MethodGet, path, "")
	return status, text
}

// askWait is the time limit for a response of a dlo that the drill has started.
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

// post sends a POST request to the API of dlo.
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

// count returns how many letters match a query. If dlo does not respond, it returns -1.
func (o *office) count(ctx context.Context, query string) int {
	var answer struct{ Count int }
	status, text := o.get(ctx, "/api/v1/letters/count?exact=1&q="+url.QueryEscape(query))
	if status != http.StatusOK || json.Unmarshal(text, &answer) != nil {
		return -1
	}
	return answer.Count
}

// letters returns the ids of the newest letters that match a query, at most 50.
func (o *office) letters(ctx context.Context, query string) (ids []string) {
	var answer struct{ Letters []struct{ ID string } }
	if _, text := o.get(
		ctx, "/api/v1/letters?limit=50&q="+url.QueryEscape(query),
	); json.Unmarshal(text, &answer) != nil {
		return nil
	}
	for _, l := range answer.Letters {
		ids = append(ids, l.ID)
	}
	return ids
}

// pause waits for the duration d, or until ctx is done.
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

// errSlow means that something did not happen within the time limit.
var errSlow = errors.New("it took too long")

// waitUntil waits until the function "done" returns true. After the limit, it returns an error.
func waitUntil(ctx context.Context, what string, limit time.Duration, done func() bool) error {
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
