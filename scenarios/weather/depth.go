package weather

import (
	"fmt"
	"sort"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/chance"
)

// DepthMax is the number of nodes up to which a [Law] models depth. The recording of depth
// requested this number at once.
const DepthMax = 16

// A Step states that a market can hold Nodes nodes from From until its next step.
type Step struct {
	From  policy.Time
	Nodes int32
}

// Depth returns the number of nodes that market m can hold at t: 0 while it is closed, or else its
// depth, at most [Weather.Slots]. Running nodes count: a launch is refused if the market already
// has that number of nodes.
func (w *Weather) Depth(m int, t policy.Time) int {
	mk := &w.markets[m]
	if mk.closedFrom < mk.closedUntil && !w.Open(m, t) {
		return 0
	}
	if mk.stepsFrom == mk.stepsUntil {
		return int(mk.slots)
	}
	steps := w.steps[mk.stepsFrom:mk.stepsUntil]
	i := sort.Search(len(steps), func(i int) bool { return steps[i].From > t })
	if i == 0 {
		return int(mk.slots)
	}
	return int(min(steps[i-1].Nodes, mk.slots))
}

// Steps returns the changes of depth of market m, ascending by From; it is empty if the depth
// always equals the slots. Intervals in which the market is closed are not included. The result is
// shared and must not be modified.
func (w *Weather) Steps(m int) []Step {
	mk := &w.markets[m]
	return w.steps[mk.stepsFrom:mk.stepsUntil:mk.stepsUntil]
}

// deepen draws the depth of a Spot market over time and sets its number of slots. A scenario that
// sets the slots of all markets also sets their depth, except where a depth was recorded.
func (b *builder) deepen(mk *market, m *Market) {
	w := b.w
	mk.stepsFrom = int32(len(w.steps))
	switch {
	case m.Auction:
	case m.Available != nil && m.Available.Nodes != nil:
		w.steps = b.recordedDepth(mk, m.Available, w.steps)
	case m.GPU && w.cfg.Slots == 0 && b.intensity > 0 && b.p.Scarce.Width > 0:
		w.steps = b.modelledDepth(mk, m, w.steps)
	}
	truth := &w.cfg.Truth
	mk.slots = truth.slots(mk.slots)
	for i := range w.steps[mk.stepsFrom:] {
		s := &w.steps[int(mk.stepsFrom)+i]
		s.Nodes = truth.slots(s.Nodes)
	}
	mk.stepsUntil = int32(len(w.steps))
}

// recordedDepth appends the steps of a recorded depth. The time of each step is drawn between the
// probes that enclose it. If the depth falls to 0 or rises from 0, it is the time at which the
// market closes or opens. Only a fall to 0 is a shortage and takes nodes: see the documentation of
// the market model, "Depth".
func (b *builder) recordedDepth(mk *market, a *Availability, steps []Step) []Step {
	k := b.recorded.At1(mk.hash)
	if b.w.cfg.Slots == 0 {
		mk.slots = a.most()
	}
	last := int32(-1)
	for i, nodes := range a.Nodes {
		if nodes == last {
			continue
		}
		from := policy.Time(0)
		if i > 0 {
			from = a.between(k, i)
		}
		steps = append(steps, Step{from, nodes})
		last = nodes
	}
	return steps
}

// modelledDepth appends the steps of the depth that the law of scarce types implies for a market;
// the depth is at least one node while the market is open. For a scarce type, the depth follows the
// slack that also closes the market. A type in a milder band, and a type with only a recorded
// availability, has the mean slack DepthCalm, and its slack never closes the market.
func (b *builder) modelledDepth(mk *market, m *Market, steps []Step) []Step {
	place := b.scarcePlace(m, 0)
	if m.Available != nil || !scarce(m, mk.band) {
		place = b.placeIn(m, typeInZone, typeInRegion, 0)
		place.Mean = b.p.DepthCalm
	}
	mk.slots = DepthMax
	first := len(steps)
	steps = b.p.Scarce.Depths(steps, place, b.w.cfg.From-scarceBefore, b.end)
	kept := steps[:first]
	for _, s := range steps[first:] {
		if s.Nodes = max(1, s.Nodes); len(kept) == first || s.Nodes != kept[len(kept)-1].Nodes {
			kept = append(kept, s)
		}
	}
	return kept
}

