package store

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// GroupPlaces returns the places to which the letters of the given groups belong. A decision about
// a merged group always changes all groups that are merged with it. Therefore, GroupPlaces includes
// the places of these groups, even if they are outside the scope of the request. GroupPlaces
// returns ErrNotFound if one of the given groups is outside the scope.
func (s *Store) GroupPlaces(ctx context.Context, groups ...deadletter.GroupID) ([]deadletter.Origin, error) {
	for _, id := range groups {
		if _, err := s.GroupTitle(ctx, id); err != nil {
			return nil, err
		}
	}
	text, _ := json.Marshal(groups) // json.Marshal cannot fail, because the list contains only numbers
	origins, err := values[int64](s.ask(deadletter.Within(ctx, deadletter.Scope{}), `SELECT DISTINCT m.origin
		FROM groups g JOIN groups m ON m.id = coalesce(g.head, g.id) OR m.head = coalesce(g.head, g.id)
		WHERE g.id IN (SELECT value FROM json_each($1))`, string(text)))
	if err != nil {
		return nil, fmt.Errorf("places of groups: %w", err)
	}
	var places []deadletter.Origin
	for _, origin := range origins {
		places = append(places, s.names.placeOf(origin, 0).origin())
	}
	return places, nil
}
