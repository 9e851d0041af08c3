package rabbitmq

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/topology"
)

// queuePage is the number of queues in one request. The API refuses larger pages.
const queuePage = 500

// errNoManagement means that the configuration has no management API for a broker.
var errNoManagement = errors.New("the broker has no management URL in the configuration")

// lookWait is the timeout of a request to the management API that reads dead-letter paths. It is
// long because /api/overview of 4.0.5 and 4.3.6 sometimes takes 5 s while connections are opened
// and closed. The request takes equally long with and without statistics.
const lookWait = 20 * time.Second

// managementOf returns the two clients of a management API: the one that reads single queues, and
// the one that reads whole vhosts. The parameter "file" is the file with the password, or "".
func managementOf(raw, file string) (management, looks *Management, err error) {
	if management, err = newManagement(raw); err != nil {
		return nil, nil, err
	}
	if looks, err = newLooks(raw); err != nil {
		return nil, nil, err
	}
	management.password.file, looks.password.file = file, file
	return management, looks, nil
}

// newLooks returns the client that reads the dead-letter paths of whole vhosts. It has a longer
// timeout than the client that reads single queues, because nothing waits for the paths. It is a
// separate client, so that slow reading of paths does not delay the reading of single queues.
func newLooks(raw string) (*Management, error) {
	m, err := newManagement(raw)
	if err != nil {
		return nil, err
	}
	m.client.Timeout = lookWait
	return m, nil
}

// Snapshot returns what the management API reports about the vhost of the link. The snapshot lists
// the parts that could not be read. Snapshot fails only if this API does not answer at all.
func (l *Link) Snapshot(ctx context.Context) (topology.Snapshot, error) {
	if l.looks.Load() == nil {
		return topology.Snapshot{}, errNoManagement
	}
	return l.looks.Load().snapshot(ctx, l.broker.Name, l.vhost)
}

