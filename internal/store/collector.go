package store

import (
	"context"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/prometheus/client_golang/prometheus"
)

var (
	lettersDesc = prometheus.NewDesc("dlo_letters", "Letters in the store, by state.", []string{"state"}, nil)
	backlogDesc = prometheus.NewDesc(
		"dlo_classify_backlog", "Letters that are stored and wait for their verdict.", nil, nil,
	)
	groupsDesc = prometheus.NewDesc(
		"dlo_groups",
		"Failure groups in the inbox of the triage page, by status (new, open, escalating, regressed) and severity (page, notify, digest).",
		[]string{"status", "severity"}, nil,
	)
	overdueDesc = prometheus.NewDesc(
		"dlo_letters_overdue",
		"Letters that wait although their retries should be over, by the queue they died in and the severity of their group.",
		[]string{"queue", "severity"}, nil,
	)
	lagDesc = prometheus.NewDesc(
		"dlo_schedule_lag_seconds",
		"Seconds since the automatic retry that waits longest was due, of queues and groups that nobody paused; 0 when none is overdue.",
		nil, nil,
	)
)

// Collector returns a collector for the gauges dlo_letters, dlo_classify_backlog, dlo_groups,
// dlo_letters_overdue and dlo_schedule_lag_seconds. A scrape reads counters and an index, and never
// counts letters.
func (s *Store) Collector() prometheus.Collector { return collector{s, &deadletter.Labels{}} }

type collector struct {
	store  *Store
	queues *deadletter.Labels
}

func (c collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{lettersDesc, backlogDesc, groupsDesc, overdueDesc, lagDesc} {
		to <- d
	}
}

// patience is the maximum duration of a scrape. Prometheus gives up after 10 seconds by default.
const patience = 5 * time.Second

func (c collector) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if letters, err := c.store.byState(ctx); err != nil {
		to <- prometheus.NewInvalidMetric(lettersDesc, err)
	} else {
		for _, state := range deadletter.States {
			to <- prometheus.MustNewConstMetric(
				lettersDesc, prometheus.GaugeValue, float64(letters[state]), string(state),
			)
		}
		to <- prometheus.MustNewConstMetric(
			backlogDesc, prometheus.GaugeValue, float64(letters[deadletter.StateReceived]),
		)
	}
	if groups, err := c.store.inboxGroups(ctx); err != nil {
		to <- prometheus.NewInvalidMetric(groupsDesc, err)
	} else {
		for k, n := range groups {
			to <- prometheus.MustNewConstMetric(
				groupsDesc, prometheus.GaugeValue, float64(n), string(k.status), string(k.severity),
			)
		}
	}
	if letters, err := c.store.overdueLetters(ctx, c.queues.Of); err != nil {
		to <- prometheus.NewInvalidMetric(overdueDesc, err)
	} else {
		for k, n := range letters {
			to <- prometheus.MustNewConstMetric(
				overdueDesc, prometheus.GaugeValue, float64(n), k.queue, string(k.severity),
			)
		}
	}
	if lag, err := c.store.ScheduleLag(ctx); err != nil {
		to <- prometheus.NewInvalidMetric(lagDesc, err)
	} else {
		to <- prometheus.MustNewConstMetric(lagDesc, prometheus.GaugeValue, lag.Seconds())
	}
}

// byState counts letters by their state.
func (s *Store) byState(ctx context.Context) (map[deadletter.State]int, error) {
	counts := map[deadletter.State]int{}
	rows, err := s.ask(ctx, `SELECT state, sum(n) FROM counters GROUP BY state`)
	if err != nil {
		return nil, err
	}
	return counts, scan(rows, func() error {
		var state deadletter.State
		var n int
		err := rows.Scan(&state, &n)
		counts[state] = n
		return err
	})
}

// standing is a combination of status and severity of a group in the inbox.
type standing struct {
	status   deadletter.GroupStatus
	severity deadletter.Severity
}

// inboxGroups counts the groups in the inbox by status and severity. The result includes
// combinations that no group has. A group that contains only held letters has no severity yet. It
// is counted under the severity "digest".
func (s *Store) inboxGroups(ctx context.Context) (map[standing]int, error) {
	counts := map[standing]int{}
	for _, status := range deadletter.GroupStatuses {
		if status == deadletter.GroupSnoozed || status == deadletter.GroupResolved {
			continue
		}
		for _, severity := range []deadletter.Severity{
			deadletter.SeverityPage, deadletter.SeverityNotify, deadletter.SeverityDigest,
		} {
			counts[standing{status, severity}] = 0
		}
	}
	rows, err := s.ask(ctx, `SELECT g.status, CASE WHEN g.severity IN ('page', 'notify') THEN g.severity
		ELSE 'digest' END, count(*)
		FROM `+needyGroups+` c CROSS JOIN groups g ON g.id = c.id WHERE g.head IS NULL
			AND `+groupTabs[deadletter.TabInbox]+` GROUP BY 1, 2`)
	if err != nil {
		return nil, err
	}
	return counts, scan(rows, func() error {
		var at standing
		var n int
		err := rows.Scan(&at.status, &at.severity, &n)
		counts[at] = n
		return err
	})
}

// overdueOf is the key by which overdue letters are counted.
type overdueOf struct {
	queue    string
	severity deadletter.Severity
}

// overdueLetters counts the letters whose retries should have ended by now.
func (s *Store) overdueLetters(ctx context.Context, label func(queue string) string) (map[overdueOf]int, error) {
	counts := map[overdueOf]int{}
	rows, err := s.ask(ctx, `SELECT g.origin, g.severity, sum(k.n) FROM overdue k JOIN groups g ON g.id = k.grp
		GROUP BY 1, 2`)
	if err != nil {
		return nil, err
	}
	return counts, scan(rows, func() error {
		var origin int64
		var of overdueOf
		var n int
		err := rows.Scan(&origin, &of.severity, &n)
		of.queue = label(s.names.origin(origin).Queue)
		counts[of] += n
		return err
	})
}
