package rabbitmq

import (
	"encoding/json"
	"testing"
)

// The delivery limit of a queue as the API shows it: absent, a number, or a word.
func TestTheDeliveryLimitInForce(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		limit int64
		known bool
	}{
		`{"type": "quorum"}`: {0, false}, `{"type": "quorum", "delivery_limit": 20}`: {20, true}, `{"type": "quorum", "delivery_limit": "unlimited"}`: {-1, true},
		`{"type": "quorum", "delivery_limit": "some"}`: {0, false}, `{"type": "quorum", "delivery_limit": null}`: {0, false},
		`{"type": "quorum", "delivery_limit": "some", "arguments": {"x-delivery-limit": -1}}`: {-1, true},
	} {
		var q managedQueue
		if err := json.Unmarshal([]byte(text), &q); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if limit, known := q.deliveryLimit(); limit != want.limit || known != want.known || q.Type != "quorum" {
			t.Errorf("%s: %d, %v", text, limit, known)
		}
	}
}
