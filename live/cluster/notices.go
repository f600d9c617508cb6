package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spotter-dev/spotter/live/drain"
	"github.com/spotter-dev/spotter/policy"
)

// ErrUnread is returned while some objects of the cluster have not been read.
var ErrUnread = errors.New("the cluster has not been read yet")

// Notices returns the nodes under notice that Spotter must drain in the present state of the
// cluster, the earliest reclaims first. It works between two snapshots, and also before the first.
// For these nodes, [place.Notices] of a snapshot returns a drain.
func (o *Observer) Notices(context.Context) ([]drain.Noticed, error) {
	if late := o.late(); late != "" {
		return nil, fmt.Errorf("%w: %s", ErrUnread, late)
	}
	now := o.clock.wall()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.readPools()
	o.nodes.readAll()
	var all []drain.Noticed
	for i := range o.nodes.slots.nodes {
		n := &o.nodes.slots.nodes[i]
		if n.ReclaimAt == 0 || n.Pool == policy.None || n.Phase != policy.NodeInitialized ||
			now.Sub(n.ReclaimAt) > o.cfg.NoticeMax {
			continue
		}
		p := &o.pools.valid[n.Pool].pool
		if n.ActedBy != policy.ActorNone && n.ActedBy != policy.ActorUs || p.Mode == policy.ModeOff {
			continue
		}
		all = append(all, drain.Noticed{Node: n.Name, Pool: p.Name, Provisioner: p.Provisioner, ReclaimAt: n.ReclaimAt,
			Text: "the provider reclaims the node, according to " + cmp.Or(o.nodes.slots.entries[i].source,
				"a mark on its Node")})
	}
	slices.SortFunc(all, func(a, b drain.Noticed) int {
		return cmp.Or(cmp.Compare(a.ReclaimAt, b.ReclaimAt), cmp.Compare(a.Node, b.Node))
	})
	return all, nil
}
