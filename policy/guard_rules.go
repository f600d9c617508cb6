package policy

// verdict returns why the drain d is held, and "" when it may go ahead. The
// rules stand in the order in which they are told: first what is a fact about
// the node, then what may have changed by the next step.
func (r *review) verdict(d *Drain, l *leavingNode) (Reason, string) {
	n := &r.s.Nodes[d.Node]
	switch {
	case n.Phase == NodeGone || n.Phase >= NodeDraining:
		return ReasonInProgress, "in progress: the node is already going away"
	case n.ActedBy != ActorNone && n.ActedBy != ActorUs:
		return ReasonInProgress, "in progress: another controller is emptying the node"
	case n.ReclaimAt != 0:
		return "", ""
	case n.Pool == None:
		return ReasonGuardrail, "scope: the node belongs to no pool"
	}
	p := &r.pools[n.Pool]
	p.asked = true
	if n.ActedBy == ActorUs {
		return ReasonInProgress, "in progress: the node's drain is already ordered"
	}
	if reason, text := r.tooSoon(d, n); reason != "" {
		return reason, text
	}
	if text := r.disturbs(d, l, n); text != "" {
		return ReasonGuardrail, text
	}
	if text := r.tooFar(d, n, l); text != "" {
		return ReasonGuardrail, text
	}
	if text := r.crowds(d, l, n); text != "" {
		return ReasonGuardrail, text
	}
	return "", ""
}

// tooSoon holds what was moved or tried a short while ago. The provider's
// recommendation to leave is not ours to delay.
func (r *review) tooSoon(d *Drain, n *Node) (Reason, string) {
	pool := &r.s.Pools[n.Pool]
	m := r.before.Pool(pool.Name)
	if m.BackedOff(n.Name, r.s.Now) {
		return ReasonCooldown, "back-off: the node's last drain did not end"
	}
	cooldown := pool.Cooldown
	if cooldown == 0 {
		cooldown = r.cfg.Cooldown
	}
	if d.Why.Reason == ReasonRisk {
		// What leaves a market that is about to turn does not wait as long as
		// an owner may want between two changes made for money.
		cooldown = min(cooldown, r.cfg.Cooldown)
	}
	if d.Why.Reason != ReasonRebalance && m.Moved != 0 && r.s.Now.Sub(m.Moved) < cooldown {
		return ReasonCooldown, "cooldown: the pool was moved a short while ago"
	}
	return "", ""
}

// disturbs holds what the pods of the node forbid.
func (r *review) disturbs(d *Drain, l *leavingNode, n *Node) string {
	switch {
	case n.DoNotDisrupt:
		return "do-not-disrupt: the node is annotated"
	case n.AtGroupMin:
		return "least size: the node's group would launch another in its place"
	case l.pinned:
		return "do-not-disrupt: a pod of the node must not be evicted"
	case l.stuck:
		return "PDB slack: a disruption budget allows no eviction"
	case l.refused && !l.replaced:
		return "low confidence: its replacement is held"
	case l.critical && l.pods > 0 && len(d.After) == 0:
		return "critical workload: it moves only after its replacement is ready"
	}
	return ""
}

// crowds holds what leaves too little room for the pods that have to go
// elsewhere, with what was let through before counted as done.
func (r *review) crowds(d *Drain, l *leavingNode, n *Node) string {
	if l.pods == 0 {
		return ""
	}
	p, pool := &r.pools[n.Pool], &r.s.Pools[n.Pool]
	used := utilization(p.requested, p.allocatable)
	if !pool.Levers.Launch && pool.Provisioner != ProvisionerNone {
		// Nobody can be told to buy first here: pods that wait make the
		// provisioner buy, so they are few at a time.
		if used > r.cfg.UtilizationTight && p.ours+p.kept > 0 {
			return "high utilization: one node at a time where the provisioner alone can buy"
		}
		return ""
	}
	switch {
	case used > r.cfg.UtilizationFull && len(d.After) == 0:
		return "high utilization: the replacement must be ready first"
	case used > r.cfg.UtilizationTight && len(d.After) == 0 && !l.replaced && !r.makesDo(d, l):
		return "high utilization: the pool has no room without a replacement"
	}
	if (l.replaced || len(d.After) > 0) && !r.holdsAll(d) {
		return "replacements: less capacity comes than goes, and there is no room for the rest"
	}
	return ""
}

