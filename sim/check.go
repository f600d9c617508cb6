package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/billing"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/sim/karpenter"
)

// A lifetime is one node's bill, kept so that the money can be counted again.
type lifetime struct {
	market   policy.MarketID
	pool     policy.PoolID
	from, to policy.Time
	bid      policy.Money // 0 where there is no auction
	amount   policy.Money // without fees
	fees     policy.NodeFees
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

// A checker holds the invariants of a run.
type checker struct {
	*environment
	bills         *bills
	consolidation *consolidation
	gangs         *gangs
	groups        *scalingGroups
	jobs          *jobs
	nodes         *nodes
	launches      *launches
	pdbs          *disruptionBudgets
	pods          *pods
	pools         *pools
	serving       *serving
	space         *placement.Space
	workloads     *workloads

	lives   []lifetime
	checked recount
}

// check holds the invariants of the simulated cluster. It counts everything
// again in the plain way, and shares nothing with the code it checks.
func (ch *checker) check() error {
	if err := ch.checkPods(); err != nil {
		return err
	}
	if err := ch.checkGroups(); err != nil {
		return err
	}
	if err := ch.checkGangs(); err != nil {
		return err
	}
	if err := ch.checkOffers(); err != nil {
		return err
	}
	if err := ch.checkPrices(); err != nil {
		return err
	}
	if err := ch.checkPlans(); err != nil {
		return err
	}
	if err := ch.checkCredits(); err != nil {
		return err
	}
	return ch.checkNodes()
}

// checkPrices holds that no node is bought for more than its pool may pay.
func (ch *checker) checkPrices() error {
	for _, id := range ch.launches.inflight {
		n := &ch.nodes.all[id]
		most := ch.scenario.Pools[n.Pool].PriceMax
		if price := ch.prepared.prices.Charges()[n.Market].At(ch.q.Now); n.Launched == ch.q.Now && most > 0 && (price > most || n.Bid > most) {
			return fmt.Errorf("node %s was bought for %v with a bid of %v, and its pool pays %v at most", n.Name, price, n.Bid, most)
		}
	}
	return nil
}

// checkCredits holds that CPU credits are spent for what the pods on a node use.
func (ch *checker) checkCredits() error {
	var used map[policy.NodeID]int64
	for i := range ch.nodes.all {
		if id := policy.NodeID(i); ch.nodes.all[i].Phase != policy.NodeGone && ch.bills.burstable(id) != nil {
			if used == nil {
				used = ch.podUse()
			}
			if got := ch.bills.credits[i].Using(); got != used[id] {
				return fmt.Errorf("credits of %s are spent for a use of %dm, its pods use %dm", ch.nodes.all[i].Name, got, used[id])
			}
		}
	}
	return nil
}

// podUse returns what the pods on each node use.
func (ch *checker) podUse() map[policy.NodeID]int64 {
	used := map[policy.NodeID]int64{}
	for i := range ch.pods.all {
		if p := &ch.pods.all[i]; p.Node != policy.None && p.Phase != policy.PodGone {
			used[p.Node] += ch.scenario.Templates[p.Template].CPUUse
		}
	}
	return used
}

// checkOffers holds that the offers kept for Karpenter's replacements are those of now.
func (ch *checker) checkOffers() error {
	k := ch.consolidation
	if ch.q.Now >= k.offers.until {
		return nil
	}
	now := ch.consolidation.replacements(nil)
	same := func(a, b placement.Offer) bool { return a.Market == b.Market && a.Price == b.Price && a.Pool == b.Pool }
	if !slices.EqualFunc(k.offers.list, now, same) {
		return fmt.Errorf("%d offers are kept for replacements, which are %d others now", len(k.offers.list), len(now))
	}
	return nil
}

// checkCandidates holds that the candidates for disruption that are kept from look to look
// are those that a look without memory finds.
func (ch *checker) checkCandidates(c *karpenter.Cluster) {
	whole, fresh := *c, karpenter.Disruptor{}
	whole.Tracked = false
	for _, m := range [...]karpenter.Method{karpenter.Emptiness, karpenter.SingleNode} {
		kept, want := ch.consolidation.disruptor.Candidates(c, m), fresh.Candidates(&whole, m)
		if !slices.Equal(kept, want) && ch.failure == nil {
			ch.failure = fmt.Errorf("%v are kept as candidates for disruption, which are %v", kept, want)
		}
	}
}

// checkGroups holds that Auto Scaling groups count what they have, and have no
// more than they are to hold.
func (ch *checker) checkGroups() error {
	if ch.groups.of == nil {
		return nil
	}
	live := make([]int, len(ch.groups.all))
	for i := range ch.nodes.all {
		n := &ch.nodes.all[i]
		if n.Phase == policy.NodeGone || ch.nodes.state[i].billed || ch.scenario.Pools[n.Pool].Provisioner != policy.ProvisionerClusterAutoscaler {
			continue
		}
		for g := range ch.groups.all {
			if x := &ch.groups.all[g]; x.pool == n.Pool && slices.Contains(x.markets, n.Market) {
				live[g]++
			}
		}
	}
	for g := range live {
		x := &ch.groups.all[g]
		if x.live != live[g] || x.live > x.desired || x.desired < x.least {
			return fmt.Errorf("group %d of pool %s counts %d instances of %d, there are %d", g, ch.pools.all[x.pool].Name, x.live, x.desired, live[g])
		}
	}
	return nil
}

// checkPods holds that every pod is on one node at most, that workloads own
// what they count, and that ready pods are counted.
func (ch *checker) checkPods() error {
	ch.checked.on = append(ch.checked.on[:0], make([]policy.NodeID, len(ch.pods.all))...)
	on := ch.checked.on
	for i := range ch.nodes.all {
		if ch.nodes.all[i].Phase == policy.NodeGone {
			continue
		}
		for _, p := range ch.space.Pods(policy.NodeID(i)) {
			if on[p] != 0 {
				return fmt.Errorf("pod %s is on two nodes, %s and %s", ch.pods.all[p].Name, ch.nodes.all[on[p]-1].Name, ch.nodes.all[i].Name)
			}
			on[p] = policy.NodeID(i) + 1
		}
	}
	ch.checked.counts = append(ch.checked.counts[:0], make([]podCounts, len(ch.workloads.state))...)
	counts := ch.checked.counts
	for i := range ch.pods.all {
		p := &ch.pods.all[i]
		n, bound := on[i]-1, on[i] != 0
		if p.Phase == policy.PodGone {
			if bound {
				return fmt.Errorf("a pod that is gone holds a place on %s", ch.nodes.all[n].Name)
			}
			continue
		}
		if bound != (p.Node != policy.None) || bound && n != p.Node {
			return fmt.Errorf("pod %s says that it is on node %d, the space that it is on %d (%v)", p.Name, p.Node, n, bound)
		}
		c := &counts[ch.scenario.Templates[p.Template].Workload]
		if p.Phase == policy.PodReady {
			c.seen++
			if !ch.pods.state[i].lost {
				c.ready++
			}
		}
		if p.Phase != policy.PodTerminating {
			c.active++
			if p.Phase != policy.PodReady || ch.pods.state[i].lost {
				c.waiting++
			}
		}
	}
	for i := range ch.workloads.state {
		if err := ch.checkMissing(policy.WorkloadID(i), counts[i].waiting); err != nil {
			return err
		}
		if own := (podCounts{ch.serving.of[i].ready, ch.serving.of[i].seen, ch.workloads.state[i].active, counts[i].waiting}); own != counts[i] {
			return fmt.Errorf("workload %s counts %d ready, %d seen as ready and %d active pods, there are %d, %d and %d",
				ch.scenario.Workloads[i].Name, own.ready, own.seen, own.active, counts[i].ready, counts[i].seen, counts[i].active)
		}
	}
	return nil
}

// checkMissing holds that a service misses, over all causes, its pods that do not serve
// and those that are to be made in the place of others, and never more than it wants.
func (ch *checker) checkMissing(w policy.WorkloadID, waiting int32) error {
	if !ch.serving.serves(w) {
		return nil
	}
	missing, owed := int32(0), int32(0)
	for c := range OutageCauses {
		if ch.serving.of[w].missing[c] < 0 || ch.workloads.state[w].owed[c] < 0 {
			return fmt.Errorf("workload %s misses %d pods by %v and owes %d", ch.scenario.Workloads[w].Name, ch.serving.of[w].missing[c], OutageCause(c), ch.workloads.state[w].owed[c])
		}
		missing += ch.serving.of[w].missing[c]
		owed += ch.workloads.state[w].owed[c]
	}
	if missing != waiting+owed || owed > 0 && ch.workloads.state[w].active+owed > ch.serving.of[w].wanted {
		return fmt.Errorf("workload %s misses %d pods; %d do not serve, %d must be replaced, %d of %d exist",
			ch.scenario.Workloads[w].Name, missing, waiting, owed, ch.workloads.state[w].active, ch.serving.of[w].wanted)
	}
	return nil
}

// checkNodes holds that no node is over its allocatable, and that no pod is
// left on a node that was given back.
func (ch *checker) checkNodes() error {
	for i := range ch.nodes.all {
		n := &ch.nodes.all[i]
		if n.Phase == policy.NodeGone {
			continue
		}
		var sum policy.Resources
		for _, p := range ch.space.Pods(n.ID) {
			sum = sum.Plus(ch.scenario.Templates[ch.pods.all[p].Template].Requests)
			if ch.nodes.state[i].billed && ch.pods.all[p].Phase == policy.PodReady && !ch.pods.state[p].lost {
				return fmt.Errorf("pod %s is ready on node %s, which was taken", ch.pods.all[p].Name, n.Name)
			}
		}
		if !sum.Within(n.Allocatable) {
			return fmt.Errorf("node %s holds %+v of %+v", n.Name, sum, n.Allocatable)
		}
	}
	return nil
}

// checkPlans holds that what is counted of nodes, and how they are planned with, is what they are.
func (ch *checker) checkPlans() error {
	sizes := make([]poolSize, len(ch.pools.all))
	for i := range ch.nodes.all {
		n, x, want := &ch.nodes.all[i], &ch.nodes.state[i], planWithout
		if n.Phase != policy.NodeGone && n.Phase <= policy.NodeInitialized && x.drain < 0 {
			sizes[n.Pool].total += x.size
			if x.spot {
				sizes[n.Pool].spot += x.size
			}
			if want = planThere; n.Phase < policy.NodeInitialized {
				want = planComing
			}
			if n.NotReady || n.ReclaimAt != 0 {
				want = planWithout
			}
		}
		if ch.nodes.plans[i] != want {
			return fmt.Errorf("node %s of phase %v is planned with as %d, want %d", n.Name, n.Phase, ch.nodes.plans[i], want)
		}
	}
	if !slices.Equal(sizes, ch.nodes.sizes) {
		return fmt.Errorf("pools count %v, their nodes are %v", ch.nodes.sizes, sizes)
	}
	return nil
}

// checkEviction holds that evicting a ready pod leaves its budget kept.
func (ch *checker) checkEviction(id policy.PodID) {
	for _, b := range ch.scenario.Templates[ch.pods.all[id].Template].PDBs {
		healthy, expected := int32(0), int32(0)
		for i := range ch.pods.all {
			t := &ch.scenario.Templates[ch.pods.all[i].Template]
			for _, x := range t.PDBs {
				if x == b && ch.pods.all[i].Phase == policy.PodReady {
					healthy++
				}
			}
		}
		for _, w := range ch.pdbs.of[b] {
			expected += ch.pdbs.expected(w)
		}
		if need := ch.scenario.PDBs[b].Required(expected); healthy-1 < need && ch.failure == nil {
			ch.failure = fmt.Errorf("evicting %s leaves %d healthy pods of %d that budget %s requires",
				ch.pods.all[id].Name, healthy-1, need, ch.scenario.PDBs[b].Name)
		}
	}
}

// checkFees counts the fees of a node again: milliseconds × price, each part rounded once.
func (ch *checker) checkFees(l *lifetime) error {
	p := &ch.scenario.Pools[l.pool]
	ms := int64(billing.Span{From: l.from, To: max(l.to, l.from+60_000)}.Clip(ch.window).Length() / time.Millisecond)
	of := func(price policy.Money) policy.Money { return policy.Money((int64(price)*ms + 1_800_000) / 3_600_000) }
	if want := (policy.NodeFees{Fee: of(p.Fees.Fee), Volumes: of(p.Fees.Volumes), Credits: l.fees.Credits}); l.fees != want {
		return fmt.Errorf("a node of pool %s from %v to %v was charged fees of %+v, they are %+v", p.Name, l.from, l.to, l.fees, want)
	}
	return nil
}

// checkMoney counts the bill again, millisecond by price segment, and holds
// that it is the same to the micro-dollar.
func (ch *checker) checkMoney() error {
	var sum policy.Money
	committed := ch.recountCommitted()
	for _, l := range ch.lives {
		if err := ch.checkFees(&l); err != nil {
			return err
		}
		sum += l.fees.Total()
		if ch.bills.committed(l.market) {
			if want := committed[l.born]; l.amount != want {
				return fmt.Errorf("a node in %s from %v to %v was billed %v under commitments, it is %v", ch.scenario.Markets[l.market].Name, l.from, l.to, l.amount, want)
			}
			sum += l.amount
			continue
		}
		life := billing.Span{From: l.from, To: max(l.to, l.from.Add(billing.MinimumBilled))}.Clip(ch.window)
		c, reserve := ch.prepared.prices.Listed(l.market), ch.scenario.Markets[l.market].Reserve
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
			return fmt.Errorf("a node in %s from %v to %v was billed %v, it is %v", ch.scenario.Markets[l.market].Name, l.from, l.to, l.amount, amount)
		}
		sum += l.amount
	}
	if sum != ch.result.Bill || ch.result.SpotBill+ch.result.OnDemandBill != sum {
		return fmt.Errorf("the bill is %v, its nodes sum to %v (spot %v, on-demand %v)", ch.result.Bill, sum, ch.result.SpotBill, ch.result.OnDemandBill)
	}
	return nil
}
