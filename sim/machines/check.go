package machines

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/billing"
)

// CheckAll checks the invariants of machines. It counts everything again in the simplest way.
func (ms *Machines) CheckAll() error {
	for _, check := range [...]func() error{ms.checkPrices, ms.checkCredits, ms.checkNodes} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// checkNodes checks that no pod is ready on a node that was terminated or taken, and that a node is
// drained exactly while an actor works on it.
func (ms *Machines) checkNodes() error {
	for i := range ms.Nodes.All {
		n, x := &ms.Nodes.All[i], &ms.of[i]
		if n.Phase == policy.NodeGone {
			continue
		}
		if drained := x.drain >= 0; drained != (n.ActedBy != policy.ActorNone) {
			return fmt.Errorf("node %s is worked on by %v, and that it is drained is %v", n.Name, n.ActedBy, drained)
		}
		for _, p := range ms.Space.Pods(n.ID) {
			if x.billed && ms.Pods.All[p].Phase == policy.PodReady && !ms.Pods.State[p].Lost {
				return fmt.Errorf("pod %s is ready on node %s, which was taken", ms.Pods.All[p].Name, n.Name)
			}
		}
	}
	return nil
}

// A lifetime is the bill of one node, kept so that CheckMoney can compute it again.
type lifetime struct {
	market   policy.MarketID
	pool     policy.PoolID
	from, to policy.Time
	bid      policy.Money // 0 outside of auctions
	amount   policy.Money // without fees
	fees     policy.NodeFees
	born     int // position in the order of launches
}

// checkPrices checks that no node is launched for more than its pool's maximum price.
func (ms *Machines) checkPrices() error {
	for _, id := range ms.Launches.InFlight {
		n := &ms.Nodes.All[id]
		most := ms.Scenario.Pools[n.Pool].PriceMax
		price := ms.Prepared.Market.Charges()[n.Market].At(ms.Clock.Now)
		if n.Launched == ms.Clock.Now && most > 0 && (price > most || n.Bid > most) {
			return fmt.Errorf("node %s was bought for %v with a bid of %v, and its pool pays %v at most", n.Name, price,
				n.Bid, most)
		}
	}
	return nil
}

// checkCredits checks that the CPU use for which a node spends credits is the use of its pods.
func (ms *Machines) checkCredits() error {
	var used map[policy.NodeID]int64
	for i := range ms.Nodes.All {
		if id := policy.NodeID(i); ms.Nodes.All[i].Phase != policy.NodeGone && ms.Bills.burstable(id) != nil {
			if used == nil {
				used = ms.podUse()
			}
			if got := ms.Bills.credits[i].Using(); got != used[id] {
				return fmt.Errorf("credits of %s are spent for a use of %dm, its pods use %dm", ms.Nodes.All[i].Name, got, used[id])
			}
		}
	}
	return nil
}

// podUse returns the CPU use of the pods on each node, in milli-CPU.
func (ms *Machines) podUse() map[policy.NodeID]int64 {
	used := map[policy.NodeID]int64{}
	for i := range ms.Pods.All {
		if p := &ms.Pods.All[i]; p.Node != policy.None && p.Phase != policy.PodGone {
			used[p.Node] += ms.Scenario.Templates[p.Template].CPUUse
		}
	}
	return used
}

// checkFees recomputes the fees of a node: milliseconds × hourly fee, each part rounded once.
func (ms *Machines) checkFees(l *lifetime) error {
	p := &ms.Scenario.Pools[l.pool]
	lasted := int64(billing.Span{From: l.from, To: max(l.to, l.from+60_000)}.Clip(ms.Window).Length() / time.Millisecond)
	of := func(price policy.Money) policy.Money {
		return policy.Money((int64(price)*lasted + 1_800_000) / 3_600_000)
	}
	if want := (policy.NodeFees{Fee: of(p.Fees.Fee), Volumes: of(p.Fees.Volumes),
		Credits: l.fees.Credits}); l.fees != want {
		return fmt.Errorf("a node of pool %s from %v to %v was charged fees of %+v, they are %+v", p.Name, l.from, l.to,
			l.fees, want)
	}
	return nil
}

// CheckMoney recomputes the bill, as milliseconds × price for each price segment, and checks that
// it is equal to the millionth of a dollar.
func (ms *Machines) CheckMoney() error {
	var sum policy.Money
	committed := ms.recountCommitted()
	for _, l := range ms.Bills.lives {
		if err := ms.checkFees(&l); err != nil {
			return err
		}
		sum += l.fees.Total()
		if ms.Bills.committed(l.market) {
			if want := committed[l.born]; l.amount != want {
				return fmt.Errorf("a node in %s from %v to %v was billed %v under commitments, it is %v",
					ms.Scenario.Markets[l.market].Name, l.from, l.to, l.amount, want)
			}
			sum += l.amount
			continue
		}
		life := billing.Span{From: l.from, To: max(l.to, l.from.Add(billing.MinimumBilled))}.Clip(ms.Window)
		c, reserve := ms.Prepared.Market.Listed(l.market), ms.Scenario.Markets[l.market].Reserve
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
			return fmt.Errorf("a node in %s from %v to %v was billed %v, it is %v",
				ms.Scenario.Markets[l.market].Name, l.from, l.to, l.amount, amount)
		}
		sum += l.amount
	}
	if sum != ms.Result.Bill || ms.Result.SpotBill+ms.Result.OnDemandBill != sum {
		return fmt.Errorf("the bill is %v, its nodes sum to %v (spot %v, on-demand %v)",
			ms.Result.Bill, sum, ms.Result.SpotBill, ms.Result.OnDemandBill)
	}
	return nil
}

