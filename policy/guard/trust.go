package guard

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// buysUntrusted reports whether d makes a provisioner buy spot in place of an
// on-demand node although no spot market of the pool can be trusted.
func (r *review) buysUntrusted(d *policy.Drain, n *policy.Node, l *leavingNode) bool {
	if l.replaced || l.pods == 0 || n.Market == policy.None || r.s.Markets[n.Market].Capacity == policy.Spot {
		return false
	}
	if d.Why.Reason != policy.ReasonShare && d.Why.Reason != policy.ReasonCheaper {
		return false
	}
	pool := &r.s.Pools[n.Pool]
	return pool.Provisioner != policy.ProvisionerNone && len(d.After) == 0 && !r.spotTrusted(pool.Markets)
}

// steers lets through what stays within the pool's range and, where it buys
// more spot than before, rests on a forecast that can be trusted.
func (r *review) steers(steers []policy.Steer) {
	r.plan.Steers = make([]policy.Steer, 0, len(steers))
	for _, st := range steers {
		pool := &r.s.Pools[st.Pool]
		if share := min(max(st.Share, pool.Share.Min), pool.Share.Max); share != st.Share {
			r.hold(st.Pool, policy.None, &st.Why, policy.ReasonGuardrail, "spot share: cut to the pool's range")
			st.Share = share
			if pool.Steer.Set && pool.Steer.Share == share {
				continue
			}
		}
		markets := st.Markets
		if markets == nil {
			markets = pool.Markets
		}
		if st.Share > pool.Steer.Share && !r.spotTrusted(markets) {
			r.hold(st.Pool, policy.None, &st.Why, policy.ReasonGuardrail, "low confidence: no forecast of its spot markets can be trusted")
			continue
		}
		r.plan.Steers = append(r.plan.Steers, st)
	}
}

// distrusted reports whether l buys spot by choice and none of its markets can
// be trusted.
func (r *review) distrusted(l *policy.Launch) bool {
	return r.byChoice(l) && !slices.ContainsFunc(l.Markets, r.isTrusted)
}

// byChoice reports whether l serves neither pending pods nor a node under notice.
func (r *review) byChoice(l *policy.Launch) bool {
	if l.Why.Reason == policy.ReasonShortage || l.Why.Reason == policy.ReasonNotice {
		return false
	}
	return l.Replaces == policy.None || r.s.Nodes[l.Replaces].ReclaimAt == 0
}

// trusted returns the markets of l without those that cannot be trusted.
func (r *review) trusted(l *policy.Launch) []policy.MarketID {
	distrusted := func(m policy.MarketID) bool { return !r.isTrusted(m) }
	if !r.byChoice(l) || !slices.ContainsFunc(l.Markets, distrusted) {
		return l.Markets
	}
	return slices.DeleteFunc(slices.Clone(l.Markets), distrusted)
}

// spotTrusted reports whether one of the spot markets that are offered can be
// trusted, or none is offered.
func (r *review) spotTrusted(markets []policy.MarketID) bool {
	offered := false
	for _, m := range markets {
		if x := &r.s.Markets[m]; x.Capacity == policy.Spot && x.Offered {
			if r.isTrusted(m) {
				return true
			}
			offered = true
		}
	}
	return !offered
}

// isTrusted reports whether m may be bought by choice.
func (r *review) isTrusted(m policy.MarketID) bool {
	return r.s.Markets[m].Trusted(r.cfg.ConfidenceMin)
}
