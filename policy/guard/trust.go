package guard

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// A trust decides which markets may be bought voluntarily.
type trust struct {
	s             *policy.Snapshot
	confidenceMin float64
}

// buysUntrusted reports whether d makes a provisioner buy Spot to replace an on-demand node
// although no Spot market of the pool is trusted.
func (t *trust) buysUntrusted(d *policy.Drain, n *policy.Node, l *leavingNode) bool {
	if l.replaced || l.pods == 0 || n.Market == policy.None || t.s.Markets[n.Market].Capacity == policy.Spot {
		return false
	}
	if d.Why.Reason != policy.ReasonShare && d.Why.Reason != policy.ReasonCheaper {
		return false
	}
	pool := &t.s.Pools[n.Pool]
	return pool.Provisioner != policy.ProvisionerNone && len(d.After) == 0 && !t.spotTrusted(pool.Markets)
}

// steers allows steers within the pool's range whose Spot markets are trusted, if they raise the
// Spot share.
func (r *review) steers(steers []policy.Steer) {
	r.plan.Steers = make([]policy.Steer, 0, len(steers))
	for _, st := range steers {
		if r.stale != "" {
			r.hold(st.Pool, policy.None, &st.Why, policy.ReasonStale, r.stale)
			continue
		}
		pool := &r.s.Pools[st.Pool]
		if share := min(max(st.Share, pool.Share.Min), pool.Share.Max); share != st.Share {
			r.hold(st.Pool, policy.None, &st.Why, policy.ReasonGuardrail, "Spot share: cut to the pool's range")
			st.Share = share
			if pool.Steer.Follows(&st) {
				continue
			}
		}
		markets := st.Markets
		if markets == nil {
			markets = pool.Markets
		}
		if st.Share > pool.Steer.Share && !r.trust.spotTrusted(markets) {
			r.hold(st.Pool, policy.None, &st.Why, policy.ReasonGuardrail,
				"low confidence: no forecast for its Spot markets is reliable")
			continue
		}
		if change := r.s.SteerChange(&st); !pool.Approves(change) {
			r.hold(st.Pool, policy.None, &st.Why, policy.ReasonApproval, policy.Proposal+change)
			continue
		}
		r.plan.Steers = append(r.plan.Steers, st)
	}
}

// distrusted reports whether l is voluntary and none of its markets is trusted.
func (t *trust) distrusted(l *policy.Launch) bool {
	return t.byChoice(l) && !slices.ContainsFunc(l.Markets, t.isTrusted)
}

// byChoice reports whether l is voluntary: it serves neither pending pods nor a node under notice.
func (t *trust) byChoice(l *policy.Launch) bool {
	if l.Why.Reason == policy.ReasonShortage || l.Why.Reason == policy.ReasonNotice {
		return false
	}
	return l.Replaces == policy.None || t.s.Nodes[l.Replaces].ReclaimAt == 0
}

// trusted returns the markets of l without those that are not trusted. The markets of a launch that
// is not voluntary are all kept.
func (t *trust) trusted(l *policy.Launch) []policy.MarketID {
	distrusted := func(m policy.MarketID) bool { return !t.isTrusted(m) }
	if !t.byChoice(l) || !slices.ContainsFunc(l.Markets, distrusted) {
		return l.Markets
	}
	return slices.DeleteFunc(slices.Clone(l.Markets), distrusted)
}

// spotTrusted reports whether one of the offered Spot markets is trusted, or no Spot market is
// offered.
func (t *trust) spotTrusted(markets []policy.MarketID) bool {
	offered := false
	for _, m := range markets {
		if x := &t.s.Markets[m]; x.Capacity == policy.Spot && x.Offered {
			if t.isTrusted(m) {
				return true
			}
			offered = true
		}
	}
	return !offered
}

// isTrusted reports whether m may be bought voluntarily.
func (t *trust) isTrusted(m policy.MarketID) bool {
	return t.s.Markets[m].Trusted(t.confidenceMin)
}
