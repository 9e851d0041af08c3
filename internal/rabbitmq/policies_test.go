package rabbitmq_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/rabbitmq"
	"github.com/deadletteroffice/dlo/internal/testenv"
	"github.com/deadletteroffice/dlo/internal/topology"
	amqp "github.com/rabbitmq/amqp091-go"
)

// policyValues are values that RabbitMQ accepts for the policy keys that are not numbers.
var policyValues = map[string]any{
	"dead-letter-exchange": "x", "dead-letter-routing-key": "k", "dead-letter-strategy": "at-least-once",
	"overflow": "reject-publish", "queue-mode": "lazy", "queue-master-locator": "client-local",
	"queue-leader-locator": "balanced", "alternate-exchange": "x", "max-age": "1h", "ha-mode": "all",
	"delayed-retry-type": "all", "queue-version": 1,
}

// TestKeysOfPolicies sets each policy key that the broker knows for a queue of each type. RabbitMQ
// ignores a policy if the type of the queue does not support its key. dlo must compute the same
// from the definitions of the vhost as from its own table, which this test measures again.
func TestKeysOfPolicies(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	onEachVersion(t, measureKeys)
}

func measureKeys(t *testing.T, root string) {
	node := testenv.BrokerIn(t, root)
	vhost, address := node.VHost(t)
	out, err := node.Ctl("-q", "eval", "lists:usort([K || {{policy_validator, K}, _} <- ets:tab2list(rabbit_registry)]).")
	if err != nil {
		t.Fatal(err)
	}
	keys := regexp.MustCompile(`[a-z][a-z-]+`).FindAllString(out, -1)
	queues, accepted := map[string]amqp.Table{}, 0
	for _, key := range keys {
		value := any(40_000_000)
		if special, ok := policyValues[key]; ok {
			value = special
		}
		keys := map[string]any{key: value}
		if strings.HasPrefix(key, "ha-") && key != "ha-mode" {
			continue // these keys need ha-mode
		}
		if node.API(http.MethodPut, "/api/policies/"+vhost+"/"+key, limitsOf(`^`+key+`\.`, keys), nil) != nil {
			continue // the broker knows the key, and does not accept it any more
		}
		accepted++
		for _, kind := range []string{"classic", "quorum", "stream"} {
			queues[key+"."+kind] = amqp.Table{"x-queue-type": kind}
		}
	}
	if accepted < 18 {
		t.Fatalf("the broker accepts only %d of the keys %q", accepted, keys)
	}
	declare(t, address, queues)
	if out, err = node.Ctl("-q", "list_queues", "-p", vhost, "name", "policy", "--formatter", "json"); err != nil {
		t.Fatal(err)
	}
	var listed []struct{ Name, Policy string }
	if err := json.Unmarshal([]byte(out), &listed); err != nil || len(listed) != len(queues) {
		t.Fatalf("%d of %d queues, %v", len(listed), len(queues), err)
	}
	applied := map[string]string{}
	for _, q := range listed {
		applied[q.Name] = q.Policy
	}
	var file json.RawMessage
	if err := node.API(http.MethodGet, "/api/definitions/"+url.PathEscape(vhost), nil, &file); err != nil {
		t.Fatal(err)
	}
	read, err := topology.ReadDefinitions(file)
	if err != nil || len(read) != 1 {
		t.Fatal(len(read), err)
	}
	for i := range read[0].Queues {
		e := read[0].EffectOf(&read[0].Queues[i])
		got := ""
		if p := e.Policy(); p != nil {
			got = p.Name
		}
		if name := e.Queue.Name; got != applied[name] {
			t.Errorf("on %s, policy %q applies to %s, and dlo computes %q", node.Version(), applied[name], name, got)
		}
	}
}

// namesOfQueues are matched with each pattern of TestPatternsOfPolicies.
var namesOfQueues = []string{
	"orders", "orders.eu", "orders_error", "ORDERS", "amq.gen-Xy1", "amqp", "dlo.letters", "reply_7f", "mail", "mails",
	"a", "aa", "aaab", "a.b.c", "", "x y", "tab\there", "café", "naïve.q", "q-1", "q-12", "q-123", "9lives", "invoice.dlq",
	"invoice.dlq\n", "orders\n", "my.retry.5000", "federation: a -> b", "[x]", "a{,3}",
}

