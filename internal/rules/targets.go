package rules

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Targets contains the queues to which letters may be requeued. dlo needs this list, because the
// broker's permissions do not limit the queues: everybody who may publish to the default exchange
// can reach every queue. On 3.x, everybody who can publish a message can also forge its x-death.
type Targets struct {
	brokers map[string]target
}

type target struct {
	vhost    string
	globs    []string
	inboxes  []string
	observed []string
}

// Add sets the queues of a broker and vhost to which letters may be sent. The parameter "globs"
// contains patterns for the names of these queues. The parameter "inboxes" lists the inboxes of the
// broker. Queues amq.*, the inboxes and dlo's own queues are never permitted.
func (t *Targets) Add(broker, vhost string, globs, inboxes []string) {
	if t.brokers == nil {
		t.brokers = map[string]target{}
	}
	t.brokers[broker] = target{vhost: vhost, globs: globs, inboxes: inboxes}
}

// Observe sets patterns for the queues of a broker that are only observed. The broker must have
// been added before.
func (t *Targets) Observe(broker string, globs []string) {
	b := t.brokers[broker]
	b.observed = globs
	t.brokers[broker] = b
}

// Observed reports whether the queue in which letters died is only observed. dlo does not send
// letters of such a queue.
func (t *Targets) Observed(o deadletter.Origin) bool {
	b := t.brokers[o.Broker]
	return b.vhost == o.VHost && slices.ContainsFunc(
		b.observed, func(g string) bool { return deadletter.Glob(g, o.Queue, true) },
	)
}

// Configured returns nil if the broker and the vhost of an origin are in the configuration.
// Otherwise it returns an error that says why nothing can be sent there.
func (t *Targets) Configured(o deadletter.Origin) error {
	switch b, ok := t.brokers[o.Broker]; {
	case !ok:
		return fmt.Errorf("there is no broker %q in the configuration", deadletter.Visible(o.Broker))
	case b.vhost != o.VHost:
		return fmt.Errorf(
			"broker %s is configured for vhost %q, not %q", o.Broker, b.vhost, deadletter.Visible(o.VHost),
		)
	}
	return nil
}

// Allow returns nil if a letter may be sent to a queue. Otherwise it returns an error that says why
// not. The parameter o names the queue.
func (t *Targets) Allow(o deadletter.Origin) error {
	if err := t.Configured(o); err != nil {
		return err
	}
	b, queue := t.brokers[o.Broker], deadletter.Visible(o.Queue)
	if t.Observed(o) {
		return fmt.Errorf(
			"queue %s is only observed: take it out of observe of broker %s, so that letters can be sent there", queue,
			o.Broker,
		)
	}
	switch {
	case o.Queue == "":
		return fmt.Errorf("nothing says which queue it died in")
	case len(o.Queue) > deadletter.MaxQueueName:
		return fmt.Errorf(
			"queue %s… cannot exist: a name has at most %d bytes", deadletter.Visible(o.Queue[:40]),
			deadletter.MaxQueueName,
		)
	case !utf8.ValidString(o.Queue):
		return fmt.Errorf("the name of queue %s is not UTF-8, so the broker cannot be asked about it", queue)
	case strings.HasPrefix(o.Queue, "amq."):
		return fmt.Errorf("queue %s belongs to the broker or to a connection", queue)
	case o.Queue == deadletter.TrialQueue:
		return fmt.Errorf("queue %s is for trial letters only, which go back there automatically", queue)
	case deadletter.OwnQueue(o.Queue) || slices.Contains(b.inboxes, o.Queue):
		return fmt.Errorf("queue %s is a dead-letter queue of dlo", queue)
	}
	if slices.ContainsFunc(b.globs, func(g string) bool { return deadletter.Glob(g, o.Queue, true) }) {
		return nil
	}
	return fmt.Errorf("queue %s is not in requeue_to of broker %s", queue, o.Broker)
}

// AllowLetter returns nil if a letter may be sent to the queue o. Otherwise it returns an error
// that says why not. The parameter "rule" is the name of the rule that decided about the letter. A
// letter that dlo made for a trial may be sent only to the trial queue. No other letter may be sent
// to the trial queue.
func (t *Targets) AllowLetter(o deadletter.Origin, rule string) error {
	switch {
	case rule != deadletter.TrialRule:
		return t.Allow(o)
	case o.Queue != deadletter.TrialQueue:
		return fmt.Errorf(
			"dlo made it for a trial, and letters of a trial go back to queue %s only", deadletter.TrialQueue,
		)
	}
	return t.Configured(o)
}
