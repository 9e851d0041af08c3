package drill

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// heard is a notice that the pager received.
type heard struct {
	at     time.Time
	office string // name of the dlo that sent the notice
	typ    string // type of the notice, for example notice.problem or notice.opened
	title  string
	queue  string // queue of the group in the notice
}

// pager is an HTTP server on loopback that receives all notices.
type pager struct {
	server http.Server
	url    string

	mu      sync.Mutex
	heard   []heard
	refuses bool // true while it rejects notices to /broken
}

func newPager() (*pager, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &pager{url: "http://" + l.Addr().String()}
	p.server.Handler = http.HandlerFunc(p.take)
	go p.server.Serve(l)
	return p, nil
}

func (p *pager) take(rw http.ResponseWriter, r *http.Request) {
	var notice struct {
		Type string
		Data struct {
			Title string
			Facts map[string]string
		}
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err == nil {
		err = json.Unmarshal(body, &notice)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil || p.refuses && r.URL.Path == "/broken" {
		rw.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	p.heard = append(p.heard, heard{
		at:     time.Now(),
		office: strings.TrimPrefix(r.URL.Path, "/"),
		typ:    notice.Type,
		title:  notice.Data.Title,
		queue:  notice.Data.Facts["queue"],
	})
	rw.WriteHeader(http.StatusNoContent)
}

// rejectBroken sets whether the pager rejects all notices of the channel "broken". If "yes" is
// true, the pager rejects them. If it is false, the pager accepts them.
func (p *pager) rejectBroken(yes bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuses = yes
}

// firstNotice returns the first notice that a dlo has sent since the given time. It skips notices
// for which the function "fits" returns false. It compares the name of the sender, because several
// dlo processes see the same queues.
func (p *pager) firstNotice(office string, since time.Time, fits func(h heard) bool) (heard, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, h := range p.heard {
		if h.office == office && !h.at.Before(since) && fits(h) {
			return h, true
		}
	}
	return heard{}, false
}

// isAbout reports whether a notice reports the problem with the given title.
func (h heard) isAbout(title string) bool {
	return h.typ == "notice.problem" && strings.Contains(h.title, title)
}
