package sim

import (
	"fmt"
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/billing"
	"github.com/spotter-dev/spotter/policy/place"
	"github.com/spotter-dev/spotter/sim/karpenter"
)

// A lived is one node's bill, kept so that the money can be counted again.
type lived struct {
	market   policy.MarketID
	from, to policy.Time
	bid      policy.Money // 0 where there is no auction
	amount   policy.Money
	born     int // its place in the order of launches
}

// podCounts are pods of one workload: those that serve, those that the cluster
// takes for ready, those that are not on their way out, and of these those that do not
// serve.
type podCounts struct{ ready, seen, active, waiting int32 }

// A recount is what the checkers count in. They run after every event, and so
// use it again.
type recount struct {
	on     []policy.NodeID // by pod, one more than the id of its node, 0 for none
	counts []podCounts     // by workload
}

// check holds the invariants of the simulated cluster. It counts everything
// again in the plain way, and shares nothing with the code it checks.
func (r *run) check() error {
	if err := r.checkPods(); err != nil {
		return err
	}
	if err := r.checkGroups(); err != nil {
		return err
	}
	if err := r.checkGangs(); err != nil {
		return err
	}
	if err := r.checkOffers(); err != nil {
		return err
	}
	if err := r.checkPrices(); err != nil {
		return err
	}
	return r.checkNodes()
}

// checkPrices holds that no node is bought for more than its pool may pay.
func (r *run) checkPrices() error {
	for _, id := range r.inflight {
		n := &r.nodes[id]
		most := r.world.Pools[n.Pool].PriceMax
		if price := r.stage.curves[n.Market].At(r.q.now); n.Launched == r.q.now && most > 0 && (price > most || n.Bid > most) {
			return fmt.Errorf("node %s was bought for %v with a bid of %v, and its pool pays %v at most", n.Name, price, n.Bid, most)
		}
	}
	return nil
}

// checkOffers holds that the offers kept for Karpenter's replacements are those of now.
func (r *run) checkOffers() error {
	k := &r.kar
	if r.q.now >= k.offersUntil {
		return nil
	}
	now := r.replacements(nil)
	same := func(a, b place.Offer) bool { return a.Market == b.Market && a.Price == b.Price && a.Pool == b.Pool }
	if !slices.EqualFunc(k.offers, now, same) {
		return fmt.Errorf("%d offers are kept for replacements, which are %d others now", len(k.offers), len(now))
	}
	return nil
}

// checkCandidates holds that the candidates for disruption that are kept from look to look
// are those that a look without memory finds.
func (r *run) checkCandidates(c *karpenter.Cluster) {
	whole, fresh := *c, karpenter.Disruptor{}
	whole.Tracked = false
	for _, m := range [...]karpenter.Method{karpenter.Emptiness, karpenter.SingleNode} {
		kept, want := r.kar.disruptor.Candidates(c, m), fresh.Candidates(&whole, m)
		if !slices.Equal(kept, want) && r.failure == nil {
			r.failure = fmt.Errorf("%v are kept as candidates for disruption, which are %v", kept, want)
		}
	}
}

// checkGroups holds that Auto Scaling groups count what they have, and have no
// more than they are to hold.
func (r *run) checkGroups() error {
	if r.auto == nil {
		return nil
	}
	live := make([]int, len(r.auto.groups))
	for i := range r.nodes {
		n := &r.nodes[i]
		if n.Phase == policy.NodeGone || r.nodeX[i].billed || r.world.Pools[n.Pool].Provisioner != policy.ProvisionerClusterAutoscaler {
			continue
		}
		for g := range r.auto.groups {
			if x := &r.auto.groups[g]; x.pool == n.Pool && slices.Contains(x.markets, n.Market) {
				live[g]++
			}
		}
	}
	for g := range live {
		x := &r.auto.groups[g]
		if x.live != live[g] || x.live > x.desired || x.desired < r.world.Groups.Min {
			return fmt.Errorf("group %d of pool %s counts %d instances of %d, there are %d", g, r.pools[x.pool].Name, x.live, x.desired, live[g])
		}
	}
	return nil
}

// checkPods holds that every pod is on one node at most, that workloads own
// what they count, and that ready pods are counted.
func (r *run) checkPods() error {
	r.checked.on = append(r.checked.on[:0], make([]policy.NodeID, len(r.pods))...)
	on := r.checked.on
	for i := range r.nodes {
		if r.nodes[i].Phase == policy.NodeGone {
			continue
		}
		for _, p := range r.space.Pods(policy.NodeID(i)) {
			if on[p] != 0 {
				return fmt.Errorf("pod %s is on two nodes, %s and %s", r.pods[p].Name, r.nodes[on[p]-1].Name, r.nodes[i].Name)
			}
			on[p] = policy.NodeID(i) + 1
		}
	}
	r.checked.counts = append(r.checked.counts[:0], make([]podCounts, len(r.work))...)
	counts := r.checked.counts
	for i := range r.pods {
		p := &r.pods[i]
		n, bound := on[i]-1, on[i] != 0
		if p.Phase == policy.PodGone {
			if bound {
				return fmt.Errorf("a pod that is gone holds a place on %s", r.nodes[n].Name)
			}
			continue
		}
		if bound != (p.Node != policy.None) || bound && n != p.Node {
			return fmt.Errorf("pod %s says that it is on node %d, the space that it is on %d (%v)", p.Name, p.Node, n, bound)
		}
		c := &counts[r.world.Templates[p.Template].Workload]
		if p.Phase == policy.PodReady {
			c.seen++
			if !r.podX[i].lost {
				c.ready++
			}
		}
		if p.Phase != policy.PodTerminating {
			c.active++
			if p.Phase != policy.PodReady || r.podX[i].lost {
				c.waiting++
			}
		}
	}
	for i := range r.work {
		if err := r.checkMissing(policy.WorkloadID(i), counts[i].waiting); err != nil {
			return err
		}
		if own := (podCounts{r.gauges[i].ready, r.gauges[i].seen, r.work[i].active, counts[i].waiting}); own != counts[i] {
			return fmt.Errorf("workload %s counts %d ready, %d seen as ready and %d active pods, there are %d, %d and %d",
				r.world.Workloads[i].Name, own.ready, own.seen, own.active, counts[i].ready, counts[i].seen, counts[i].active)
		}
	}
	return nil
}

