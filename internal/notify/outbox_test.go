package notify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/prometheus/client_golang/prometheus"
)

// outbox is a Store in memory.
type outbox struct {
	now func() time.Time

	mu       sync.Mutex
	rows     []*outboxRow
	broken   error // error that Delivered returns
	unread   error // error that Due returns
	recorded int   // number of successful calls of Delivered
}

type outboxRow struct {
	deadletter.Delivery
	deadletter.Delivered
	postponed bool
}

func (r *outboxRow) open() bool { return !r.Sent && !r.Failed }

// add adds notices for a channel to the outbox. It adds one notice for each of the given keys.
func (o *outbox) add(channel string, kind deadletter.NoticeKind, severity deadletter.Severity, keys ...string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, k := range keys {
		d := someDelivery(kind)
		d.ID, d.Channel, d.DueAt = int64(len(o.rows)+1), channel, o.now()
		d.Notice.ID, d.Notice.Key, d.Notice.Severity, d.Notice.At, d.Notice.Text = d.ID, k, severity, o.now(), "about "+
			k
		if kind == deadletter.NoticeBreaker {
			d.Group, d.Notice.Group = nil, 0
		}
		if kind == deadletter.NoticeDigest {
			d.Group, d.Notice.Group, d.Digest = nil, 0, &deadletter.Digest{}
		}
		o.rows = append(o.rows, &outboxRow{Delivery: d})
	}
}

func (o *outbox) Due(_ context.Context, channel string, n int) ([]deadletter.Delivery, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.unread != nil {
		return nil, o.unread
	}
	var out []deadletter.Delivery
	waits := map[string]bool{}
	for _, r := range o.rows {
		if r.Channel != channel || !r.open() || waits[r.Notice.Key] {
			continue
		}
		if !(r.postponed && r.DueAt.After(o.now())) { // a page overtakes deliveries that wait until the morning
			waits[r.Notice.Key] = true
		} else {
			for _, later := range o.rows {
				if later.open() && later.Notice.Key == r.Notice.Key && later.Notice.Severity == deadletter.SeverityPage && !later.DueAt.After(o.now()) && later.Channel == channel {
					out, waits[r.Notice.Key] = append(out, later.Delivery), true
					break
				}
			}
			waits[r.Notice.Key] = true
			continue
		}
		if !r.DueAt.After(o.now()) {
			out = append(out, r.Delivery)
		}
	}
	return out[:min(n, len(out))], nil
}

func (o *outbox) Delivered(_ context.Context, ds []deadletter.Delivered) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.broken != nil {
		return o.broken
	}
	for _, d := range ds {
		r := o.rows[d.ID-1]
		if !r.open() {
			return fmt.Errorf("delivery %d is closed, and gets %+v", d.ID, d)
		}
		if n := len(
			d.Detail,
		); d.Sent == d.Failed && d.RetryAt.IsZero() || !d.RetryAt.IsZero() && (d.Sent || d.Failed) ||
			d.Failed && n == 0 {
			return fmt.Errorf("no outcome: %+v", d)
		}
		r.Delivered = d
		if !d.RetryAt.IsZero() {
			r.DueAt, r.postponed = d.RetryAt, d.Detail == ""
			if d.Detail != "" {
				r.Tries++
			}
		}
	}
	o.recorded++
	return nil
}

// count returns how many deliveries of a channel are open, sent and failed.
func (o *outbox) count(channel string) (open, sent, failed int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, r := range o.rows {
		switch {
		case r.Channel != channel:
		case r.Sent:
			sent++
		case r.Failed:
			failed++
		default:
			open++
		}
	}
	return open, sent, failed
}

func (o *outbox) row(id int) outboxRow {
	o.mu.Lock()
	defer o.mu.Unlock()
	return *o.rows[id-1]
}

func (o *outbox) setBroken(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.broken = err
}

// scribe is a sender that records the messages. It returns the result of its function "answers".
type scribe struct {
	mu      sync.Mutex
	told    []Message
	at      []time.Time
	answers func(n int, m Message) error // n is the number of the message, counted from 0
}

func (s *scribe) Send(_ context.Context, m Message) (string, error) {
	s.mu.Lock()
	n := len(s.told)
	s.told, s.at = append(s.told, m), append(s.at, time.Now())
	s.mu.Unlock()
	if s.answers == nil {
		return "200 OK", nil
	}
	return "200 OK", s.answers(n, m)
}

func (s *scribe) sentMessages() ([]Message, []time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Message(nil), s.told...), append([]time.Time(nil), s.at...)
}

// bench is a notifier with an outbox, metrics and a log.
type bench struct {
	*Notifier
	box *outbox
	reg *prometheus.Registry
	log *lockedBuffer
}

func newBench(now func() time.Time, quiet Quiet, channels map[string]Channel) *bench {
	b := &bench{box: &outbox{now: now}, reg: prometheus.NewRegistry(), log: &lockedBuffer{}}
	b.Notifier = New(b.box, Options{
		Now: now, Jitter: func() float64 { return 0.5 }, Log: slog.New(slog.NewTextHandler(b.log, nil)),
		Registerer: b.reg,
	})
	b.Replace(Settings{Office: office, Quiet: quiet, Channels: channels})
	return b
}

// start runs the notifier until the returned function is called.
func (b *bench) start(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- b.Run(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// outcomes returns the values of dlo_notifications_total for a channel by outcome, without zeros.
func (b *bench) outcomes(t *testing.T, channel string) map[string]float64 {
	t.Helper()
	families, err := b.reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if f.GetName() == "dlo_notifications_total" && labels["channel"] == channel &&
				m.GetCounter().GetValue() > 0 {
				got[labels["outcome"]] = m.GetCounter().GetValue()
			}
		}
	}
	return got
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

var errDown = errors.New("the connection was refused")
