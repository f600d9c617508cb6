package record

import (
	"fmt"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/billing"
	"github.com/spotter-dev/spotter/policy/figures"
)

// quietNode writes the reasons why a plan may leave a node unchanged: another controller that acts
// on it, restrictions, and the savings that a move would have. All of them were known to the
// decision.
func quietNode(b *strings.Builder, s *Step, n *policy.Node) {
	snap := s.Snapshot
	b.WriteString("  the plan leaves it as it is:\n")
	if !in(int(n.Pool), len(snap.Pools)) {
		b.WriteString("    it belongs to no pool, so no policy decides for it\n")
		return
	}
	p := &snap.Pools[n.Pool]
	var why []string
	add := func(format string, args ...any) { why = append(why, fmt.Sprintf(format, args...)) }
	switch {
	case p.Mode == policy.ModeOff:
		add("pool %s is off", p.Name)
	case n.ActedBy != policy.ActorNone:
		add("%v is already acting on it", n.ActedBy)
	case n.Phase < policy.NodeInitialized:
		add("it is not ready for pods yet")
	case n.Phase > policy.NodeInitialized:
		add("it is already being removed")
	}
	if n.DoNotDisrupt {
		add("it asks not to be disrupted")
	}
	if n.AtGroupMin {
		add("its group is at its minimum size and would launch a replacement")
	}
	m := s.Memory.Pool(p.Name)
	for _, x := range m.Backoff {
		if x.Node == n.Name && x.Until > snap.Now {
			add("it is left alone until %v: its drain was started %s and did not complete", x.Until, times(x.Tries))
		}
	}
	if snap.Disruptable(n.Pool, policy.Underutilized) == 0 {
		add("the disruption budget of pool %s allows no disruption now", p.Name)
	}
	if p.Cooldown > 0 && m.Moved != 0 && snap.Now.Sub(m.Moved) < p.Cooldown {
		add("pool %s moved nodes %v ago and waits %v between moves", p.Name, snap.Now.Sub(m.Moved), p.Cooldown)
	}
	if n.ReclaimAt == 0 && n.Recommended == 0 {
		add("the provider has sent neither a notice nor a recommendation")
	}
	why = append(why, alternatives(snap, p, n)...)
	for _, w := range why {
		b.WriteString("    " + w + "\n")
	}
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// alternatives compares the cost of a node with the cheapest other markets of its pool that sell as
// much capacity: one of its capacity type, and one of another. Capacity covered by commitments has
// no further cost.
func alternatives(s *policy.Snapshot, p *policy.Pool, n *policy.Node) []string {
	if n.Market == policy.None {
		return nil
	}
	own, cover := &s.Markets[n.Market], coverage(s)
	pays := cover.Saving(n.Market)
	if cover.Covers(n.Market) && pays == 0 {
		return []string{fmt.Sprintf("a commitment pays for it: its market price is %s/h, but releasing it saves nothing",
			own.Charge().Short())}
	}
	var out []string
	best, price := cheapest(s, cover, p, n, func(m *policy.Market) bool { return m.Capacity == own.Capacity })
	if saving := pays - price; best == nil {
		out = append(out, fmt.Sprintf("it costs %s/h, and no other %v market of pool %s offers as much capacity",
			pays.Short(), own.Capacity, p.Name))
	} else if saving <= 0 {
		out = append(out, fmt.Sprintf("it costs %s/h; the next %v market with as much capacity is %s at %s/h, %s/h more",
			pays.Short(), own.Capacity, best.Name, price.Short(), (-saving).Short()))
	} else {
		text := fmt.Sprintf("it costs %s/h; %s offers as much capacity for %s/h, %s/h less", pays.Short(), best.Name,
			price.Short(), saving.Short())
		if limit := pays.Times(p.SavingsThreshold); saving < limit {
			text += fmt.Sprintf(", but a move must save at least %s/h", limit.Short())
		} else {
			text += ", without the cost of the move: both nodes run for a while, and pods restart"
		}
		out = append(out, text)
	}
	if best, price := cheapest(s, cover, p, n,
		func(m *policy.Market) bool { return m.Capacity != own.Capacity }); best != nil && price < pays {
		out = append(out,
			fmt.Sprintf("as %v it would cost %s/h, %s/h less, in %s; the pool's Spot share decides between the two",
				best.Capacity, price.Short(), (pays-price).Short(), best.Name))
	}
	return out
}

// coverage returns the coverage of the nodes of s by commitments. If a recording is damaged, the
// commitments are ignored.
func coverage(s *policy.Snapshot) *billing.Coverage {
	if len(s.Commitments) > 0 && s.Validate() != nil {
		bare := *s
		bare.Commitments = nil
		return billing.CoverageOf(&bare)
	}
	return billing.CoverageOf(s)
}

// cheapest returns the cheapest market of p that is offered, sells as much capacity as n has, and
// satisfies wanted; the first one in p if several are equal, and nil if there is no such market.
// The price is the marginal cost of one more node after commitments.
func cheapest(s *policy.Snapshot, cover *billing.Coverage, p *policy.Pool, n *policy.Node,
	wanted func(*policy.Market) bool) (best *policy.Market, price policy.Money) {
	for _, id := range p.Markets {
		m := &s.Markets[id]
		if id == n.Market || !m.Offered || !wanted(m) || !in(int(m.Type), len(s.Types)) ||
			!n.Allocatable.Within(s.Types[m.Type].Allocatable) {
			continue
		}
		if x := cover.Marginal(id); best == nil || x < price {
			best, price = m, x
		}
	}
	return best, price
}

// quietPool writes the reasons why a plan may leave a pool unchanged.
func quietPool(b *strings.Builder, s *Step, pool policy.PoolID) {
	snap := s.Snapshot
	p := &snap.Pools[pool]
	b.WriteString("  the plan leaves it as it is:\n")
	if p.Mode == policy.ModeOff {
		b.WriteString("    it is off\n")
		return
	}
	pending := 0
	for i := range snap.Pods {
		if snap.Pods[i].Phase == policy.PodPending {
			pending++
		}
	}
	if pending == 0 {
		b.WriteString("    no pod is pending\n")
	} else {
		fmt.Fprintf(b, "    pending in the whole cluster: %s\n", figures.Count(pending, "pod"))
	}
	for i := range snap.Budgets {
		if snap.Budgets[i].Closed {
			fmt.Fprintf(b, "    the gate of budget %s is closed: its pods are not admitted and need no capacity\n",
				snap.Budgets[i].Name)
		}
	}
	notices := 0
	for i := range snap.Nodes {
		if n := &snap.Nodes[i]; n.Live() && n.Pool == pool && n.ReclaimAt != 0 {
			notices++
		}
	}
	if notices == 0 {
		b.WriteString("    none of its nodes is under notice\n")
	}
	if snap.Disruptable(pool, policy.Underutilized) == 0 {
		b.WriteString("    its disruption budget allows no disruption now\n")
	}
}

// remembered writes the content of a pool's memory.
func remembered(b *strings.Builder, s *Step, pool policy.PoolID) {
	m := s.Memory.Pool(s.Snapshot.Pools[pool].Name)
	ago := func(t policy.Time) string {
		return fmt.Sprintf("%v, %v earlier", t, s.Snapshot.Now.Sub(t).Round(time.Second))
	}
	if m.HasTarget {
		fmt.Fprintf(b, "  target Spot share %.3f\n", m.Target)
	}
	if m.Moved != 0 {
		fmt.Fprintf(b, "  last moved nodes voluntarily at %s\n", ago(m.Moved))
	}
	if m.Steered != 0 {
		fmt.Fprintf(b, "  last steered at %s\n", ago(m.Steered))
	}
	for _, x := range m.Backoff {
		if x.Until > s.Snapshot.Now {
			fmt.Fprintf(b, "  node %s is left alone until %v\n", x.Node, x.Until)
		}
	}
}