// makesDo reports whether the pods of d's node have room on the others, which
// then are not too full for another move. The room is theirs from now on.
func (r *review) makesDo(d *Drain, l *leavingNode) bool {
	requested, allocatable := r.room(d)
	l.settled = utilization(requested, allocatable) <= r.cfg.UtilizationFull && r.settle(l)
	return l.settled
}

// holdsAll reports whether the nodes of all pools can carry what they have to
// once d is done and what stands for it has come, or are at least no worse off
// than without it. Where a single node replaces several this tells when it no
// longer does.
func (r *review) holdsAll(d *Drain) bool {
	before, after := Resources{}, Resources{}
	for i := range r.pools {
		p := &r.pools[i]
		spare := p.allocatable.Minus(p.requested)
		before = before.Plus(spare)
		if PoolID(i) == r.s.Nodes[d.Node].Pool {
			requested, allocatable := r.room(d)
			spare = allocatable.Minus(requested)
		}
		after = after.Plus(spare)
	}
	return after.CPU >= min(0, before.CPU) && after.Memory >= min(0, before.Memory) && after.GPU >= min(0, before.GPU)
}

// tooFar holds what passes a limit of the pool or of the cluster.
func (r *review) tooFar(d *Drain, n *Node, l *leavingNode) string {
	p, pool := &r.pools[n.Pool], &r.s.Pools[n.Pool]
	left := p.underutilized
	if d.Why.Reason == ReasonEmpty && l.pods == 0 {
		left = p.empty
	}
	spot, total := r.after(d)
	switch {
	case left <= 0:
		return "drain budget: the pool's disruption budget is used up"
	case r.movesLeft <= 0:
		return "cluster fraction: enough nodes are on their way out"
	case r.wandersOff(d, n, l):
		return "low confidence: no forecast of its spot markets can be trusted"
	case total == 0 || p.total == 0:
		return ""
	}
	grain := 0.0
	if pool.Share.Exact && n.Market != None {
		grain = float64(r.s.ShareUnits(n.Pool, n.Market)) / 2 / float64(total)
	}
	return pool.Share.strays(float64(p.spot)/float64(p.total), float64(spot)/float64(total), grain)
}

// strays returns why a move from share before to share after leads out of the
// range, and "" where it does not. Whole nodes may not hit a narrow range: less
// than grain beside it counts as within, and from outside a move may end on the
// other side, if nearer to it.
func (x *ShareRange) strays(before, after, grain float64) string {
	off := func(share float64) float64 { return max(0, x.Min-share, share-x.Max) }
	switch {
	case after == before || off(after) == 0 || off(after) < max(grain, off(before)):
		return ""
	case after < before:
		return "spot share: it would fall below the pool's minimum"
	}
	return "spot share: it would rise above the pool's maximum"
}

// after returns what the pool holds on spot and in all once d is done and the
// replacements that it waits for have come.
func (r *review) after(d *Drain) (spot, total int64) {
	n := &r.s.Nodes[d.Node]
	p := &r.pools[n.Pool]
	spot, total = p.spot, p.total
	if n.Market != None {
		size := r.s.ShareUnits(n.Pool, n.Market)
		total -= size
		if r.s.Markets[n.Market].Capacity == Spot {
			spot -= size
		}
	}
	for i := range r.replacements {
		l := r.replacements[i].launch
		if len(l.Markets) == 0 || !r.replacements[i].comes(d) {
			continue
		}
		size := r.s.ShareUnits(n.Pool, l.Markets[0])
		total += size
		if r.s.Markets[l.Markets[0]].Capacity == Spot {
			spot += size
		}
	}
	return spot, total
}

