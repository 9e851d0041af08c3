package topology_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/topology"
)

// TestARecordedSite checks all findings of a site with many faults, as three versions of RabbitMQ
// reported it. TestRecordASite of internal/rabbitmq creates the site and records it.
func TestARecordedSite(t *testing.T) {
	want := []string{
		"at_most_once refunds digest certain",
		"cycle round.a notify certain",
		"delivery_limit letters.limited page certain",
		"exchange_missing paid page certain",
		"left_behind left notify certain",
		"letters_deleted parked notify certain",
		"no_binding audit notify likely",
		"no_binding mail page certain",
		"no_exchange orders notify certain",
		"operator_caps invoices digest certain",
		"overflow_drops stock notify certain",
		"policy_shadowed legacy page certain",
		"queue_full returns page certain",
		"queue_missing sms page certain",
		"retry_recipe shop digest certain",
		"stuck held notify likely",
	}
	for version, more := range map[string][]string{
		"3.10": {"delivery_limit dlo.letters page certain"}, // on 3.10, -1 means a limit of 0
		"4.0":  {"delivery_limit letters.default page certain"},
		"4.3":  {"delivery_limit letters.default page certain"},
	} {
		t.Run(version, func(t *testing.T) {
			text, err := os.ReadFile("testdata/recorded-" + version + ".json")
			if err != nil {
				t.Fatal(err)
			}
			var s topology.Snapshot
			if err := json.Unmarshal(text, &s); err != nil {
				t.Fatal(err)
			}
			o := idleFor("left", 20)
			o.Inboxes = []string{"dlo.letters", "letters.limited", "letters.default"}
			var got []string
			for _, f := range topology.Inspect(&s, o) {
				got = append(got, findingText(f))
			}
			want := append(slices.Clone(want), more...)
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("found\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}