// checkMissing holds that a service misses, over all causes, its pods that do not serve
// and those that are to be made in the place of others, and never more than it wants.
func (r *run) checkMissing(w policy.WorkloadID, waiting int32) error {
	if !r.serves(w) {
		return nil
	}
	missing, owed := int32(0), int32(0)
	for c := range OutageCauses {
		if r.gauges[w].missing[c] < 0 || r.work[w].owed[c] < 0 {
			return fmt.Errorf("workload %s misses %d pods by %v and owes %d", r.world.Workloads[w].Name, r.gauges[w].missing[c], OutageCause(c), r.work[w].owed[c])
		}
		missing += r.gauges[w].missing[c]
		owed += r.work[w].owed[c]
	}
	if missing != waiting+owed || owed > 0 && r.work[w].active+owed > r.gauges[w].wanted {
		return fmt.Errorf("workload %s misses %d pods; %d do not serve, %d are to be replaced, %d of %d are there",
			r.world.Workloads[w].Name, missing, waiting, owed, r.work[w].active, r.gauges[w].wanted)
	}
	return nil
}

// checkNodes holds that no node is over its allocatable, and that no pod is
// left on a node that was given back.
func (r *run) checkNodes() error {
	for i := range r.nodes {
		n := &r.nodes[i]
		if n.Phase == policy.NodeGone {
			continue
		}
		var sum policy.Resources
		for _, p := range r.space.Pods(n.ID) {
			sum = sum.Plus(r.world.Templates[r.pods[p].Template].Requests)
			if r.nodeX[i].billed && r.pods[p].Phase == policy.PodReady && !r.podX[p].lost {
				return fmt.Errorf("pod %s is ready on node %s, which was taken", r.pods[p].Name, n.Name)
			}
		}
		if !sum.Within(n.Allocatable) {
			return fmt.Errorf("node %s holds %+v of %+v", n.Name, sum, n.Allocatable)
		}
	}
	return nil
}

// checkEviction holds that evicting a ready pod leaves its budget kept.
func (r *run) checkEviction(id policy.PodID) {
	for _, b := range r.world.Templates[r.pods[id].Template].PDBs {
		healthy, expected := int32(0), int32(0)
		for i := range r.pods {
			t := &r.world.Templates[r.pods[i].Template]
			for _, x := range t.PDBs {
				if x == b && r.pods[i].Phase == policy.PodReady {
					healthy++
				}
			}
		}
		for _, w := range r.pdbOf[b] {
			expected += r.expected(w)
		}
		if need := r.world.PDBs[b].Required(expected); healthy-1 < need && r.failure == nil {
			r.failure = fmt.Errorf("evicting %s leaves %d healthy pods of %d that budget %s requires",
				r.pods[id].Name, healthy-1, need, r.world.PDBs[b].Name)
		}
	}
}

// checkMoney counts the bill again, millisecond by price segment, and holds
// that it is the same to the micro-dollar.
func (r *run) checkMoney() error {
	var sum policy.Money
	committed := r.recountCommitted()
	for _, l := range r.lives {
		if r.metered(l.market) {
			if want := committed[l.born]; l.amount != want {
				return fmt.Errorf("a node in %s from %v to %v was billed %v under commitments, it is %v", r.world.Markets[l.market].Name, l.from, l.to, l.amount, want)
			}
			sum += l.amount
			continue
		}
		life := billing.Span{From: l.from, To: max(l.to, l.from.Add(billing.MinimumBilled))}.Clip(r.window)
		c, reserve := &r.stage.prices[l.market], r.world.Markets[l.market].Reserve
		total, price := int64(0), policy.NoPrice
		for k := range c.At {
			if c.Price[k] != policy.NoPrice {
				price = c.Price[k]
				break
			}
		}
		for k := range c.At {
			if c.Price[k] != policy.NoPrice {
				price = c.Price[k]
			}
			from, to := c.At[k], life.To
			if k == 0 {
				from = min(from, life.From)
			}
			if k+1 < len(c.At) {
				to = min(to, c.At[k+1])
			}
			if from = max(from, life.From); to > from {
				charge := max(price, reserve)
				if l.bid > 0 {
					charge = min(charge, l.bid)
				}
				total += int64(charge) * int64(to-from)
			}
		}
		if amount := policy.Money((total + 1_800_000) / 3_600_000); amount != l.amount {
			return fmt.Errorf("a node in %s from %v to %v was billed %v, it is %v", r.world.Markets[l.market].Name, l.from, l.to, l.amount, amount)
		}
		sum += l.amount
	}
	if sum != r.result.Bill || r.result.SpotBill+r.result.OnDemandBill != sum {
		return fmt.Errorf("the bill is %v, its nodes sum to %v (spot %v, on-demand %v)", r.result.Bill, sum, r.result.SpotBill, r.result.OnDemandBill)
	}
	return nil
}