// Look returns snapshots of vhosts of a broker to which dlo is not connected. The parameter "raw"
// is the URL of the broker's management API, with user and password. If the parameter "vhosts" is
// empty, Look returns all vhosts that the user may see.
func Look(ctx context.Context, raw string, vhosts []string) ([]topology.Snapshot, error) {
	m, err := newLooks(raw)
	if err != nil {
		return nil, err
	}
	visible, err := m.vhosts(ctx)
	switch why := notAPI(err); {
	case why != "":
		return nil, fmt.Errorf(
			"this is not the URL of a management API, because %s; the URL of the API looks like http://user:password@host:15672",
			why,
		)
	case err != nil:
		return nil, err
	case len(visible) == 0:
		return nil, fmt.Errorf(
			"user %[1]s sees no vhost, because it has no permission in any; give it one that allows nothing: rabbitmqctl set_permissions -p / %[1]s '^$' '^$' '^$'",
			m.user,
		)
	}
	for _, vhost := range vhosts {
		if !slices.Contains(visible, vhost) {
			return nil, fmt.Errorf(
				"user %s sees no vhost %s; it sees: %s", m.user, deadletter.Visible(vhost),
				deadletter.Visible(strings.Join(visible, ", ")),
			)
		}
	}
	if len(vhosts) == 0 {
		vhosts = visible
	}
	var list []topology.Snapshot
	for _, vhost := range vhosts {
		s, err := m.snapshot(ctx, "", vhost)
		if err == nil && m.late() && sleep(ctx, lag) == nil {
			s, err = m.snapshot(ctx, "", vhost)
		}
		if err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	return list, nil
}

// notAPI returns the reason why a server is not a management API. It judges this by the error that
// the first request to the server has caused. For other errors, it returns "".
func notAPI(err error) string {
	var syntax *json.SyntaxError
	var other *json.UnmarshalTypeError
	switch {
	case errors.Is(err, errNoQueue):
		return "it answered 404 Not Found"
	case errors.As(err, &syntax), errors.As(err, &other):
		return "the answer is not JSON of RabbitMQ"
	case err != nil && strings.Contains(err.Error(), "malformed HTTP"): // what net/http says of an AMQP port
		return "the port does not speak HTTP"
	}
	return ""
}

// vhosts returns the names of the vhosts that the user may see.
func (m *Management) vhosts(ctx context.Context) ([]string, error) {
	var list []struct{ Name string }
	if err := m.get(ctx, "/api/vhosts", &list); err != nil {
		return nil, fmt.Errorf("management: vhosts: %w", err)
	}
	names := make([]string, len(list))
	for i, v := range list {
		names[i] = v.Name
	}
	return names, nil
}

// VHosts returns the names of the vhosts that the user may see in the management API.
func (l *Link) VHosts(ctx context.Context) ([]string, error) { return l.looks.Load().vhosts(ctx) }

// snapshot reads a vhost. The user needs only the tag "management" for it (measured on 3.10.8,
// 4.0.5, 4.3.6).
func (m *Management) snapshot(ctx context.Context, broker, vhost string) (topology.Snapshot, error) {
	s := topology.Snapshot{Broker: broker, VHost: vhost, ReadAt: time.Now().UTC()}
	var overview struct {
		Version string `json:"rabbitmq_version"`
		Rates   string `json:"rates_mode"`
	}
	if err := m.get(ctx, "/api/overview?disable_stats=true", &overview); err != nil {
		return s, fmt.Errorf("management: %w", err)
	}
	s.Version, s.NoRates = overview.Version, overview.Rates == "none"
	in := url.PathEscape(vhost)
	m.queues(ctx, in, &s)
	paths := []part{
		{topology.PartExchanges, "/api/exchanges/" + in, &s.Exchanges},
		{topology.PartBindings, "/api/bindings/" + in, &s.Bindings},
	}
	for _, part := range append(paths, policyParts(in, &s)...) {
		if err := m.get(ctx, part.path, part.into); err != nil {
			s.Gaps = append(s.Gaps, topology.Gap{What: part.name, Why: err.Error()})
		}
	}
	if slices.ContainsFunc(s.Queues, func(q topology.Queue) bool { e := s.EffectOf(&q); return e.Doubtful() }) {
		if err := m.applied(ctx, in, "", &s); err != nil {
			s.Gaps = append(s.Gaps, topology.Gap{What: topology.PartPolicies, Why: err.Error()})
		}
	}
	m.shovels(ctx, in, &s)
	return s, ctx.Err()
}

// part is a part of a snapshot that one request reads.
type part struct {
	name, path string
	into       any
}

func policyParts(vhost string, s *topology.Snapshot) []part {
	return []part{
		{topology.PartPolicies, "/api/policies/" + vhost, &s.Policies},
		{topology.PartOperators, "/api/operator-policies/" + vhost, &s.Operators},
	}
}

// shovels reads the dynamic shovels of a vhost. Only users with the tag policymaker may see them.
// If dlo's user lacks this tag, the shovels are missing in the snapshot, and the snapshot does not
// list them as unread.
func (m *Management) shovels(ctx context.Context, vhost string, s *topology.Snapshot) {
	var list []struct {
		Name  string
		Value json.RawMessage
	}
	err := m.get(ctx, "/api/parameters/shovel/"+vhost, &list)
	switch {
	case errors.Is(err, errMayNot) || errors.Is(err, errNoQueue): // 404: the broker does not have the shovel plugin
		return
	case err != nil:
		s.Gaps = append(s.Gaps, topology.Gap{What: topology.PartShovels, Why: err.Error()})
		return
	}
	for _, p := range list {
		s.AddShovel(p.Name, p.Value)
	}
}

// queueReads is the maximum number of times that dlo reads the queues of a vhost to take one
// snapshot. It reads them again if queues were declared or deleted during the last reading.
const queueReads = 3

// queues reads the queues of a vhost page by page. If a queue is deleted between two pages, the
// other queues move up, and one of them may be on neither page. In this case, all pages are read
// again. If the queues change each time, the snapshot has all queues of all reads, and says that it
// may lack some.
func (m *Management) queues(ctx context.Context, vhost string, s *topology.Snapshot) {
	seen := map[string]bool{}
	for range queueReads {
		items, same, err := m.allPages(ctx, vhost, "")
		if err != nil {
			s.Gaps = append(s.Gaps, topology.Gap{What: topology.PartQueues, Why: err.Error()})
			return
		}
		if same {
			s.Queues, s.Gaps, seen = nil, nil, map[string]bool{}
		}
		addQueues(items, seen, s)
		if same {
			return
		}
	}
	s.Gaps = append(s.Gaps, topology.Gap{
		What: "some queues",
		Why:  fmt.Sprintf("queues were declared or deleted while dlo read them, %d times in a row", queueReads),
	})
}

// allPages returns the queues of a vhost, and whether they stayed the same while it read the pages.
// The parameter "query" is added to the query of each request.
func (m *Management) allPages(ctx context.Context, vhost, query string) ([]json.RawMessage, bool, error) {
	var items []json.RawMessage
	pages, total, same := 1, 0, true
	for page := 1; page <= pages; page++ {
		var answer struct {
			Items []json.RawMessage `json:"items"`
			Pages int               `json:"page_count"`
			Total int               `json:"total_count"`
		}
		err := m.get(
			ctx, "/api/queues/"+vhost+"?page="+strconv.Itoa(page)+"&page_size="+strconv.Itoa(queuePage)+query, &answer,
		)
		switch {
		case page > 1 && errors.Is(err, errBadRequest): // this page does not exist any more
			return items, false, nil
		case err != nil:
			return nil, false, err
		}
		same = same && (page == 1 || answer.Total == total)
		items = append(items, answer.Items...)
		pages, total = answer.Pages, answer.Total
	}
	return items, same && (pages <= 1 || len(items) == total), nil
}

// addQueues adds queues to a snapshot. It leaves out queues whose names are already in the set
// "seen", and adds the other names to this set.
func addQueues(items []json.RawMessage, seen map[string]bool, s *topology.Snapshot) {
	for _, item := range items {
		var q topology.Queue
		err := json.Unmarshal(item, &q)
		switch {
		case q.Name != "" && seen[q.Name]:
			continue
		case err != nil:
			s.Gaps = append(s.Gaps, topology.Gap{What: "queue " + deadletter.Visible(q.Name), Why: err.Error()})
		default:
			s.Queues = append(s.Queues, q)
		}
		seen[q.Name] = true
	}
}

// Ahead returns how far the broker's clock is ahead of the local clock. The result is not exact,
// because the management API reports whole seconds.
func (l *Link) Ahead(ctx context.Context) (time.Duration, error) {
	if l.looks.Load() == nil {
		return 0, errNoManagement
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, l.looks.Load().base+"/api/vhosts", nil)
	if err != nil {
		return 0, err
	}
	r.SetBasicAuth(l.looks.Load().user, l.looks.Load().password.read())
	sent := time.Now()
	answer, err := l.looks.Load().client.Do(r)
	if err != nil {
		return 0, withoutURL(err)
	}
	answer.Body.Close()
	there, err := http.ParseTime(answer.Header.Get("Date"))
	if err != nil {
		return 0, errors.New("the management API reports no time")
	}
	here := sent.Add(time.Since(sent) / 2)
	return there.Add(500 * time.Millisecond).Sub(here), nil
}
