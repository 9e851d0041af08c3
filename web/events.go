package web

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/topology"
)

const (
	eventTick = 500 * time.Millisecond // how often a stream checks whether something has changed
	// how often it does so if the reader may see only some queues, because those changes have to be
	// computed
	scopeTick = 2 * time.Second
	askAgain  = 10 * time.Second // how often a stream checks the rights of its reader and the latest findings
	keepAlive = 15 * time.Second // to keep the stream open, a comment is sent after half of this time
)

// eventsPath is the path of the event stream for pages. It is also its path under the API. Only
// programs and dlo's own pages may read the stream. Pages of other sites may not.
const eventsPath = "/events"

type eventsIn struct {
	Since string `query:"since"`
}

// watchEvents tells what changes, as server-sent events. letters and operation are sent after any
// commit, status when a connection, a trial or a finding changed. Events name the kind of thing,
// not the thing: ask again for what you show. The id of an event is how far the store has come, and
// since is how far you have seen. After a reconnect, the header Last-Event-ID contains that
// position.
func (w *Web) watchEvents(rw http.ResponseWriter, r *http.Request) {
	name := principal(r.Context()).Name
	if w.open { // all readers have the same name
		name = ""
	}
	if !w.streams.enter(name) {
		w.fail(rw, r, deadletter.ErrUnavailable)
		return
	}
	defer w.streams.leave(name)
	since := r.Header.Get("Last-Event-ID")
	if since == "" {
		since = r.URL.Query().Get("since")
	}
	seen, err := strconv.ParseInt(since, 10, 64)
	if err != nil {
		if seen, err = w.Store.Position(r.Context()); err != nil {
			w.fail(rw, r, err)
			return
		}
	}
	rw.Header().Set("Content-Type", "text/event-stream")
	stream := http.NewResponseController(rw)
	stream.SetReadDeadline(time.Time{}) // the request was read, and a read deadline would end the stream
	send := func(format string, args ...any) bool {
		// if the writer does not support deadlines, the server's own deadline applies
		stream.SetWriteDeadline(time.Now().Add(keepAlive))
		_, err := fmt.Fprintf(rw, format, args...)
		return err == nil && stream.Flush() == nil
	}
	// The stream contains only changes that happen from now on, and only those within the scope of
	// the request. The reports about dead-letter paths that dlo has now are kept, and later reports
	// are compared with them.
	scope, asked, looks := deadletter.ScopeOf(r.Context()), w.Now(), w.reports(r.Context())
	if r.Method == http.MethodHead || !send("retry: 3000\n\n") {
		return
	}
	every, trialNow := eventTick, w.newestTrial
	if !scope.Everywhere() { // a trial uses a queue of its own, which the reader may not see
		every, trialNow = scopeTick, func() deadletter.Trial { return deadletter.Trial{} }
	}
	status, trial := w.brokers(r.Context()), trialNow()
	tick := time.NewTicker(every)
	defer tick.Stop()
	quiet := time.Now()
	for {
		found := false // dlo has found a difference in the dead-letter paths
		if now := w.Now(); now.Sub(asked) >= askAgain {
			asked = now
			if p, err := w.Actor(r); err != nil || w.viewedAs(r, p).Sees().Key() != scope.Key() ||
				!p.May(deadletter.VerbView) {
				return // the reader connects again, and is then refused or gets the new scope
			}
			latest := w.reports(r.Context())
			found, looks = !slices.EqualFunc(latest, looks, sameLook), latest
		}
		if now, err := w.Store.Position(r.Context()); err == nil && now != seen {
			seen, quiet = now, time.Now()
			if !send(
				"id: %d\nevent: letters\ndata: %d\n\nid: %d\nevent: operation\ndata: %d\n\n", seen, seen, seen, seen,
			) {
				return
			}
		}
		if now, newest := w.brokers(r.Context()), trialNow(); found || !slices.EqualFunc(now, status, sameStatus) ||
			newest != trial {
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

// sameStatus reports whether two statuses of a connection look the same on a page. It ignores the
// time of the next attempt to connect. This time changes again and again, and the banner should not
// change each time.
func sameStatus(a, b deadletter.BrokerStatus) bool {
	return a.Name == b.Name && a.VHost == b.VHost && a.Connected == b.Connected && a.Blocked == b.Blocked &&
		a.Reason == b.Reason && a.Note == b.Note && slices.Equal(
		a.Inboxes, b.Inboxes,
	) &&
		slices.EqualFunc(
			a.Problems(), b.Problems(),
			func(p, q deadletter.Problem) bool { return p.Key() == q.Key() && p.Text == q.Text },
		)
}

// sameLook reports whether two reports on a vhost have the same result. It ignores the times at
// which the vhost was read.
func sameLook(a, b topology.Report) bool {
	return a.Broker == b.Broker && a.VHost == b.VHost && a.Failed == b.Failed &&
		(a.ReadAt.Equal(b.ReadAt) || slices.EqualFunc(a.Findings, b.Findings, topology.Finding.Same) &&
			slices.Equal(a.Gaps, b.Gaps))
}
