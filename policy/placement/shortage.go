package placement

import (
	"cmp"
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/billing"
	"github.com/spotter-dev/spotter/policy/share"
)

// Shortages plans the launches for pending pods in pools without a provisioner. The function share
// returns the Spot share of a pool. The pods of nodes under notice in such pools count as pending,
// so that new nodes are launched before the pods are evicted. Pods that fit on existing or
// launching nodes need no launch. Pools are tried in their order; a hold reports pods that fit in
// no pool.
func Shortages(s *policy.Snapshot, share func(policy.PoolID) float64) ([]policy.Launch, []policy.Hold) {
	if !slices.ContainsFunc(s.Pools, func(p policy.Pool) bool { return p.SelfProvisioned() }) {
		return nil, nil
	}
	s = evicted(s)
	pods := pending(s)
	if len(pods) == 0 {
		return nil, nil
	}
	b := buyer{s: s, sp: FromSnapshot(s), cover: billing.CoverageOf(s), headrooms: Headrooms(s)}
	pods = b.bindExisting(pods)
	for i := range s.Pools {
		if len(pods) > 0 && s.Pools[i].SelfProvisioned() {
			pods = b.buy(policy.PoolID(i), share(policy.PoolID(i)), pods)
		}
	}
	if len(pods) == 0 {
		return b.launches, nil
	}
	return b.launches, []policy.Hold{{Pool: policy.None, Node: policy.None, Why: policy.Why{
		Reason: policy.ReasonShortage, Text: "pending pods fit in no market offered to a pool" + b.blocked,
	}}}
}

// evicted returns the snapshot as it will be when the nodes under notice in pools without a
// provisioner are being drained, including nodes that are still launching. Without such nodes it
// returns s.
func evicted(s *policy.Snapshot) *policy.Snapshot {
	if noticed, known := s.UnderNotice(); known && len(noticed) == 0 {
		return s
	}
	leaving := func(n policy.Node) bool {
		return n.ReclaimAt != 0 && n.Phase != policy.NodeGone && n.Pool >= 0 && s.Pools[n.Pool].SelfProvisioned()
	}
	if !slices.ContainsFunc(s.Nodes, leaving) {
		return s
	}
	x := *s
	x.Nodes, x.Pods = slices.Clone(s.Nodes), slices.Clone(s.Pods)
	for i := range x.Pods {
		q := &x.Pods[i]
		if q.Node >= 0 && (q.Phase == policy.PodStarting || q.Phase == policy.PodReady) && leaving(s.Nodes[q.Node]) &&
			!s.Bare(&s.Templates[q.Template]) {
			q.Phase, q.Node = policy.PodPending, policy.None
		}
	}
	for i := range x.Nodes {
		if n := &x.Nodes[i]; leaving(*n) && n.Phase < policy.NodeDraining {
			n.Phase = policy.NodeDraining // it accepts no more pods
		}
	}
	return &x
}

// pending returns the pods that need a node, the largest first.
func pending(s *policy.Snapshot) []policy.Pod {
	var pods []policy.Pod
	for p := range s.Pending() {
		if !p.Gated && p.Nominated == policy.None && !s.Templates[p.Template].DaemonSet {
			pods = append(pods, *p)
		}
	}
	LargestFirst(s, pods)
	return pods
}

// LargestFirst sorts pods by CPU request, then memory request, both descending, then by ID.
func LargestFirst(s *policy.Snapshot, pods []policy.Pod) {
	slices.SortFunc(pods, func(a, b policy.Pod) int {
		x, y := &s.Templates[a.Template].Requests, &s.Templates[b.Template].Requests
		return cmp.Or(cmp.Compare(y.CPU, x.CPU), cmp.Compare(y.Memory, x.Memory), cmp.Compare(a.ID, b.ID))
	})
}

// Awaited returns the nodes of a pool that satisfy empty and on which pending pods fit, one node
// per pod, because the scheduler is about to bind the pods there. Pods of nodes under notice count
// as pending, as in Shortages.
func Awaited(s *policy.Snapshot, pool policy.PoolID, empty func(policy.NodeID) bool) []policy.NodeID {
	s = evicted(s)
	pods := pending(s)
	if len(pods) == 0 {
		return nil
	}
	var nodes []policy.NodeID
	sp := FromSnapshot(s)
	for i := range pods {
		for k := range s.Nodes {
			n := &s.Nodes[k]
			if n.Pool == pool && empty(n.ID) && n.Usable() && sp.Check(&pods[i], n.ID) == OK {
				sp.Bind(&pods[i], n.ID)
				nodes = append(nodes, n.ID)
				break
			}
		}
	}
	return nodes
}

// A buyer plans launches for pending pods.
type buyer struct {
	s  *policy.Snapshot
	sp *Space

	// cover includes existing and planned nodes.
	cover     *billing.Coverage
	headrooms []Headroom // by pool
	launches  []policy.Launch

	// blocked describes the limit that prevented a launch in a market in which pods fit; empty
	// without one.
	blocked string
}

