package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Permissions returns the resources to which a user may write, in all vhosts of the broker. The
// result is empty if the broker does not know the user. dlo's own user needs the tag administrator
// for this request (measured on 3.10.8, 4.0.5 and 4.3.6).
func (l *Link) Permissions(ctx context.Context, user string) ([]deadletter.Written, error) {
	if l.management.Load() == nil {
		return nil, errors.New("the management API is not configured")
	}
	if !canAsk(user) {
		return nil, nil
	}
	var found []struct{ VHost, Write string }
	err := l.management.Load().get(ctx, "/api/users/"+url.PathEscape(user)+"/permissions", &found)
	switch {
	case errors.Is(err, errNoQueue):
		return nil, nil
	case errors.Is(err, errMayNot):
		return nil, fmt.Errorf("%w; give dlo's user the tag administrator, because no other may read permissions", err)
	case err != nil:
		return nil, err
	}
	list := make([]deadletter.Written, len(found))
	for i, p := range found {
		list[i] = deadletter.Written{Broker: l.broker.Name, VHost: p.VHost, Name: p.Write}
	}
	return list, nil
}
