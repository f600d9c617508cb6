package bill

import (
	"fmt"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/billing"
	"github.com/spotter-dev/spotter/policy/record"
)

// Load returns the usage of nodes in a recording of a simulation or a cluster, from its first step
// to its last. It only knows the states at the steps: a node that left between two steps is charged
// until the second, and a node that was launched and left between two steps is missing. A price is
// valid from the time that the step reports for it.
func Load(r *record.Recording, about About) (*Usage, error) {
	l := &loader{usage: &Usage{About: about}, markets: map[string]policy.MarketID{}, owners: map[string]int32{},
		nodes: map[string]*nodeSeen{}, pods: map[string]int32{}}
	for step, err := range r.Steps() {
		if err != nil {
			return nil, fmt.Errorf("reading the recording: %w", err)
		}
		if err := l.step(step.Snapshot); err != nil {
			return nil, fmt.Errorf("step %d: %w", step.Number, err)
		}
	}
	if l.last == nil {
		return nil, fmt.Errorf("the recording has no step: %w", record.ErrNoRecording)
	}
	l.finish()
	return l.usage, l.check()
}

// A loader builds a usage from steps.
type loader struct {
	usage *Usage
	last  *policy.Snapshot

	// By name: indexes in the tables of the usage, whose order differs from that of a snapshot.
	// prices is indexed by market.
	markets map[string]policy.MarketID
	owners  map[string]int32
	prices  []prices

	// nodes and pods are the current ones, by name.
	nodes map[string]*nodeSeen
	pods  map[string]int32

	// late lists the nodes whose end was between two steps.
	late []lateEnd
}

// prices are the prices of a node of a market over time: price[i] is valid from at[i].
type prices struct {
	at    []policy.Time
	price []policy.Money
}

// A nodeSeen is a current node: its index in Usage.Nodes, and the time of the last step with it.
type nodeSeen struct {
	place int32
	last  policy.Time
}

// A lateEnd is a node that left at an unknown time in span.
type lateEnd struct {
	place int32
	span  billing.Span
}

// step processes one step.
func (l *loader) step(s *policy.Snapshot) error {
	if l.last == nil {
		l.usage.Window.From = s.Now
		l.usage.Commitments = commitmentsOf(s)
	} else if s.Now <= l.last.Now {
		return fmt.Errorf("it is of %v, not after the one before it: %w", s.Now, record.ErrCorrupt)
	}
	if !slices.Equal(l.usage.Commitments, commitmentsOf(s)) {
		return fmt.Errorf("%w: commitments changed between %v and %v, and the meter takes those of all the time",
			ErrUnknown, l.last.Now, s.Now)
	}
	market := l.followMarkets(s)
	l.followNodes(s, market)
	l.followPods(s)
	l.last, l.usage.Window.To = s, s.Now
	return nil
}

// commitmentsOf returns the commitments of s without the fields that change with the nodes.
func commitmentsOf(s *policy.Snapshot) []policy.Commitment {
	all := slices.Clone(s.Commitments)
	for i := range all {
		all[i].Unused = 0
	}
	return all
}

// followMarkets adds new markets and the current prices. It returns the index in Usage.Markets of
// each market of s.
func (l *loader) followMarkets(s *policy.Snapshot) []policy.MarketID {
	u := l.usage
	places := make([]policy.MarketID, len(s.Markets))
	for i := range s.Markets {
		m := &s.Markets[i]
		k, ok := l.markets[m.Name]
		if !ok {
			k = policy.MarketID(len(u.Markets))
			l.markets[m.Name] = k
			x := *m
			x.ID, x.Type, x.Zone = k, policy.TypeID(len(u.Types)), policy.ZoneID(len(u.Zones))
			u.Types, u.Zones = append(u.Types, s.Types[m.Type]), append(u.Zones, s.Zones[m.Zone])
			u.Markets, l.prices = append(u.Markets, x), append(l.prices, prices{})
		}
		places[i] = k
		if m.OnDemand > 0 {
			u.Markets[k].OnDemand = m.OnDemand
		}
		if !m.Offered {
			continue // nodes that still run are charged the last known price
		}
		at := min(m.PricedAt, s.Now)
		if l.last != nil {
			at = max(at, l.last.Now+1) // the last step reported the price until then
		}
		if p := &l.prices[k]; len(p.price) == 0 || p.price[len(p.price)-1] != m.Charge() {
			p.at, p.price = append(p.at, at), append(p.price, m.Charge())
		}
	}
	return places
}

// followNodes adds new nodes, and ends those that left.
func (l *loader) followNodes(s *policy.Snapshot, market []policy.MarketID) {
	u := l.usage
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if !n.Live() {
			continue
		}
		seen := l.nodes[n.Name]
		if seen == nil {
			seen = &nodeSeen{place: int32(len(u.Nodes))}
			l.nodes[n.Name] = seen
			x := Node{Name: n.Name, Market: policy.None, From: n.Launched, Billed: policy.NoPrice}
			if n.Launched == 0 {
				x.From = s.Now
			}
			u.Nodes = append(u.Nodes, x)
		}
		seen.last = s.Now
		x := &u.Nodes[seen.place]
		if n.Market >= 0 {
			x.Market = market[n.Market]
		}
		if n.Pool >= 0 {
			x.Pool, x.Fees = s.Pools[n.Pool].Name, s.Pools[n.Pool].Fees
		}
		if n.Bid > 0 {
			x.Bid = n.Bid
		}
	}
	for name, seen := range l.nodes { // in any order: the nodes do not affect each other
		if seen.last != s.Now {
			u.Nodes[seen.place].To = s.Now
			l.late = append(l.late, lateEnd{seen.place, billing.Span{From: seen.last, To: s.Now}})
			delete(l.nodes, name)
		}
	}
}

