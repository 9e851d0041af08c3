package rabbitmq_test

import (
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/testenv"
	amqp "github.com/rabbitmq/amqp091-go"
)

// TestAMessageThatFitsIntoNoFrame covers a broker whose frames are smaller than usual. A message
// with a header that is too large must be rejected alone, with the name of the header in the
// reason. If dlo sent it, the connection would end (501).
func TestAMessageThatFitsIntoNoFrame(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	node := testenv.PrivateBrokerWith(t, testenv.Options{Conf: []string{"frame_max = 8192"}})
	_, url := node.VHost(t)
	declare(t, url, map[string]amqp.Table{"work": nil})
	link := publisher(t, url, 16)
	// sizes in bytes of a frame, of the frame and content header around the properties, and of the
	// other properties
	const frame, around, token = 8192, 8 + 12, 2 + 1 + 4 + 1 + 9 + 1 + 4 + 7
	for _, c := range []struct {
		size int
		want deadletter.OutcomeKind
	}{
		{frame - around - token - 1 - 5 - 5, deadletter.OutcomeConfirmed},
		{frame - around - token - 1 - 5 - 5 + 1, deadletter.OutcomeRefused},
	} {
		ps := messages("work", 3, []byte("body"))
		ps[1].Properties.Headers["stack"] = strings.Repeat("x", c.size)
		outcomes := link.Publish(t.Context(), link.Session(), ps)
		for n, o := range outcomes {
			want := deadletter.OutcomeConfirmed
			if n == 1 {
				want = c.want
			}
			if o.Kind != want {
				t.Errorf("message %d with a header of %d bytes: %s, %s", n, c.size, o.Kind, o.Detail)
			}
		}
		if c.want == deadletter.OutcomeRefused && !strings.Contains(outcomes[1].Detail, `header "stack" takes 81`) {
			t.Errorf("why: %s", outcomes[1].Detail)
		}
	}
}
