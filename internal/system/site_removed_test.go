package system

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/testenv"
	"github.com/google/go-cmp/cmp"
)

// TestDloIsAddedToASiteAndRemoved uses the documented commands to add dlo to a site of 31 queues.
// It lets dlo work, and uses the commands of docs/operations.md to remove dlo. Before, during and
// after that, everything that belongs to the site must stay the same byte for byte, except for the
// changes that the documents name. The consumers of the site must keep working, and the test must
// know the fate of each message.
func TestDloIsAddedToASiteAndRemoved(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	s := newSite(t)
	if n := len(s.queues); n != 31 {
		t.Fatalf("%d queues", n)
	}
	publishing, stopPublishing := context.WithCancel(t.Context())
	defer stopPublishing()
	published := s.publish(publishing)
	rates := []float64{s.waitForMessages(10)}
	var before map[string][]string
	eventually(t, "the broker shows all", func() bool {
		before = s.definitions(false)
		shown := strings.Join(before["shown queues"], "\n")
		return len(before["shown consumers"]) == s.workers() && strings.Count(shown, `"consumers":1,`) == s.workers() &&
			strings.Count(shown, `"operator_policy":"size"`) == len(s.queues)
	})

	p := newChild(t, s.node.AMQPURL(s.vhost), s.configuration("dlo.letters, pay.dead"))
	p.Start("")
	p.Draining()
	added := s.protectQueues()
	rates = append(rates, s.waitForMessages(25))
	s.isAsBefore(before)
	eventually(t, "each kind of letter is in the store", func() bool {
		return p.letters("dead") > 0 && p.letters("settled") > 0 && p.count("letters", `reason = 'expired'`) > 0 &&
			p.count("letters", `reason = 'maxlen'`) > 0 &&
			p.ask(`SELECT count(*) FROM letters l JOIN inboxes i ON i.id = l.inbox
				WHERE i.queue = 'pay.dead'`) > 0 && p.count("attempts", `waiter <> ''`) > 0
	})
	removed := s.removeDLO(p)
	rates = append(rates, s.waitForMessages(10))
	stopPublishing()
	published()
	s.waitForState(before, "dlo leaves nothing behind", func() map[string][]string { return s.definitions(false) })
	s.checkMessages(p, added, removed)
	t.Logf("%s: messages handled a second before, with dlo, and after: %.0f", s.node.Version(), rates)
}

// configuration returns the configuration of dlo. The parameter "inboxes" lists the inboxes,
// separated by commas.
func (s *site) configuration(inboxes string) string {
	return fmt.Sprintf(`
brokers: [{url: "%%AMQP%%", management: %q, inboxes: [%s]}]
rules: [{name: lazy, match: {queue: orders.lazy}, retry: {delays: [1s], waiter: wait-queue}}]
default: {retry: {delays: [500ms]}}
requeue: {rate: 0, watch: 2s}
`, s.node.ManagementURLOf("guest:guest"), inboxes)
}

// workers returns how many queues of the site have a consumer.
func (s *site) workers() (n int) {
	for _, q := range s.queues {
		if q.work != nil {
			n++
		}
	}
	return n
}

// protectQueues runs the documented commands that protect queues. It returns the time after that.
func (s *site) protectQueues() time.Time {
	s.t.Helper()
	var names []string
	for _, q := range s.queues {
		if q.protected {
			names = append(names, regexp.QuoteMeta(q.name))
		}
	}
	own, done := 0, map[string]bool{}
	for _, command := range append(commandsOf(s.t, "README.md", ""), commandsOf(s.t, "docs/quickstart.md", "")...) {
		if done[command] { // skips a command that is in both documents, because each rabbitmqctl starts an Erlang VM
			continue
		}
		done[command] = true
		switch {
		case strings.Contains(command, " dlo-own "):
			own++
		case strings.Contains(command, "set_policy"):
			// this policy replaces the policy for all queues, so it must repeat the keys of that
			// policy
			command = strings.NewReplacer(
				"(orders|emails)", "("+strings.Join(names, "|")+")", `{"dead`, "{"+siteLimit+`,"dead`,
			).Replace(command)
			if !strings.Contains(command, "events") || !strings.Contains(command, siteLimit) {
				s.t.Fatal(command)
			}
		}
		out := rabbitmqctl(s.t, s.node, s.vhost, command)
		if strings.Contains(command, " list_queues") {
			for _, q := range s.queues {
				if got := strings.Contains(out, q.name+"\tdlo\n"); got != q.protected {
					s.t.Errorf("the proof says of %s that it is protected: %t", q.name, got)
				}
			}
		}
	}
	if own != 1 {
		s.t.Fatalf("%d commands for the queues of dlo", own)
	}
	return time.Now()
}

