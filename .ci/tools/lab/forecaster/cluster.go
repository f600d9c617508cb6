package forecaster

import (
	"cmp"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/portable"
	"github.com/spotter-dev/spotter/scenarios/chance"
)

// A cluster is a modelled user of a realisation's markets. In a quarter of the markets it
// never wants nodes, in a quarter it always does, and in the others it alternates between
// the two, with intervals of half a day on average. While it wants nodes it requests those
// that are missing, and after a refusal it waits before it tries again.
type cluster struct {
	w       *realisation
	wants   []want
	at      policy.Time
	markets []holding
	nodes   []policy.Node
}

// A want is what the cluster wants of one market.
type want struct {
	nodes int
	retry time.Duration

	// turns are the instants at which it alternately starts and stops wanting nodes.
	turns []policy.Time
}

// A holding is what the cluster has in one market, and met there.
type holding struct {
	held  []held
	seen  policy.Experience
	asked policy.Time // when it may ask again
}

type held struct {
	slot     int
	launched policy.Time

	// lost is when the provider takes it, beyond the realisation if never.
	lost policy.Time
}

const never = policy.Time(1 << 60)

// useMean is the mean time for which a market is used, and not used.
const useMean = 12 * time.Hour

func newCluster(w *realisation) *cluster {
	c := &cluster{w: w, wants: make([]want, len(w.markets)), markets: make([]holding, len(w.markets))}
	for i := range w.markets {
		key := chance.New(w.seed, "cluster", w.markets[i].Name)
		x := &c.wants[i]
		x.nodes = []int{1, 1, 2, 3, 6}[key.At1(1).IntN(5)]
		x.retry = []time.Duration{tick, 3 * tick, 6 * tick}[key.At1(2).IntN(3)]
		switch key.At1(3).IntN(4) {
		case 0:
		case 1:
			x.turns = []policy.Time{w.from}
		default:
			t := w.from
			for n := uint64(0); t < w.to; n++ {
				t += 1 + policy.Time(key.At2(4, n).Exp1()*float64(useMean.Milliseconds()))
				x.turns = append(x.turns, t)
			}
		}
	}
	return c
}

// wanted reports whether nodes are wanted at t.
func (x *want) wanted(t policy.Time) bool {
	i, found := slices.BinarySearch(x.turns, t)
	if found {
		i++
	}
	return i%2 == 1
}

// advance moves the cluster to t, the next tick: nodes are lost, released and bought.
func (c *cluster) advance(t policy.Time) {
	c.at = t
	for i := range c.markets {
		h, x := &c.markets[i], &c.wants[i]
		slices.SortFunc(h.held, func(a, b held) int {
			return cmp.Or(cmp.Compare(a.lost, b.lost),
				cmp.Compare(a.slot, b.slot))
		})
		for len(h.held) > 0 && h.held[0].lost <= t {
			h.meet(h.held[0].lost)
			h.seen.Reclaims++
			h.seen.Reclaimed = h.held[0].lost
			h.held = h.held[1:]
		}
		wanted := x.wanted(t)
		if len(h.held) > 0 || h.seen.At != 0 || wanted {
			h.meet(t)
		}
		if !wanted {
			h.held = nil
			continue
		}
		c.buy(i)
	}
}

// buy requests the nodes that are missing in market i.
func (c *cluster) buy(i int) {
	h, x := &c.markets[i], &c.wants[i]
	if c.at < h.asked {
		return
	}
	for len(h.held) < x.nodes {
		slot := 0
		for slices.ContainsFunc(h.held, func(n held) bool { return n.slot == slot }) {
			slot++
		}
		if slot >= c.w.weather.Slots(i) || !c.w.weather.Open(i, c.at) {
			h.seen.Refusals++
			h.seen.Refused = c.at
			h.asked = c.at.Add(x.retry)
			return
		}
		n := held{slot: slot, launched: c.at, lost: never}
		if r, ok := c.w.weather.Reclaim(i, slot, c.at); ok {
			n.lost = r.At
		}
		h.held = append(h.held, n)
		h.seen.Launches++
	}
}

// meet brings what was met up to t, as runs do it: it decays, and the nodes that
// ran meanwhile add their hours.
func (h *holding) meet(t policy.Time) {
	e := &h.seen
	if e.At == 0 {
		e.At = t
	}
	dt := t.Sub(e.At)
	if dt <= 0 {
		return
	}
	keep, hours := portable.Decay(dt, policy.ExperienceHalfLife), dt.Hours()
	e.Launches *= keep
	e.Refusals *= keep
	e.Reclaims *= keep
	e.NodeHours = float64(e.NodeHours*keep) + float64(float64(len(h.held))*hours)
	e.At = t
}

// snapshot fills s with what the cluster knows now.
func (c *cluster) snapshot(s *policy.Snapshot) {
	if s.Markets == nil {
		s.Types, s.Zones = c.w.types, c.w.zones
		s.Markets = slices.Clone(c.w.markets)
		for i := range s.Markets {
			s.Markets[i].History = make([]policy.Money, len(c.w.markets[i].History))
		}
	}
	s.Now = c.at
	c.nodes = c.nodes[:0]
	for i := range s.Markets {
		m := &s.Markets[i]
		grid := c.at - c.at%policy.Time(tick.Milliseconds())
		for k := range m.History {
			m.History[k] = c.w.price(i, grid.Add(-time.Duration(len(m.History)-1-k)*tick))
		}
		m.Price = c.w.price(i, c.at)
		m.Offered = m.Price != policy.NoPrice
		m.Experience = c.markets[i].seen
		m.Forecast = policy.Forecast{}
		for _, n := range c.markets[i].held {
			c.nodes = append(c.nodes, policy.Node{
				ID: policy.NodeID(len(c.nodes)), Market: m.ID, Phase: policy.NodeInitialized, Launched: n.launched,
			})
		}
	}
	s.Nodes = c.nodes
}
