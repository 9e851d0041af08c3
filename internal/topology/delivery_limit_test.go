package topology_test

import (
	"encoding/json"
	"testing"

	"github.com/deadletteroffice/dlo/internal/topology"
)

// TestTheDeliveryLimitInForce checks the delivery limit with queues in the form in which the
// management API shows them. The result must be right for each combination of argument, policy and
// operator policy. The expected results were measured with 23 lost connections for each combination
// on 3.10.8, 4.0.5 and 4.3.6.
func TestTheDeliveryLimitInForce(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct{ old, current bool }{
		`{"type": "classic"}`:                                       {false, false},
		`{"type": "classic", "delivery_limit": 20}`:                 {false, false},
		`{"type": "quorum"}`:                                        {false, true},
		`{"type": "quorum", "delivery_limit": 20}`:                  {true, true},
		`{"type": "quorum", "delivery_limit": "some"}`:              {false, true},
		`{"type": "quorum", "delivery_limit": null}`:                {false, true},
		`{"type": "quorum", "arguments": {"x-delivery-limit": -1}}`: {true, false},
		`{"type": "quorum", "delivery_limit": "unlimited"}`:         {true, false},
		`{"type": "quorum", "arguments": {"x-delivery-limit": -1}, "delivery_limit": "unlimited", "effective_policy_definition": {}}`: {
			true, false,
		},
		`{"type": "quorum", "arguments": {"x-delivery-limit": -1}, "effective_policy_definition": {"delivery-limit": 5}}`: {
			true, true,
		},
		`{"type": "quorum", "arguments": {"x-delivery-limit": -1}, "delivery_limit": 5}`: {
			true, true,
		},
		`{"type": "quorum", "arguments": {"x-delivery-limit": 5}, "effective_policy_definition": {"delivery-limit": -1}}`: {
			true, true,
		},
		`{"type": "quorum", "arguments": {}, "effective_policy_definition": {"delivery-limit": 5}}`: {
			true, true,
		},
		`{"type": "quorum", "arguments": {}, "effective_policy_definition": {"max-length": 5}}`: {
			false, true,
		},
		`{"type": "quorum", "arguments": {"x-delivery-limit": -1}, "delivery_limit": "some", "effective_policy_definition": {"other": 1}}`: {
			true, false,
		},
	} {
		e := reported(t, text)
		for version, want := range map[string]bool{"3.10.8": want.old, "4.0.5": want.current, "4.3.6": want.current} {
			if _, got := e.DeliveryLimit(version); got != want {
				t.Errorf("%s on %s: may delete letters: %v, want %v", text, version, got, want)
			}
		}
	}
}

// TestTheNumberOfTheDeliveryLimit checks the delivery limit that dlo computes for queues that have
// one.
func TestTheNumberOfTheDeliveryLimit(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct{ old, current int64 }{
		`{"type": "quorum", "delivery_limit": 20}`: {20, 20},
		`{"type": "quorum", "arguments": {"x-delivery-limit": -1}, "effective_policy_definition": {"delivery-limit": 5}}`: {
			-1, 5,
		},
		`{"type": "quorum", "arguments": {"x-delivery-limit": 7}, "effective_policy_definition": {"delivery-limit": 5}}`: {
			5, 5,
		},
	} {
		e := reported(t, text)
		if got, _ := e.DeliveryLimit("3.10.8"); got.N != want.old {
			t.Errorf("%s on 3.10.8: %d, want %d", text, got.N, want.old)
		}
		if got, _ := e.DeliveryLimit("4.0.5"); got.N != want.current {
			t.Errorf("%s on 4.0.5: %d, want %d", text, got.N, want.current)
		}
	}
}

// reported returns the effect of a queue that the management API shows as the given JSON.
func reported(t *testing.T, text string) topology.Effect {
	t.Helper()
	var q topology.Queue
	if err := json.Unmarshal([]byte(text), &q); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return (&topology.Snapshot{}).EffectOf(&q)
}