// patternsOfPolicies are patterns as people write them, and some that use what only PCRE has.
var patternsOfPolicies = []string{
	`.*`, `^orders$`, `orders`, `^(?!amq\.).*`, `^(?!amq\.).*$`, `^(?!(amq\.)|(reply_)).*`, `^(?!.*_error$).*`,
	`^(?!.*(retry|dlq)).*$`, `^((?!dlo).)*$`, `(?<!_)error$`, `(?<=\.)eu$`, `(?<!amq\.)gen`, `^(?=.*eu).*orders`,
	`^(orders|mails)$`, `(?i)^orders`, `(?i)é`, `^\w+$`, `^\W`, `\bdlq\b`, `^\d`, `\d{2,}$`, `\s`, `[[:upper:]]`,
	`[^[:alnum:]]$`, `(.)\1`, `^(a+)\1`, `(?<x>a)(b)?\1`, `^(?>a+)b`, `a++b`, `^.{4}$`, `^..$`, `é`, `[é]`, `^[a-z.]+$`,
	`\Qa.b\E`, `^\Q[x]\E$`, `a{,3}`, `x$`, `\Z`, `\z`, `dlq\z`, `dlq$`, `(?m)^o`, `(?s).\z`, `(?x) o r d`, `^$`,
	`orders(?R)?`, `(?|a|b)`, `\Khere`, `\h`, `\R`, `^(?(?=a)aa|o)`, `[]x]`, `[^]x]`, `[a-c-e]`, `\_`, `\-`, `a|b|`,
	`^(?!b)((a+)+)+$`, `\x61`, `[\x00-\x20]`, `(?:^|\.)retry(?:\.|$)`, `^(?!dlo\.|amq\.)[^.]+\.[^.]+`,
}

// TestPatternsOfPolicies compares how dlo reads patterns with how RabbitMQ does, which evaluates
// them with re:run of Erlang.
func TestPatternsOfPolicies(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	onEachVersion(t, comparePatterns)
}

func comparePatterns(t *testing.T, root string) {
	node := testenv.BrokerIn(t, root)
	patterns := slices.Clone(patternsOfPolicies)
	random := rand.New(rand.NewPCG(1, 2))
	parts := []string{
		"o", "rder", "s", ".", `\.`, "a", "(a|b)", "(?!amq)", "(?!.*error)", "(?=a)", "(?<!s)", "(?<=q-)", "^", "$", "[a-z]",
		"[^.]", `\d`, `\w+`, ".*", "?", "+", "*?", "{1,2}", "(?:x|q)", "-", "(mail|reply)", "_", `\b`, `(?i)`, "é",
	}
	for len(patterns) < 240 {
		var p strings.Builder
		for range 2 + random.IntN(5) {
			p.WriteString(parts[random.IntN(len(parts))])
		}
		if !slices.Contains(patterns, p.String()) {
			patterns = append(patterns, p.String())
		}
	}
	list := func(texts []string) string {
		quoted := make([]string, len(texts))
		for i, text := range texts {
			quoted[i] = `<<"` + base64.StdEncoding.EncodeToString([]byte(text)) + `">>`
		}
		return "[base64:decode(T) || T <- [" + strings.Join(quoted, ",") + "]]"
	}
	out, err := node.Ctl("-q", "eval", fmt.Sprintf(
		"[case catch re:run(N, P, [{capture, none}]) of match -> $y; nomatch -> $n; _ -> $x end || P <- %s, N <- %s].",
		list(patterns), list(namesOfQueues),
	))
	if err != nil {
		t.Fatal(err)
	}
	answers := regexp.MustCompile(`[ynx]`).FindAllString(out, -1)
	if len(answers) != len(patterns)*len(namesOfQueues) {
		t.Fatalf("%d answers for %d patterns: %s", len(answers), len(patterns), out)
	}
	compared, unknown := 0, 0
	for i, pattern := range patterns {
		if answers[i*len(namesOfQueues)] == "x" {
			continue // RabbitMQ refuses such a policy
		}
		s := topology.Snapshot{Policies: []topology.Policy{{
			Name: "p", Pattern: pattern, Definition: topology.Definition{"max-length": json.Number("1")},
		}}}
		compared++
		for j, name := range namesOfQueues {
			q := topology.Queue{Name: name, Type: topology.Classic}
			e := s.EffectOf(&q)
			switch want := answers[i*len(namesOfQueues)+j] == "y"; {
			case e.Unknown("max-length") != nil:
				if j == 0 {
					t.Logf("dlo does not know %s", pattern)
					unknown++
				}
			case (e.Policy() != nil) != want:
				t.Errorf("%s on %q: RabbitMQ says %v", pattern, name, want)
			}
		}
	}
	t.Logf("%d patterns compared, %d unknown", compared, unknown)
	if compared < 200 || unknown*10 > compared {
		t.Errorf("%d patterns compared, %d of them unknown", compared, unknown)
	}
}