// followPods adds newly bound pods, and ends those that are gone.
func (l *loader) followPods(s *policy.Snapshot) {
	u := l.usage
	owners := make([]int32, len(s.Templates))
	for i := range s.Templates {
		owners[i] = l.owner(s, &s.Templates[i])
	}
	for i := range s.Ended {
		e := &s.Ended[i]
		if k, ok := l.pods[e.Name]; ok && u.Pods[k].To == 0 {
			u.Pods[k].To = e.End
			delete(l.pods, e.Name)
		} else if node := l.nodeNamed(e.Node); node >= 0 && e.Start > 0 {
			u.Pods = append(u.Pods, Pod{Name: e.Name, Node: node, Owner: owners[e.Template], From: e.Start, To: e.End})
		}
	}
	there := make(map[string]bool, len(s.Pods))
	for i := range s.Pods {
		p := &s.Pods[i]
		if p.Phase == policy.PodGone || p.Node < 0 || !s.Nodes[p.Node].Live() {
			continue
		}
		there[p.Name] = true
		if _, ok := l.pods[p.Name]; ok {
			continue
		}
		from := p.Bound
		if from == 0 {
			from = s.Now
		}
		l.pods[p.Name] = int32(len(u.Pods))
		u.Pods = append(u.Pods, Pod{Name: p.Name, Node: l.nodes[s.Nodes[p.Node].Name].place, Owner: owners[p.Template],
			From: from})
	}
	for name, k := range l.pods { // in any order: the pods do not affect each other
		if !there[name] {
			u.Pods[k].To = s.Now // the end was not recorded, for example because of a gap
			delete(l.pods, name)
		}
	}
}

// nodeNamed returns the index of a current or former node, -1 if there was no such node.
func (l *loader) nodeNamed(name string) int32 {
	if seen := l.nodes[name]; seen != nil {
		return seen.place
	}
	for _, e := range slices.Backward(l.late) {
		if l.usage.Nodes[e.place].Name == name {
			return e.place
		}
	}
	return -1
}

// owner returns the index of the owner of the pods of t.
func (l *loader) owner(s *policy.Snapshot, t *policy.Template) int32 {
	kind := policy.KindBare
	if t.Workload >= 0 {
		kind = s.Workloads[t.Workload].Kind
	}
	key := fmt.Sprint(t.Name, kind, t.Requests, t.Labels) // the requests and labels of a workload may change
	k, ok := l.owners[key]
	if !ok {
		k = int32(len(l.usage.Owners))
		l.owners[key] = k
		l.usage.Owners = append(l.usage.Owners, ownerOf(t, kind))
	}
	return k
}

// finish ends all remaining nodes and pods, and removes the nodes without a price.
func (l *loader) finish() {
	u := l.usage
	for _, p := range l.prices {
		u.Charges = append(u.Charges, curve(p.at, p.price))
	}
	for _, seen := range l.nodes {
		u.Nodes[seen.place].To = u.Window.To
	}
	for _, k := range l.pods {
		u.Pods[k].To = u.Window.To
	}
	l.warn()
	l.leaveOut()
}

// warn adds warnings: by how much the bill may be too high because the exact ends of nodes are
// unknown, and which costs it omits.
func (l *loader) warn() {
	u := l.usage
	most, longest := policy.Money(0), time.Duration(0)
	for _, e := range l.late {
		if n := &u.Nodes[e.place]; n.Market >= 0 && u.Charges[n.Market] != nil {
			most += u.Charges[n.Market].Bill(e.span, e.span)
			longest = max(longest, e.span.Length())
		}
	}
	if most > 0 {
		u.Warnings = append(u.Warnings,
			fmt.Sprintf("%d nodes left between two steps, at most %v apart, and are charged until the second: at most %s too much", len(l.late), longest, most.Short()))
	}
	burstable := slices.ContainsFunc(u.Nodes, func(n Node) bool {
		return n.Market >= 0 && u.Types[u.Markets[n.Market].Type].Credits.Baseline > 0
	})
	if burstable {
		u.Warnings = append(u.Warnings, "surplus CPU credits of burstable types are not recorded, and not in the bill")
	}
}

// leaveOut removes the nodes whose price is unknown, and their pods.
func (l *loader) leaveOut() {
	u := l.usage
	place, kept, without := make([]int32, len(u.Nodes)), u.Nodes[:0:0], time.Duration(0)
	for i, n := range u.Nodes {
		place[i] = -1
		if n.Market < 0 || u.Charges[n.Market] == nil {
			without += n.life().Clip(u.Window).Length()
			continue
		}
		place[i] = int32(len(kept))
		kept = append(kept, n)
	}
	if out := len(u.Nodes) - len(kept); out > 0 {
		u.Warnings = append(u.Warnings,
			fmt.Sprintf("%d nodes, which ran for %.1f hours, have no price that is known: they are not in the bill", out,
				without.Hours()))
	}
	u.Nodes = kept
	u.Pods = slices.DeleteFunc(u.Pods, func(p Pod) bool { return place[p.Node] < 0 })
	for i := range u.Pods {
		u.Pods[i].Node = place[u.Pods[i].Node]
	}
}

// check returns an error if no bill can be made from the recording.
func (l *loader) check() error {
	switch u := l.usage; {
	case u.Window.To == u.Window.From:
		return fmt.Errorf("%w: the recording has one step, and no time passes in it", ErrUnknown)
	case len(u.Nodes) == 0 && len(u.Warnings) > 0:
		return fmt.Errorf("%w: the recording has no price of any node that ran", ErrUnknown)
	}
	return nil
}
