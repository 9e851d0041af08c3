package rabbitmq

import (
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
)

// TestAQueueWhoseNodeIsDownIsNotGone checks that dlo distinguishes a deleted queue from a queue
// whose node is down. The broker returns the same code for both, so dlo looks at the text of the
// error. The texts in this test were copied from three broker versions, and cluster_test.go checks
// them.
func TestAQueueWhoseNodeIsDownIsNotGone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		reason     string
		away, gone bool
	}{
		{"NOT_FOUND - no queue 'dlo.letters' in vhost '/'", false, true},
		{
			"NOT_FOUND - home node 'rabbit@b' of durable queue 'dlo.letters' in vhost '/' is down or inaccessible",
			true, false,
		},
		{"NOT_FOUND - failed to perform operation on queue 'dlo.letters' in vhost '/' due to timeout", true, false},
	} {
		err := &amqp.Error{Code: amqp.NotFound, Reason: c.reason}
		if isAway(err) != c.away || isGone(err) != c.gone {
			t.Errorf("%s: away %v, gone %v", c.reason, isAway(err), isGone(err))
		}
	}
}