// recountCommitted recomputes, in the simplest way, the bills of the nodes that commitments may
// cover. The result is keyed by the position in the order of launches. It splits time at every
// launch and end of such a node and of a commitment, and divides the coverage again in each
// interval.
func (ms *Machines) recountCommitted() map[int]policy.Money {
	if ms.Bills.account == nil {
		return nil
	}
	var lives []lifetime
	var cuts []policy.Time
	for _, l := range ms.Bills.lives {
		if ms.Bills.committed(l.market) {
			lives, cuts = append(lives, l), append(cuts, l.from, l.to)
		}
	}
	slices.SortFunc(lives, func(a, b lifetime) int { return cmp.Compare(a.born, b.born) })
	for i := range ms.Scenario.Commitments {
		cuts = append(cuts, ms.Scenario.Commitments[i].Until)
	}
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	owed, last := make([]*big.Int, len(lives)), make([]policy.Money, len(lives))
	for i := range owed {
		owed[i] = new(big.Int)
	}
	for k := 0; k+1 < len(cuts); k++ {
		for i, open := range ms.openParts(lives, cuts[k]) {
			if open >= 0 {
				last[i] = ms.Scenario.Markets[lives[i].market].OnDemand - open
				ms.owe(owed[i], &lives[i], billing.Span{From: cuts[k], To: cuts[k+1]}, open)
			}
		}
	}
	out := make(map[int]policy.Money)
	for i := range lives {
		l, list := &lives[i], ms.Scenario.Markets[lives[i].market].OnDemand
		if least := l.from.Add(billing.MinimumBilled); least > l.to {
			ms.owe(owed[i], l, billing.Span{From: l.to, To: least}, list-last[i])
		}
		unit := new(big.Int).Mul(big.NewInt(int64(list)), big.NewInt(3_600_000))
		up := new(big.Int).Add(owed[i], new(big.Int).Sub(unit, big.NewInt(1)))
		full := ms.Prepared.Market.Charges()[l.market].Bill(billing.Span{From: l.from, To: l.to}, ms.Window)
		out[l.born] = min(policy.Money(up.Div(up, unit).Int64()), full)
	}
	return out
}

// openParts returns the uncovered part of the list price of each lifetime at t, or −1 for one that
// does not run then.
func (ms *Machines) openParts(lives []lifetime, t policy.Time) []policy.Money {
	w := ms.Scenario
	cover := billing.NewCoverage(w.Types, w.Zones, w.Markets, w.Commitments)
	for i := range w.Commitments {
		if until := w.Commitments[i].Until; until > 0 && until <= t {
			cover.Lapse(i)
		}
	}
	for i := range lives {
		if lives[i].from <= t && t < lives[i].to {
			cover.Add(lives[i].market, 1)
		}
	}
	left, open := make([]policy.Money, len(w.Markets)), make([]policy.Money, len(lives))
	for m := range left {
		left[m] = cover.Paid(policy.MarketID(m))
	}
	for i := range lives {
		open[i] = -1
		if m := lives[i].market; lives[i].from <= t && t < lives[i].to {
			paid := min(left[m], w.Markets[m].OnDemand)
			left[m] -= paid
			open[i] = w.Markets[m].OnDemand - paid
		}
	}
	return open
}

// owe adds price × milliseconds × open to sum, for each price segment in s.
func (ms *Machines) owe(sum *big.Int, l *lifetime, s billing.Span, open policy.Money) {
	in, c := s.Clip(ms.Window), ms.Prepared.Market.Listed(l.market)
	for k := range c.At {
		from, to := max(in.From, c.At[k]), in.To
		if k == 0 {
			from = in.From
		}
		if k+1 < len(c.At) {
			to = min(to, c.At[k+1])
		}
		if to > from {
			x := big.NewInt(int64(c.Price[k]) * int64(to-from))
			sum.Add(sum, x.Mul(x, big.NewInt(int64(open))))
		}
	}
}
