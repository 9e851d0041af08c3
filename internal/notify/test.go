package notify

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Channels returns the channels of the configuration, sorted by name.
func (n *Notifier) Channels() []deadletter.Channel {
	n.mu.Lock()
	defer n.mu.Unlock()
	var out []deadletter.Channel
	for _, name := range slices.Sorted(maps.Keys(n.settings.Channels)) {
		if _, removed := n.settings.Channels[name].Sender.(gone); removed {
			continue
		}
		c := n.tested[name]
		c.Name = name
		out = append(out, c)
	}
	return out
}

// Test sends one notice to a channel that says that it is a test. It waits for the answer of the
// receiver, and records the test in the audit. A test does not wait for quiet hours, and it is sent
// once. If the receiver does not accept it, this is no error of Test. The error wraps ErrNotFound
// if there is no such channel, and ErrConflict while dlo may send no notices.
func (n *Notifier) Test(ctx context.Context, channel string, by deadletter.Principal) (deadletter.Channel, error) {
	n.mu.Lock()
	office, c, w := n.settings.Office, n.settings.Channels[channel], n.workers[channel]
	n.mu.Unlock()
	switch {
	case !slices.ContainsFunc(n.Channels(), func(c deadletter.Channel) bool { return c.Name == channel }) || w == nil:
		var names []string
		for _, c := range n.Channels() {
			names = append(names, c.Name)
		}
		return deadletter.Channel{}, fmt.Errorf(
			"%w: there is no channel %s; the configuration has %s", deadletter.ErrNotFound, deadletter.Visible(channel),
			cmp.Or(strings.Join(names, ", "), "none"),
		)
	case n.o.Silent():
		return deadletter.Channel{}, fmt.Errorf(
			"%w: this dlo sends no notices now, because another one works with its store", deadletter.ErrConflict,
		)
	}
	t := deadletter.Channel{Name: channel, TestedAt: n.o.Now()}
	answer, err := w.send(ctx, c.Sender, Compose(office, deadletter.Delivery{
		Channel: channel,
		Notice: deadletter.Notice{
			Kind: deadletter.NoticeTest, Key: "test " + channel, Severity: deadletter.SeverityNotify, At: t.TestedAt,
			Text: "Test of the channel " + channel + "\nThis is a test by " + by.Name + ". Nobody has to do anything.",
		},
	}))
	t.Accepted, t.Answer = err == nil, answer
	if err != nil {
		t.Answer = err.Error()
	}
	n.mu.Lock()
	n.tested[channel] = t
	n.mu.Unlock()
	return t, n.o.Record(ctx, deadletter.Once(deadletter.ActChannelTested, by.Name, t.Answer, deadletter.Target{
		Kind: deadletter.TargetChannel,
		Name: channel,
	}))
}
