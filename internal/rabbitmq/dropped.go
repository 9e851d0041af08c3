package rabbitmq

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"time"
)

// droppedWait is how long dlo waits for the metrics of a node.
const droppedWait = 5 * time.Second

// maxMetrics is the maximum number of bytes that are read from a node's metrics. The global
// counters are near the beginning.
const maxMetrics = 32 << 20

// rejectedAndDropped matches the counter of rejected messages that the node dropped. A message is
// dropped if a consumer rejects it and its queue has no dead-letter exchange (rabbitmq_prometheus
// of 3.10.8, 4.0.5 and 4.3.6).
var rejectedAndDropped = regexp.MustCompile(
	`^rabbitmq_global_messages_dead_lettered_rejected_total\{[^}]*dead_letter_strategy="disabled"[^}]*\} ([0-9.e+]+)`,
)

// Dropped returns how many rejected messages a node has dropped since the node started. A message
// is dropped if a consumer rejects it and its queue has no dead-letter exchange. The management API
// does not count these messages, but the plugin rabbitmq_prometheus does. The parameter "metrics"
// is the URL of that plugin on the node. The counter does not say in which queues or vhosts the
// messages were.
func Dropped(ctx context.Context, metrics string) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, droppedWait)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, metrics, nil)
	if err != nil {
		return 0, fmt.Errorf("the URL of the metrics cannot be read; it looks like http://host:15692/metrics")
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, fmt.Errorf("metrics: %w", err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("metrics: %s; the URL looks like http://host:15692/metrics", answer.Status)
	}
	n, found := int64(0), false
	for lines := bufio.NewScanner(io.LimitReader(answer.Body, maxMetrics)); lines.Scan(); {
		if m := rejectedAndDropped.FindSubmatch(lines.Bytes()); m != nil {
			count, err := strconv.ParseFloat(string(m[1]), 64)
			if err != nil {
				return 0, fmt.Errorf("metrics: %w", err)
			}
			n, found = n+int64(count), true
		}
	}
	if !found {
		return 0, fmt.Errorf("metrics: the counter of dropped messages is missing")
	}
	return n, nil
}

// MetricsOf returns the URL at which the node of a management API publishes its metrics. It assumes
// the default port of the plugin rabbitmq_prometheus.
func MetricsOf(management string) string {
	u, err := url.Parse(management)
	if err != nil {
		return ""
	}
	return (&url.URL{Scheme: "http", Host: net.JoinHostPort(u.Hostname(), "15692"), Path: "/metrics"}).String()
}
