package server

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/rabbitmq"
)

// permissionsFor is how long dlo uses a broker's answer about the permissions of a person. If a
// right is removed in RabbitMQ, dlo notices it after at most this time.
const (
	permissionsFor = time.Minute
	refusalFor     = 10 * time.Second // time until the next request after an error
	permissionsIn  = 2 * time.Second  // time limit for the answer of a broker
	maxPermissions = 5000             // maximum number of people whose permissions are kept
)

// permissions asks brokers to which resources their users may write.
type permissions struct {
	ask func(ctx context.Context, user string) ([]deadletter.Written, error) // asks all brokers
	now func() time.Time
	log *slog.Logger

	mu    sync.Mutex
	known map[string]*permitted
}

// permitted contains the resources to which one person may write. Its lock is held while the
// brokers are asked, so that there is only one request about a person at a time.
type permitted struct {
	mu    sync.Mutex
	list  []deadletter.Written
	until time.Time
}

// ofUser returns the permissions of a person. A broker that does not answer gives no permissions.
func (p *permissions) ofUser(ctx context.Context, user string) []deadletter.Written {
	p.mu.Lock()
	if len(p.known) >= maxPermissions || p.known == nil {
		p.known = map[string]*permitted{}
	}
	one := p.known[user]
	if one == nil {
		one = &permitted{}
		p.known[user] = one
	}
	p.mu.Unlock()
	one.mu.Lock()
	defer one.mu.Unlock()
	if now := p.now(); now.Before(one.until) {
		return one.list
	}
	asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), permissionsIn)
	defer cancel()
	list, err := p.ask(asking, user)
	one.list, one.until = list, p.now().Add(permissionsFor)
	if err != nil {
		one.until = p.now().Add(refusalFor)
		p.log.Warn(
			"the permissions of a person in RabbitMQ cannot be read, so they give no rights here", "user",
			deadletter.Visible(user), "err", err,
		)
	}
	return one.list
}

// permissionsOf returns a function that asks the brokers of all links for the permissions of a
// user.
func permissionsOf(links []*rabbitmq.Link) func(ctx context.Context, user string) ([]deadletter.Written, error) {
	return func(ctx context.Context, user string) (all []deadletter.Written, failed error) {
		for _, l := range links {
			list, err := l.Permissions(ctx, user)
			if err != nil {
				failed = err
			}
			for _, w := range list {
				if !slices.Contains(all, w) { // a broker with two vhosts has two links, which may give the same answer
					all = append(all, w)
				}
			}
		}
		return all, failed
	}
}
