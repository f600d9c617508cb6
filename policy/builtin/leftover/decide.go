package leftover

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/figures"
	"github.com/spotter-dev/spotter/policy/replan"
)

// decide chooses among the candidates of the pool.
func (b *board) decide() choice {
	c := choice{share: replan.Wanted(b.pool)}
	spot, fixed := b.ranked(policy.Spot), b.ranked(policy.OnDemand)
	good := b.passing(spot)
	reason := ReasonRanking
	chosen := []*candidate(nil)
	if c.share > 0 {
		switch {
		case len(good) > 0:
			chosen = b.pick(good)
		case b.mayFallBack():
			c.share, reason = 0, policy.ReasonFallback
		default:
			// Spot must be bought: take the markets that most likely have capacity.
			chosen = b.pick(highest(spot))
			c.holds = b.noneGood(c.holds, spot)
		}
	}
	lead := chosen
	if c.share < 1 || b.pool.OnDemandFallback {
		more := b.pick(fixed)
		if c.share == 0 {
			lead = more
		}
		chosen = append(chosen, more...)
	}
	for _, x := range chosen {
		c.markets = append(c.markets, x.id)
	}
	slices.Sort(c.markets)
	c.urgent = b.exhausted(spot)
	c.spotOnly = c.share > 0 && b.pool.OnDemandFallback && b.untried(good, chosen)
	c.holds = b.uncovered(c.holds, chosen)
	if len(lead) > 0 {
		c.why = b.account(reason, lead, spot)
	} else if len(chosen) > 0 {
		c.why = b.account(reason, chosen, spot)
	}
	return c
}

// exhausted reports whether, for some class of pods, all Spot markets that were chosen before and
// fit it refuse launches now. A pool without pods counts as one class.
func (b *board) exhausted(spot []*candidate) bool {
	for k := range max(1, len(b.classes)) {
		before, open := false, false
		for _, c := range spot {
			if c.chosen && (k == len(b.classes) || c.holds[k]) {
				before, open = true, open || !c.refused
			}
		}
		if before && !open {
			return true
		}
	}
	return false
}

// untried reports whether all pods belong to jobs, some market in good that is not chosen has not
// refused a launch, and every class of pods that fits a market in good fits one that has not
// refused. A refused launch then moves to the other markets a moment later instead of to on-demand,
// where a job would stay until it ends. A service does not wait: it can be moved back, and a new
// choice might come too late.
func (b *board) untried(good, chosen []*candidate) bool {
	more := false
	for _, c := range good {
		more = more || !c.refused && !slices.Contains(chosen, c)
	}
	for k := range b.classes {
		w := b.r.s.Templates[b.classes[k].pod.Template].Workload
		if w == policy.None || b.r.s.Workloads[w].Kind != policy.KindJob {
			return false
		}
		held, open := false, false
		for _, c := range good {
			held, open = held || c.holds[k], open || c.holds[k] && !c.refused
		}
		if held && !open {
			return false
		}
	}
	return more && len(b.classes) > 0
}

// ranked returns the candidates of a capacity type in order of preference.
func (b *board) ranked(capacity policy.CapacityType) []*candidate {
	var list []*candidate
	for i := range b.candidates {
		if c := &b.candidates[i]; b.r.s.Markets[c.id].Capacity == capacity {
			list = append(list, c)
		}
	}
	key := func(c *candidate) float64 { return b.favoured(c, c.key) }
	slices.SortFunc(list, func(x, y *candidate) int {
		return cmp.Or(first(!x.refused, !y.refused), cmp.Compare(key(x), key(y)), first(x.chosen, y.chosen),
			cmp.Compare(x.id, y.id))
	})
	return list
}

// favoured returns price, reduced by the margin if c was chosen before.
func (b *board) favoured(c *candidate, price float64) float64 {
	if c.chosen {
		return price * (1 - b.r.cfg.PriceMargin)
	}
	return price
}

// first is a comparison that orders true before false.
func first(x, y bool) int {
	switch {
	case x == y:
		return 0
	case x:
		return -1
	}
	return 1
}

// mayFallBack reports whether the whole pool may and can run on-demand.
func (b *board) mayFallBack() bool {
	return b.pool.OnDemandFallback && b.pool.Share.Min == 0 && b.fixed()
}

// fixed reports whether anything can be bought on-demand.
func (b *board) fixed() bool {
	return slices.ContainsFunc(b.candidates,
		func(c candidate) bool { return b.r.s.Markets[c.id].Capacity == policy.OnDemand })
}

// passing returns the Spot candidates whose score is high enough and, if the pool may fall back,
// that cost less than on-demand nodes.
func (b *board) passing(spot []*candidate) []*candidate {
	bound := b.mayFallBack()
	var list []*candidate
	for _, c := range spot {
		if c.good && (!bound || b.favoured(c, c.ratio) < 1) {
			list = append(list, c)
		}
	}
	return list
}

// highest returns the candidates in spot with the highest score.
func highest(spot []*candidate) []*candidate {
	best := int8(-1)
	for _, c := range spot {
		best = max(best, c.score)
	}
	return slices.DeleteFunc(slices.Clone(spot), func(c *candidate) bool { return c.score < best })
}

