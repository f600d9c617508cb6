package portfolio

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

const (
	// probeFirst is how long a market that refused a launch is not tried again. The time doubles up
	// to probeLongest while the market keeps refusing with Spotter's nodes in it: the demand of
	// other customers follows the hours of the day, so each market is tried at least once a day.
	probeFirst   = 30 * time.Minute
	probeLongest = 24 * time.Hour
)

// A ledger estimates the number of nodes that the markets of a pool have. held counts the cluster's
// nodes by market, including nodes that are starting or leaving. The memory has at most one depth
// for each market, in ascending order of name.
type ledger struct {
	*poolContext
	held   []int
	depths []int32 // by market, 1 + its index in the depths of the memory; 0 if it has none
}

// readLedger counts the nodes that Spotter holds, and records what the refusals since the last
// decision reveal about the depth of a market. A market that refuses while Spotter has nodes in it
// is full: the number of these nodes is its depth. A market that refuses while Spotter has no nodes
// in it is short of capacity. That passes within hours and reveals nothing about its depth: the
// market is not tried again before first has passed.
func readLedger(x *poolContext, first time.Duration) *ledger {
	l := &ledger{poolContext: x}
	l.readHeld()
	l.read(first)
	l.readDepths()
	return l
}

// read updates the depths of the memory.
func (l *ledger) read(first time.Duration) {
	s := l.s
	depths := make([]policy.Depth, 0, len(l.memory.Depths))
	changed := false
	for _, id := range l.pool.Markets {
		m := &s.Markets[id]
		at := m.Experience.Refused
		if m.Capacity != policy.Spot || at == 0 {
			continue
		}
		x, known := policy.Depth{}, false
		if i, there := l.find(m.Name); there {
			x, known = l.memory.Depths[i], true
		}
		switch held := l.held[id]; {
		case known && held > x.Nodes && at <= x.Refused:
			changed = true // it is deeper than recorded
			continue
		case known && at <= x.Refused:
		case held == 0:
			x, changed = policy.Depth{Market: m.Name, Refused: at, Until: at.Add(first)}, true
		default:
			if x.Nodes != held {
				x = policy.Depth{Market: m.Name, Nodes: held}
			}
			x.Refused, x.Until = at, at.Add(min(probeLongest, probeFirst<<min(x.Probes, 16)))
			x.Probes++
			changed = true
		}
		if s.Now.Sub(x.Until) > probeLongest {
			changed = changed || known
			continue // too long ago to be relevant
		}
		depths = append(depths, x)
	}
	if changed || len(depths) != len(l.memory.Depths) {
		slices.SortFunc(depths, func(a, b policy.Depth) int { return cmp.Compare(a.Market, b.Market) })
		l.memory.Depths, l.changed = depths, true
	}
}

// readDepths finds which markets have a depth in the memory.
func (l *ledger) readDepths() {
	l.depths = make([]int32, len(l.s.Markets))
	if len(l.memory.Depths) == 0 {
		return
	}
	for _, id := range l.pool.Markets {
		if i, known := l.find(l.s.Markets[id].Name); known {
			l.depths[id] = int32(1 + i)
		}
	}
}

// readHeld counts the nodes that Spotter holds in every market.
func (l *ledger) readHeld() {
	s := l.s
	l.held = make([]int, len(s.Markets))
	for p := policy.PoolID(policy.None); int(p) < len(s.Pools); p++ {
		for m, n := range l.e.nodes.in(p) {
			l.held[m] += int(n)
		}
	}
	for _, id := range l.e.nodes.odd {
		if m := l.e.nodes.all[id].market; m >= 0 {
			l.held[m]++
		}
	}
}

// find returns the index of the market called name in the depths of the memory, and whether it has
// one.
func (l *ledger) find(name string) (int, bool) {
	return slices.BinarySearchFunc(l.memory.Depths, name, func(x policy.Depth,
		name string) int {
		return cmp.Compare(x.Market, name)
	})
}

// depthLeft returns how many more nodes market id is believed to have: the difference between its
// depth and the number of nodes held, plus one if it should be tried again, and no limit if nothing
// is known.
func (l *ledger) depthLeft(id policy.MarketID) int {
	m := &l.s.Markets[id]
	x, known, probes := policy.Depth{}, l.depths[id] > 0, 0
	if known {
		x = l.memory.Depths[l.depths[id]-1]
	}
	switch refused := m.Experience.Refused; {
	case !m.Offered:
		return 0
	case m.Capacity != policy.Spot && refused != 0 && l.s.Now.Sub(refused) < probeFirst:
		return 0
	case m.Capacity != policy.Spot || !known || x.Nodes == 0 && l.s.Now >= x.Until:
		return math.MaxInt
	case l.s.Now >= x.Until:
		probes = 1
	}
	return x.Nodes + probes - l.held[id]
}

// closed reports, by market, whether it is believed to have no more nodes. If all Spot markets of
// the pool are full, those in which Spotter has nodes count as open, since their prices still show
// what the demand costs on Spot: a pool does not leave Spot because it has all of it.
func (l *ledger) closed() []bool {
	closed, full, open := make([]bool, len(l.s.Markets)), []policy.MarketID(nil), false
	for _, id := range l.pool.Markets {
		m := &l.s.Markets[id]
		closed[id] = l.depthLeft(id) <= 0
		switch {
		case m.Capacity != policy.Spot || !m.Offered:
		case !closed[id]:
			open = true
		case l.held[id] > 0:
			full = append(full, id)
		}
	}
	if !open {
		for _, id := range full {
			closed[id] = false
		}
	}
	return closed
}