// TestHeadersExchangesOfABroker rejects a message in front of headers exchanges. dlo must say for
// each whether it arrives.
func TestHeadersExchangesOfABroker(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	onEachVersion(t, compareHeaders)
}

func compareHeaders(t *testing.T, root string) {
	node := testenv.BrokerIn(t, root)
	vhost, address := node.VHost(t)
	ch := openChannel(t, address, nil)
	declareOwn(t, ch, node)
	cases := []amqp.Table{
		nil,
		{"x-match": "all"},
		{"x-match": "any"},
		{"x-match": "all", "x-first-death-reason": "expired"},
		{"x-match": "any", "x-first-death-reason": "rejected"},
		{"x-match": "all-with-x", "x-first-death-reason": "expired"},
		{"x-match": "all-with-x", "x-first-death-reason": "rejected"},
		{"x-match": "any-with-x", "x-first-death-reason": "rejected", "tenant": "a"},
		{"x-match": "all-with-x", "x-first-death-queue": "elsewhere"},
		{"x-match": "any-with-x"},
		{"x-match": "all-with-x"},
		{"x-match": "all-with-x", "x-first-death-reason": nil},
		{"tenant": "a"},
		{"x-match": "any", "tenant": "a"},
	}
	for i, arguments := range cases {
		work, dead, exchange := fmt.Sprint("work.", i), fmt.Sprint("dead.", i), fmt.Sprint("dlx.", i)
		declareInbox(t, ch, work, amqp.Table{"x-dead-letter-exchange": exchange})
		declareInbox(t, ch, dead, amqp.Table{"x-dead-letter-exchange": "dlo.dlx"})
		if err := ch.ExchangeDeclare(exchange, "headers", true, false, false, false, nil); err != nil {
			t.Fatal(err)
		}
		if err := ch.QueueBind(dead, "", exchange, false, arguments); err != nil {
			t.Fatal(i, err)
		}
		rejectOf(t, ch, work)
	}
	list, err := rabbitmq.Look(t.Context(), node.ManagementURLOf("guest:guest"), []string{vhost})
	if err != nil {
		t.Fatal(err)
	}
	found := topology.Inspect(&list[0], topology.Options{Inboxes: []string{"dlo.letters"}})
	unknown := 0
	for i, arguments := range cases {
		arrived := false
		for range 10 {
			if _, arrived, err = ch.Get(fmt.Sprint("dead.", i), true); err != nil {
				t.Fatal(err)
			}
			if arrived {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
		says := "arrives"
		for _, f := range found {
			switch {
			case f.Queue != fmt.Sprint("work.", i):
			case f.Kind == topology.RouteUnknown:
				says = "unknown"
				unknown++
			case f.Kind == topology.NoBinding && f.Severity == "page":
				says = "lost"
			}
		}
		if says != "unknown" && (says == "arrives") != arrived {
			t.Errorf("binding %v on %s: the letter arrives: %v, and dlo says %s", arguments, node.Version(), arrived, says)
		}
	}
	if unknown != 2 { // those that look at a header of the message
		t.Errorf("%d cases are unknown", unknown)
	}
}