// pick returns the markets of list in its first few types and zones, in their order. If none of
// them fits a class of pods, the first market of list that fits it is added: the limits must not
// exclude a pod from every node.
func (b *board) pick(list []*candidate) []*candidate {
	var types []policy.TypeID
	var zones []policy.ZoneID
	for _, c := range list {
		m := &b.r.s.Markets[c.id]
		knownType, knownZone := slices.Contains(types, m.Type), slices.Contains(zones, m.Zone)
		if !knownType && len(types) == b.typesMax || !knownZone && len(zones) == b.zonesMax {
			continue
		}
		if !knownType {
			types = append(types, m.Type)
		}
		if !knownZone {
			zones = append(zones, m.Zone)
		}
	}
	var picked []*candidate
	for _, c := range list {
		m := &b.r.s.Markets[c.id]
		if slices.Contains(types, m.Type) && slices.Contains(zones, m.Zone) {
			picked = append(picked, c)
		}
	}
	for k := range b.classes {
		holds := func(c *candidate) bool { return c.holds[k] }
		if slices.ContainsFunc(picked, holds) {
			continue
		}
		if i := slices.IndexFunc(list, holds); i >= 0 {
			picked = append(picked, list[i])
		}
	}
	return picked
}

// noneGood appends a hold that reports that no Spot market is good enough although Spot is
// required.
func (b *board) noneGood(holds []policy.Hold, spot []*candidate) []policy.Hold {
	if len(spot) == 0 {
		return append(holds, b.hold(policy.ReasonInfeasible, "no Spot market offered to the pool fits its pods"))
	}
	text := fmt.Sprintf("no Spot market reaches placement score %d and the pool may not use on-demand, so the highest score is used", b.scoreMin)
	return append(holds, b.hold(policy.ReasonRisk, text))
}

// uncovered appends a hold for each class of pods that fits no chosen market.
func (b *board) uncovered(holds []policy.Hold, chosen []*candidate) []policy.Hold {
	for k := range b.classes {
		x := &b.classes[k]
		taken := slices.ContainsFunc(chosen, func(c *candidate) bool { return c.holds[k] })
		if taken || x.base == 0 && x.pending {
			continue // a pending pod that fits no market here may belong to another pool
		}
		name := b.r.s.Templates[x.pod.Template].Name
		holds = append(holds, b.hold(policy.ReasonInfeasible, "no eligible market fits the pods of "+name))
	}
	return holds
}

func (b *board) hold(reason policy.Reason, text string) policy.Hold {
	return policy.Hold{Pool: b.pool.ID, Node: policy.None, Why: policy.Why{Reason: reason, Text: text}}
}

// account explains why the markets of lead are chosen. It states the cost of the pool's pods in the
// first of them, and as the cost before, their cost in the cheapest market chosen before, or else
// on-demand.
func (b *board) account(reason policy.Reason, lead, spot []*candidate) policy.Why {
	s, c := b.r.s, lead[0]
	m := &s.Markets[c.id]
	w := policy.Why{Reason: reason, After: policy.Dollars(c.cost), Before: policy.Dollars(b.before(c.cost))}
	for _, x := range lead[1:] {
		if w.RunnerUp == "" && s.Markets[x.id].Capacity == m.Capacity {
			w.RunnerUp = s.Markets[x.id].Name
		}
	}
	types, zones := b.spans(lead)
	w.Text = fmt.Sprintf("%s in %s at %s an hour ranks first among %s in %s",
		s.Types[m.Type].Name, s.Zones[m.Zone], m.Charge().Short(), figures.Count(types, "type"), figures.Count(zones, "zone"))
	if b.fixed() {
		w.Text += fmt.Sprintf(", at %s of the cheapest on-demand price", figures.Share(c.ratio, 0))
	}
	switch {
	case reason == policy.ReasonFallback:
		w.Text = fmt.Sprintf("no Spot market cheaper than on-demand reaches placement score %d; %s at %s an hour ranks first on demand",
			b.scoreMin, s.Types[m.Type].Name, m.Charge().Short())
		if len(spot) > 0 {
			w.RunnerUp = s.Markets[spot[0].id].Name
		}
	case m.Capacity != policy.Spot:
	case c.score < 0:
		w.Text += ", placement score unknown"
	default:
		w.Text += fmt.Sprintf(", placement score %d (required: %d)", c.score, b.scoreMin)
	}
	if age := s.Now.Sub(m.PricedAt); m.Capacity == policy.Spot && m.PricedAt != 0 && age > unchangedMax {
		w.Text += fmt.Sprintf("; its price is %s old", figures.Count(int64(age/time.Hour), "hour"))
	}
	return w
}

// before returns the hourly cost of the pool's pods in the cheapest market that was chosen before,
// or else in the cheapest on-demand market, in dollars. Without either it returns after.
func (b *board) before(after float64) float64 {
	known := slices.ContainsFunc(b.candidates, func(c candidate) bool { return c.chosen })
	best := -1.0
	for i := range b.candidates {
		c := &b.candidates[i]
		if known && !c.chosen || !known && b.r.s.Markets[c.id].Capacity != policy.OnDemand {
			continue
		}
		if best < 0 || c.cost < best {
			best = c.cost
		}
	}
	if best < 0 {
		return after
	}
	return best
}

// spans returns the number of types and of zones in list.
func (b *board) spans(list []*candidate) (types, zones int) {
	var t []policy.TypeID
	var z []policy.ZoneID
	for _, c := range list {
		m := &b.r.s.Markets[c.id]
		t, z = append(t, m.Type), append(z, m.Zone)
	}
	slices.Sort(t)
	slices.Sort(z)
	return len(slices.Compact(t)), len(slices.Compact(z))
}
