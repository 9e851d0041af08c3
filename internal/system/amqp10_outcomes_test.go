package system

import (
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/testenv"
	amqp "github.com/rabbitmq/amqp091-go"
)

// TestAMQP10Outcomes lets a client of AMQP 1.0 settle messages in the ways that docs/consumers.md
// describes. The annotations of the outcome "modified" must be the error of the letter. The broker
// does not pass on the condition of the outcome "rejected".
func TestAMQP10Outcomes(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	p, said := amqp10Client(t, "amqp10_outcomes.py", amqp.Table{"x-queue-type": "quorum"})
	eventually(
		t, "the values are letters",
		func() bool { return p.letters("dead") == 2 || strings.Contains(said.String(), "rror") },
	)
	if n := p.count("letters", "error = 'Acme.Stock: stock of 17' AND reason = 'rejected'"); n != 1 {
		t.Errorf("%d letters have the error of the annotations", n)
	}
	if n := p.count("letters", "error = '' AND reason = 'rejected'"); n != 1 {
		t.Errorf("%d letters have no error", n)
	}
}
