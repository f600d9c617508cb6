package cluster

import (
	"maps"
	"time"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
)

// An experience counts launches and reclaims of nodes in the book. Each counts once.
type experience struct {
	clock   *snapshotClock
	markets *marketView
	pools   *poolTable
	keep    time.Duration // Config.NoticeMax

	// taken contains the nodes that the provider has reclaimed, with the time. Their pods may be
	// deleted later.
	taken map[string]policy.Time
}

// take records that the provider has reclaimed a node.
func (x *experience) take(name string, now policy.Time) {
	x.taken[name] = now
	if len(x.taken) > takenMax {
		maps.DeleteFunc(x.taken, func(_ string, at policy.Time) bool { return now.Sub(at) > x.keep })
	}
}

// takenMax is the number of reclaimed nodes above which old ones are dropped.
const takenMax = 1000

// countReclaim adds the reclaim of a node to the experience of its market, once.
func (x *experience) countReclaim(e *nodeEntry, n *policy.Node, at policy.Time) {
	if e.met || n.Market == policy.None || !x.markets.isSpot(n.Market) {
		return
	}
	e.met = true
	m := &x.markets.view.Markets[n.Market]
	if e.initial && m.Experience.Reclaimed >= at {
		return // counted before the restart
	}
	x.markets.book.Meet(backend.Event{Kind: backend.MetReclaim, Pool: x.pools.name(n.Pool), Market: m.Name,
		At: x.clock.clamp(at)})
}

// countLaunch adds the launch of a node to the experience of its market, once. A node that existed
// when the observer started counts only if it is younger than the stored experience.
func (x *experience) countLaunch(e *nodeEntry, n *policy.Node) {
	if e.launched || n.Market == policy.None || e.object == nil && e.machine.ProviderID == "" {
		return
	}
	e.launched = true
	m := &x.markets.view.Markets[n.Market]
	if e.initial && (m.Experience.At == 0 || n.Launched <= m.Experience.At) {
		return
	}
	x.markets.book.Meet(backend.Event{Kind: backend.MetLaunch, Pool: x.pools.name(n.Pool), Market: m.Name, At: n.Launched})
}
