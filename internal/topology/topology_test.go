package topology_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/topology"
)

// TestEachFaultIsFound gives a correct vhost one fault at a time. It checks that Inspect finds this
// fault and nothing else.
func TestEachFaultIsFound(t *testing.T) {
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if c.version == "" {
				c.version = "4.3.6"
			}
			s := site(c.version)
			if c.change != nil {
				c.change(s)
			}
			if len(c.options.Inboxes) == 0 {
				c.options.Inboxes = []string{"dlo.letters"}
			}
			var got []string
			for _, f := range topology.Inspect(s, c.options) {
				got = append(got, findingText(f))
				for _, text := range []string{f.Title, f.Loses, f.Why, f.Cure} {
					if strings.Contains(text, "secret") || text == "" || strings.Contains(text, "%!") {
						t.Errorf("a text of %s is wrong: %q", f.Kind, text)
					}
				}
				checkOthers(t, s, f)
				if f.Broker != "main" || f.VHost != "/" {
					t.Errorf("%s is of %s%s", f.Kind, f.Broker, f.VHost)
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("found %q, want %q", got, c.want)
			}
		})
	}
}

// TestTheCureSaysWhatItCosts checks findings whose proposed cure is the setting reject-publish.
// Each of these cures must say what happens to publishers while the inbox is not available.
func TestTheCureSaysWhatItCosts(t *testing.T) {
	for _, strategy := range []string{"at-most-once", "at-least-once"} {
		s := site("4.3.6")
		s.Queues[0] = quorum("orders", "x-dead-letter-strategy", strategy)
		found := topology.Inspect(s, topology.Options{Inboxes: []string{"dlo.letters"}})
		if len(found) != 1 || !found[0].Weak() ||
			!strings.Contains(
				found[0].Cure,
				"While the dead-letter queue is away, dead letters then stay in this queue. If it also has a length limit, publishers are refused once it is full.",
			) {
			t.Errorf("%s: %+v", strategy, found)
		}
	}
}

// TestWhatATieLoses covers a queue that is matched by two policies with the same priority. The keys
// in which these policies differ determine what can be lost, and the text of the finding must say
// this.
func TestWhatATieLoses(t *testing.T) {
	for want, keys := range map[string][]any{
		"every dead letter, if the broker picks the policy without the exchange": {"max-length", 1000},
		"dead letters go to exchange dlo.dlx or to exchange other":               {"dead-letter-exchange", "other"},
		"the policies have different routing keys": {
			"dead-letter-exchange", "dlo.dlx", "dead-letter-routing-key", "k",
		},
	} {
		s := site("4.3.6")
		s.Policies = append(s.Policies, policy("other", "^ord", 10, keys...))
		found := topology.Inspect(s, topology.Options{Inboxes: []string{"dlo.letters"}})
		if len(found) != 1 || found[0].Kind != topology.PolicyTied || !strings.Contains(found[0].Loses, want) {
			t.Errorf("%+v, want %q", found, want)
		}
	}
}

// checkOthers checks the names of queues in the texts of a finding. If a text names a queue other
// than the finding's own queue, this queue must be listed in the field Others. The method Apart
// returns the finding without the other queues, so its texts must name only the finding's own
// queue.
func checkOthers(t *testing.T, s *topology.Snapshot, f topology.Finding) {
	t.Helper()
	names := slices.Clone(f.Others)
	for _, q := range s.Queues {
		names = append(names, q.Name)
	}
	apart := f.Apart()
	for _, name := range names {
		if name == f.Queue || name == "" || f.Queue == "" {
			continue
		}
		word := regexp.MustCompile(`(^|[ ,"])` + regexp.QuoteMeta(name) + `($|[ ,.";:])`)
		if word.MatchString(f.Title+" "+f.Loses+" "+f.Why+" "+f.Cure) && !slices.Contains(f.Others, name) &&
			!slices.Contains(f.More, name) {
			t.Errorf("%s of %s names %s, and does not list it", f.Kind, f.Queue, name)
		}
		if word.MatchString(apart.Title+" "+apart.Loses+" "+apart.Why+" "+apart.Cure) || len(apart.Others) > 0 {
			t.Errorf("%s of %s, apart, names %s: %+v", f.Kind, f.Queue, name, apart)
		}
	}
}

// TestEachKindHasACase checks that each kind of finding has a test case.
func TestEachKindHasACase(t *testing.T) {
	for _, kind := range topology.Kinds() {
		found := false
		for _, c := range cases {
			found = found || slices.ContainsFunc(
				c.want, func(w string) bool { return strings.HasPrefix(w, string(kind)+" ") },
			)
		}
		if !found {
			t.Errorf("no case finds %s", kind)
		}
	}
}

// TestTheWorstComesFirst checks the order of findings.
func TestTheWorstComesFirst(t *testing.T) {
	s := site("4.3.6")
	s.Queues = append(s.Queues, quorum("b"), classic("a"), quorum("c"))
	s.Queues[1].Arguments = definition()
	s.Policies = append(s.Policies, policy("c", "^c$", 0, "dead-letter-exchange", "dlo.dlx"))
	var got []string
	for _, f := range topology.Inspect(s, topology.Options{Inboxes: []string{"dlo.letters"}}) {
		got = append(got, string(f.Severity)+" "+f.Queue)
	}
	want := []string{string(deadletter.SeverityPage) + " dlo.letters", "notify b", "digest c"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