// isAsBefore checks that everything that does not belong to dlo is as it was before dlo was added.
// Only the policy of protected queues may differ.
func (s *site) isAsBefore(before map[string][]string) {
	s.t.Helper()
	plain := strings.NewReplacer(`"policy":"dlo"`, `"policy":"catch-all"`, `"dead-letter-exchange":"dlo.dlx",`, "")
	s.waitForState(before, "beside dlo the site is as it was", func() map[string][]string {
		now := s.definitions(true)
		for i, text := range now["shown queues"] {
			// dlo drains this queue, so it has a consumer
			if text = plain.Replace(text); strings.Contains(text, `"name":"pay.dead"`) {
				text = strings.Replace(text, `"consumers":1,`, `"consumers":0,`, 1)
			}
			now["shown queues"][i] = text
		}
		slices.Sort(now["shown queues"])
		return now
	})
	eventually(s.t, "the inbox has the policy for the queues of dlo", func() bool {
		var own struct {
			Policy    string
			Operator  string         `json:"operator_policy"`
			Effective map[string]any `json:"effective_policy_definition"`
		}
		err := s.node.API(http.MethodGet, "/api/queues/"+url.PathEscape(s.vhost)+"/dlo.letters", nil, &own)
		return err == nil && own.Policy == "dlo-own" && own.Operator == "size" && own.Effective["max-length"] == nil
	})
}

// waitForState waits until the broker shows the given state, because the figures of the broker are
// some seconds late.
func (s *site) waitForState(before map[string][]string, what string, now func() map[string][]string) {
	s.t.Helper()
	diff := ""
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		if diff = cmp.Diff(before, now()); diff == "" {
			return
		}
	}
	s.t.Errorf("%s; not so:\n%s", what, diff)
}

// removeDLO runs the commands of the manual that remove dlo, in order. It returns the time at which
// the policy of the queues was removed.
func (s *site) removeDLO(p *child) (removed time.Time) {
	s.t.Helper()
	none := func(command string) {
		eventually(s.t, command+": none", func() bool {
			out, _ := p.dlo(s.t.Context(), 0, "", append(words(command)[1:], "-o", "jsonl")...)
			return strings.TrimSpace(out) == ""
		})
	}
	var listed string
	var queues, exchanges []string
	for _, command := range commandsOf(s.t, "docs/operations.md", "Taking dlo out again") {
		args := words(command)
		switch {
		case command == "dlo queues list":
			listed, _ = p.dlo(s.t.Context(), 0, "", words(command)[1:]...)
		case args[2] == "pause":
			for _, q := range s.queues {
				if strings.Contains(listed, " "+q.name+" ") || strings.Contains(listed, "\n"+q.name+" ") {
					p.dlo(s.t.Context(), 0, "", words(strings.Replace(command, "orders", q.name, 1))[1:]...)
				}
			}
		case strings.HasPrefix(command, "dlo letters list"):
			none(command)
		case command == "rabbitmqctl clear_policy dlo":
			removed = time.Now()
			rabbitmqctl(s.t, s.node, s.vhost, command)
		case command == "rabbitmqctl list_queues name policy":
			if out := rabbitmqctl(s.t, s.node, s.vhost, command); strings.Contains(out, "\tdlo\n") {
				s.t.Errorf("queues are still protected:\n%s", out)
			}
		case command == "rabbitmqctl list_queues name messages":
			p.Stop()
			p.Configure(s.configuration("dlo.letters")) // this configuration does not contain the site's own inbox
			p.Start("")
			eventually(s.t, "the operator policy is told, which no policy displaces", func() bool {
				_, body := p.get("/readyz")
				return strings.Contains(body, "inbox_loses_letters") &&
					strings.Contains(body, "The operator policy size can only be removed by its owner.")
			})
			eventually(s.t, "the queues of dlo are empty", func() bool {
				filled := regexp.MustCompile(`(?m)^dlo\.(letters|annotations|wait\.\d+)\t[1-9]`)
				return !filled.MatchString(rabbitmqctl(s.t, s.node, s.vhost, command))
			})
		case strings.HasPrefix(command, "dlo letters export"):
			file := filepath.Join(s.t.TempDir(), "letters.ndjson")
			p.dlo(s.t.Context(), 0, "", words(strings.Replace(command, "letters.ndjson", file, 1))[1:]...)
			if code := p.Stop(); code != 0 {
				s.t.Errorf("exit code %d", code)
			}
		case strings.Contains(command, "list_queues") && strings.Contains(command, "grep"):
			queues = strings.Fields(rabbitmqctl(s.t, s.node, s.vhost, command))
		case strings.Contains(command, "list_exchanges"):
			exchanges = strings.Fields(rabbitmqctl(s.t, s.node, s.vhost, command))
		case args[1] == "delete_queue":
			rabbitmqctl(s.t, s.node, s.vhost, strings.Replace(command, "dlo.letters", queues[0], 1))
			// the API deletes the other queues, because each rabbitmqctl would start an Erlang VM
			for _, queue := range queues[1:] {
				if err := s.node.API(
					http.MethodDelete, "/api/queues/"+url.PathEscape(s.vhost)+"/"+url.PathEscape(queue), nil, nil,
				); err != nil {
					s.t.Error(err)
				}
			}
		case args[0] == "curl":
			for _, exchange := range exchanges {
				_, path, _ := strings.Cut(args[len(args)-1], ":15672")
				path = strings.NewReplacer("%2F", url.PathEscape(s.vhost), "dlo.dlx", exchange).Replace(path)
				if err := s.node.API(args[4], path, nil, nil); err != nil {
					s.t.Error(err)
				}
			}
		case command == "rabbitmqctl clear_policy dlo-own":
			rabbitmqctl(s.t, s.node, s.vhost, command)
		default:
			s.t.Fatalf("the manual says %q", command)
		}
	}
	if len(queues) < 4 || len(exchanges) != 2 {
		s.t.Errorf("dlo had the queues %q and the exchanges %q", queues, exchanges)
	}
	return removed
}

