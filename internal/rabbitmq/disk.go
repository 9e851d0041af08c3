package rabbitmq

import (
	"context"
	"errors"
	"fmt"

	"github.com/deadletteroffice/dlo/internal/topology"
)

// DiskRoom returns how many bytes the broker can still write before its disk alarm blocks all
// publishers. In a cluster, it returns the number for the node with the least room. The user of the
// management API needs the tag monitoring (3.10.8, 4.3.6).
func (l *Link) DiskRoom(ctx context.Context) (int64, error) {
	if l.looks.Load() == nil {
		return 0, errNoManagement
	}
	var nodes []struct {
		Running bool            `json:"running"`
		Free    topology.Figure `json:"disk_free"`
		Limit   topology.Figure `json:"disk_free_limit"`
	}
	if err := l.looks.Load().get(ctx, "/api/nodes", &nodes); err != nil {
		return 0, fmt.Errorf("management: nodes: %w", err)
	}
	least, known := int64(0), false
	for _, n := range nodes {
		if !n.Running || !n.Free.Known || !n.Limit.Known {
			continue
		}
		if room := max(0, n.Free.N-n.Limit.N); !known || room < least {
			least, known = room, true
		}
	}
	if !known {
		return 0, errors.New("the management API does not report the free disk space")
	}
	return least, nil
}