// bindExisting binds pods to existing or launching nodes that they fit on, and returns the others.
// For templates without topology constraints, a node that was too full for one pod is not checked
// for the next, since free capacity only shrinks.
func (b *buyer) bindExisting(pods []policy.Pod) []policy.Pod {
	from := make([]policy.NodeID, len(b.s.Templates))
	left := pods[:0]
	for i := range pods {
		p := &pods[i]
		t := &b.s.Templates[p.Template]
		plain := len(t.Spread) == 0 && len(t.PodAffinity) == 0
		at := policy.NodeID(0)
		if plain {
			at = from[p.Template]
		}
		for int(at) < len(b.s.Nodes) && b.sp.CheckExpected(p, at) != OK {
			at++
		}
		if plain {
			from[p.Template] = at
		}
		if int(at) == len(b.s.Nodes) {
			left = append(left, *p)
			continue
		}
		b.sp.Bind(p, at)
	}
	return left
}

// buy plans nodes of pool for pods and returns the pods that do not fit. It packs on Spot. Nodes
// beyond the share, and pods that fit no Spot market, are launched on demand if that is allowed.
func (b *buyer) buy(pool policy.PoolID, share float64, pods []policy.Pod) []policy.Pod {
	p := &b.s.Pools[pool]
	headroom := &b.headrooms[pool]
	spot, fixed := Offers(b.s, pool, policy.Spot), offersUnder(b.s, b.cover, pool, policy.OnDemand)
	at := BalanceOf(b.s, pool)
	rest := pods
	if share > 0 && len(spot) > 0 {
		packing := Pack(b.sp, pods, spot)
		bins := packing.Bins
		rest = pick(pods, packing.Unplaced)
		quality := packing.Quality(b.sp, pods, spot)
		for i := range bins {
			l, size, ok := b.order(pool, headroom, bins[i], spot)
			inBin := pick(pods, bins[i].Pods)
			beyond := float64(at.Spot+size)-float64(share*float64(at.Total+size)) > float64(size)/2
			at.Total += size // an on-demand node would have a similar size
			if !ok || beyond && len(fixed) > 0 {
				rest = append(rest, inBin...)
				continue
			}
			at.Spot += size
			l.Why.Text += "; " + quality
			b.add(headroom, l)
		}
	}
	if len(rest) == 0 || len(fixed) == 0 || share == 1 && !p.OnDemandFallback {
		return rest
	}
	return b.buyFixed(pool, headroom, rest, fixed)
}

// repricesMax is the maximum number of times that on-demand nodes are packed again because
// commitments were used up.
const repricesMax = 8

// buyFixed plans on-demand nodes for pods and returns the pods that do not fit. The price of an
// offer applies to one node: if earlier nodes use up commitments, the rest is packed again at the
// new prices.
func (b *buyer) buyFixed(pool policy.PoolID, headroom *Headroom, pods []policy.Pod,
	offers []Offer) (left []policy.Pod) {
	for round := 0; len(pods) > 0; round++ {
		if round > 0 {
			offers = offersUnder(b.s, b.cover, pool, policy.OnDemand)
		}
		packing := Pack(b.sp, pods, offers)
		bins := packing.Bins
		left = append(left, pick(pods, packing.Unplaced)...)
		quality := packing.Quality(b.sp, pods, offers)
		var again []policy.Pod
		for i := range bins {
			first := &offers[bins[i].Offers[0]]
			if round < repricesMax && offered(b.cover, b.s, pool, first.Market) > first.Price {
				again = append(again, pick(pods, bins[i].Pods)...)
				continue
			}
			l, _, ok := b.order(pool, headroom, bins[i], offers)
			if !ok {
				left = append(left, pick(pods, bins[i].Pods)...)
				continue
			}
			l.Why.Text += "; " + quality
			b.add(headroom, l)
		}
		pods = again
	}
	return left
}

// pick returns the pods at the given indices.
func pick(pods []policy.Pod, index []int) []policy.Pod {
	picked := make([]policy.Pod, len(index))
	for i, k := range index {
		picked[i] = pods[k]
	}
	return picked
}

// order returns the launch for bin and its size in units of the share. It returns false if limits
// or quotas allow no market of bin.
func (b *buyer) order(pool policy.PoolID, headroom *Headroom, bin Bin, offers []Offer) (policy.Launch, int64, bool) {
	l := policy.Launch{Pool: pool, Replaces: policy.None}
	for _, i := range bin.Offers {
		if m := offers[i].Market; len(l.Markets) < MarketsMax && headroom.Has(m) {
			l.Markets = append(l.Markets, m)
		}
	}
	if len(l.Markets) == 0 {
		if len(bin.Offers) > 0 && b.blocked == "" {
			b.blocked = ": " + headroom.blocks(offers[bin.Offers[0]].Market) + " is reached in pool " + b.s.Pools[pool].Name
		}
		return l, 0, false
	}
	cheapest := &b.s.Markets[l.Markets[0]]
	l.Bid = BidIn(cheapest)
	l.Why = policy.Why{Reason: policy.ReasonShortage, Text: "pending pods fit on no existing or launching node",
		After: Added(b.cover, b.s, pool, l.Markets[0])}
	if len(l.Markets) > 1 {
		l.Why.RunnerUp = b.s.Markets[l.Markets[1]].Name
	}
	l.Markets = Named(b.s, b.cover, l.Markets)
	return l, share.Units(b.s, pool, l.Markets[0]), true
}

// add plans the launch l.
func (b *buyer) add(headroom *Headroom, l policy.Launch) {
	headroom.Take(l.Markets)
	b.cover.Add(l.Markets[0], 1)
	l.Token = policy.Token(b.s.Now, b.s.Pools[l.Pool].Name, b.s.Markets[l.Markets[0]].Name, len(b.launches))
	b.launches = append(b.launches, l)
}