// scarcePlace returns the place of a market in the law of scarce types, for one of the draws of the
// law.
func (b *builder) scarcePlace(m *Market, copied uint64) Place {
	if b.w.cfg.Truth.Correlation == CorrelationZone {
		return b.placeIn(m, wholeZone, wholeRegion, copied)
	}
	return b.placeIn(m, typeInZone, typeInRegion, copied)
}

// placeIn returns the place of a market whose own and common levels are shared by its groups at
// these levels. Mean and width belong to the market itself.
func (b *builder) placeIn(m *Market, own, common level, copied uint64) Place {
	law := &b.p.Scarce
	k := b.frailty.At1(m.groupHash(typeInZone))
	return Place{
		Region: m.Region, Mean: law.Mean + float64(law.Spread*k.Normal()), Width: law.width(k.At1(drawWidth)),
		Common: b.shortage.At2(m.groupHash(common), copied), Own: b.shortage.At2(m.groupHash(own), copied),
	}
}

// drawWidth is the ordinal of the draw for the width of a place, next to the draw for its mean.
const drawWidth = 1

// width draws the slack that corresponds to DepthMax nodes in a zone.
func (l *Law) width(k chance.Key) float64 {
	return float64(l.Width * k.LogNormal(l.WidthSpread))
}

// nodes returns the depth for a slack: 0 if the slack is at most 0, DepthMax if it is at least
// width, and increasing in between.
func nodes(slack, width float64) int32 {
	switch {
	case slack <= 0:
		return 0
	case slack >= width:
		return DepthMax
	}
	return 1 + int32(float64((DepthMax-1)*slack)/width)
}

// Depths appends the depth of a place at from and every change before to. The place has an outage
// where the depth is 0. These outages equal those of [Law.Outages] with the same from.
func (l *Law) Depths(steps []Step, p Place, from, to policy.Time) []Step {
	s := l.slackAt(p, from)
	first := len(steps)
	for t := from; t < to; {
		if n := nodes(s.at(t), p.Width); len(steps) == first || n != steps[len(steps)-1].Nodes {
			steps = append(steps, Step{t, n})
		}
		level := s.next()
		t = level.Until
		level.Next()
	}
	return steps
}

// between draws the time of the change observed in sample i, which is after the previous sample.
func (a *Availability) between(k chance.Key, i int) policy.Time {
	if a.Gap == nil || a.Gap[i] == 0 {
		return a.At[i]
	}
	span := int(min(a.Gap[i], a.At[i]-a.At[i-1]))
	return a.At[i] - policy.Time(k.At2(uint64(a.At[i]), 0).IntN(span))
}

// most returns the maximum recorded depth, at least 1.
func (a *Availability) most() int32 {
	most := int32(1)
	for _, n := range a.Nodes {
		most = max(most, n)
	}
	return most
}

// checkNodes returns an error if the depths are incomplete, invalid or inconsistent with Up.
func (a *Availability) checkNodes() error {
	if a.Nodes != nil && len(a.Nodes) != len(a.At) {
		return fmt.Errorf("Available has %d instants and %d depths, must have as many of each or no depth", len(a.At),
			len(a.Nodes))
	}
	for i, n := range a.Nodes {
		if n < 0 || n > slotsMax || n > 0 != a.Up[i] {
			return fmt.Errorf("Available.Nodes[%d] is %d, must be from 0 to %d and above 0 where Up is true, as not where it is false", i, n, slotsMax)
		}
	}
	return nil
}