// wandersOff reports whether d leaves it to a provisioner to buy spot in place
// of an on-demand node although no market of the pool can be trusted.
func (r *review) wandersOff(d *Drain, n *Node, l *leavingNode) bool {
	if l.replaced || l.pods == 0 || n.Market == None || r.s.Markets[n.Market].Capacity == Spot {
		return false
	}
	if d.Why.Reason != ReasonShare && d.Why.Reason != ReasonCheaper {
		return false
	}
	pool := &r.s.Pools[n.Pool]
	return pool.Provisioner != ProvisionerNone && len(d.After) == 0 && !r.spotTrusted(pool.Markets)
}

// steers lets through what stays within the pool's range and, where it buys
// more spot than before, rests on a forecast that can be trusted.
func (r *review) steers(steers []Steer) {
	r.plan.Steers = make([]Steer, 0, len(steers))
	for _, st := range steers {
		pool := &r.s.Pools[st.Pool]
		if share := min(max(st.Share, pool.Share.Min), pool.Share.Max); share != st.Share {
			r.hold(st.Pool, None, &st.Why, ReasonGuardrail, "spot share: cut to the pool's range")
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
			r.hold(st.Pool, None, &st.Why, ReasonGuardrail, "low confidence: no forecast of its spot markets can be trusted")
			continue
		}
		r.plan.Steers = append(r.plan.Steers, st)
	}
}

// distrusted reports whether l buys spot by choice and none of its markets can
// be trusted. What pods are waiting for, and what replaces a node under
// notice, is not bought by choice.
func (r *review) distrusted(l *Launch) bool {
	return r.byChoice(l) && !r.anyTrusted(l.Markets)
}

func (r *review) byChoice(l *Launch) bool {
	if l.Why.Reason == ReasonShortage || l.Why.Reason == ReasonNotice {
		return false
	}
	return l.Replaces == None || r.s.Nodes[l.Replaces].ReclaimAt == 0
}

// trusted returns the markets of l without those that cannot be trusted.
func (r *review) trusted(l *Launch) []MarketID {
	if !r.byChoice(l) || r.allTrusted(l.Markets) {
		return l.Markets
	}
	kept := make([]MarketID, 0, len(l.Markets))
	for _, m := range l.Markets {
		if r.isTrusted(m) {
			kept = append(kept, m)
		}
	}
	return kept
}

func (r *review) anyTrusted(markets []MarketID) bool {
	for _, m := range markets {
		if r.isTrusted(m) {
			return true
		}
	}
	return false
}

// spotTrusted reports whether a provisioner told to buy spot in markets finds
// one that can be trusted, or none that is offered.
func (r *review) spotTrusted(markets []MarketID) bool {
	offered := false
	for _, m := range markets {
		if x := &r.s.Markets[m]; x.Capacity == Spot && x.Offered {
			if r.isTrusted(m) {
				return true
			}
			offered = true
		}
	}
	return !offered
}

func (r *review) allTrusted(markets []MarketID) bool {
	for _, m := range markets {
		if !r.isTrusted(m) {
			return false
		}
	}
	return true
}

// isTrusted reports whether m may be bought by choice. Where nobody made a
// forecast no decision rests on one, and there is nothing to distrust.
func (r *review) isTrusted(m MarketID) bool {
	f := &r.s.Markets[m].Forecast
	return r.s.Markets[m].Capacity != Spot || f.Source == SourceNone || f.Confidence >= r.cfg.ConfidenceMin
}

// utilization returns the largest share of CPU, memory and GPUs that is
// requested, 0 when there is nothing to be used.
func utilization(requested, allocatable Resources) float64 {
	used := 0.0
	for _, c := range [...][2]int64{
		{requested.CPU, allocatable.CPU}, {requested.Memory, allocatable.Memory}, {requested.GPU, allocatable.GPU},
	} {
		if c[1] > 0 {
			used = max(used, float64(c[0])/float64(c[1]))
		}
	}
	return used
}
