package web

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

const (
	eventTick = 500 * time.Millisecond // how often a stream looks for changes
	keepAlive = 15 * time.Second       // a comment this often, so that proxies keep the stream open
)

// eventsPath is where events are, under / and under the API. Only our own pages and programs get
// them.
const eventsPath = "/events"

// events is GET /events?since=: server-sent events that say what kind of thing changed, never what:
// "letters" and "operation" after any commit, "status" when a connection or a trial changed. A page
// fetches itself again and takes the parts that it is told about. The id of an event is how far the
// store has come; since, or Last-Event-ID after a reconnect, is how far the page has seen.
func (w *Web) events(rw http.ResponseWriter, r *http.Request) {
	select {
	case w.streams <- struct{}{}:
		defer func() { <-w.streams }()
	default:
		w.fail(rw, r, deadletter.ErrUnavailable)
		return
	}
	since := r.Header.Get("Last-Event-ID")
	if since == "" {
		since = r.URL.Query().Get("since")
	}
	seen, err := strconv.ParseInt(since, 10, 64)
	if err != nil {
		seen = w.Store.Changes()
	}
	rw.Header().Set("Content-Type", "text/event-stream")
	stream := http.NewResponseController(rw)
	stream.SetReadDeadline(time.Time{}) // the request is read; its deadline would end the stream
	send := func(format string, args ...any) bool {
		stream.SetWriteDeadline(time.Now().Add(keepAlive)) // not supported by every writer; then the server's own deadline holds
		_, err := fmt.Fprintf(rw, format, args...)
		return err == nil && stream.Flush() == nil
	}
	if r.Method == http.MethodHead || !send("retry: 3000\n\n") {
		return
	}
	status, trial := w.Brokers(), w.newestTrial()
	tick := time.NewTicker(eventTick)
	defer tick.Stop()
	quiet := time.Now()
	for {
		if now := w.Store.Changes(); now != seen {
			seen, quiet = now, time.Now()
			if !send("id: %d\nevent: letters\ndata: %d\n\nid: %d\nevent: operation\ndata: %d\n\n", seen, seen, seen, seen) {
				return
			}
		}
		if now, newest := w.Brokers(), w.newestTrial(); !slices.EqualFunc(now, status, sameStatus) || newest != trial {
			status, trial, quiet = now, newest, time.Now()
			if !send("event: status\ndata: 1\n\n") {
				return
			}
		}
		if time.Since(quiet) > keepAlive/2 {
			quiet = time.Now()
			if !send(": still here\n\n") {
				return
			}
		}
		select {
		case <-tick.C:
		case <-w.drained:
			return
		case <-r.Context().Done():
			return
		}
	}
}

// sameStatus compares what a page shows of a connection. A new time of the next try is no change:
// the banner would never rest.
func sameStatus(a, b deadletter.BrokerStatus) bool {
	return a.Name == b.Name && a.VHost == b.VHost && a.Connected == b.Connected && a.Blocked == b.Blocked && a.Reason == b.Reason && a.Note == b.Note && slices.Equal(a.Inboxes, b.Inboxes) &&
		slices.EqualFunc(a.Problems(), b.Problems(), func(p, q deadletter.Problem) bool { return p.Key() == q.Key() && p.Text == q.Text })
}