// checkMessages checks the fate of each message. The usual fates are that a consumer accepted the
// message once, that it is in a queue or in the store, or that its publisher got a rejection. Any
// other message must have been dropped by the rules of the site, or must have died while dlo was
// not yet there or already removed.
func (s *site) checkMessages(p *child, added, removed time.Time) {
	s.t.Helper()
	var backlog int
	eventually(s.t, "the consumers are through", func() bool {
		backlog = 0
		for _, q := range s.queues {
			if q.work != nil || strings.HasSuffix(q.name, ".retry") {
				backlog += s.unsettled(q.name)
			}
		}
		return backlog == 0
	})
	in, stored := s.leave(), map[string]bool{}
	p.rows(`SELECT body FROM bodies`, nil, func(rows *sql.Rows) error {
		var body string
		err := rows.Scan(&body)
		stored[body] = true
		return err
	})
	counts, caught := map[string]int{}, map[string]int{}
	s.mu.Lock()
	defer s.mu.Unlock()
	const asking = 2 * time.Second // the broker may take this long to apply a policy to all queues
	for body, f := range s.messages {
		q := f.queue
		if stored[body] {
			caught[q.name]++
		}
		switch {
		case f.accepted > 1:
			s.t.Errorf("%q was accepted %d times", body, f.accepted)
		case f.accepted == 1:
			counts["accepted"]++
		case in[body] != "":
			counts["in a queue"]++
		case stored[body]:
			counts["in the store"]++
		case f.refused && strings.HasPrefix(q.name, "orders.full"):
			counts["the publisher was told"]++
		case q.drops:
			counts["dropped by rules of the site, in "+q.name]++
		case q.protected && (f.published.Before(added.Add(asking)) || f.published.After(removed.Add(-5*time.Second)) ||
			f.rejected.After(removed.Add(-asking))):
			counts["dropped before dlo came and after it went"]++
		default:
			s.t.Errorf(
				"LOST: %q, published %s after dlo was added, rejected %t, refused %t", body, f.published.Sub(added),
				!f.rejected.IsZero(), f.refused,
			)
		}
	}
	for body := range stored {
		if s.messages[body] == nil {
			s.t.Errorf("a row of %q, which nobody published", body)
		}
	}
	for _, q := range s.queues {
		switch {
		case q.name == "orders.full": // this queue rejects messages at publishing, so nothing dies in it
		case q.protected && caught[q.name] == 0:
			s.t.Errorf("no letter of %s is in the store", q.name)
		case !q.protected && q.name != "pay" && caught[q.name] > 0:
			s.t.Errorf("%d letters of %s are in the store", caught[q.name], q.name)
		}
	}
	if in["metrics 0"] != "" || counts["dropped by rules of the site, in metrics"] == 0 {
		s.t.Errorf("the site drops nothing by itself: %v", counts)
	}
	s.t.Logf("%d messages: %v", len(s.messages), counts)
}

// unsettled returns how many messages are in a queue, including those that its consumer has not
// settled.
func (s *site) unsettled(queue string) int {
	s.t.Helper()
	var shown struct{ Messages int }
	if err := s.node.API(http.MethodGet, "/api/queues/"+url.PathEscape(s.vhost)+"/"+queue, nil, &shown); err != nil {
		s.t.Fatal(err)
	}
	return shown.Messages
}
