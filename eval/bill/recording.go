package bill

import (
	"fmt"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/billing"
	"github.com/spotter-dev/spotter/policy/record"
)

// Load returns what a recording says of the nodes from its first step to its last, of a
// simulation or of a cluster. It knows what the steps saw: a node that left between two
// of them is charged until the second, and one that came and went between them is not in
// it. Prices are in force from when a step reports them to be.
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

// A loader makes a usage of steps.
type loader struct {
	usage *Usage
	last  *policy.Snapshot

	// By name: the places of what was seen in the tables of the usage, whose order is not
	// that of a snapshot. prices are by market.
	markets map[string]policy.MarketID
	owners  map[string]int32
	prices  []prices

	// nodes and pods are those that are there.
	nodes map[string]*nodeSeen
	pods  map[string]int32

	// late is what nodes cost between the step that saw them last and their end.
	late []lateEnd
}

// prices are what a node of a market is charged from each instant on.
type prices struct {
	at    []policy.Time
	price []policy.Money
}

// A nodeSeen is a node that is there, by its place.
type nodeSeen struct {
	place int32
	last  policy.Time
}

// A lateEnd is a node that left after one instant and by another.
type lateEnd struct {
	place int32
	span  billing.Span
}

// step adds one step.
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

// commitmentsOf returns those of s without what changes with the nodes.
func commitmentsOf(s *policy.Snapshot) []policy.Commitment {
	all := slices.Clone(s.Commitments)
	for i := range all {
		all[i].Unused = 0
	}
	return all
}

// followMarkets adds the markets that are new and what all of them charge. It returns
// the places of those of s.
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
			continue // who still runs pays what was paid before
		}
		at := min(m.PricedAt, s.Now)
		if l.last != nil {
			at = max(at, l.last.Now+1) // that step saw another price, or the same
		}
		if p := &l.prices[k]; len(p.price) == 0 || p.price[len(p.price)-1] != m.Charge() {
			p.at, p.price = append(p.at, at), append(p.price, m.Charge())
		}
	}
	return places
}

// followNodes adds the nodes that came, and ends those that left.
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
	for name, seen := range l.nodes { // in no order: each is ended by itself
		if seen.last != s.Now {
			u.Nodes[seen.place].To = s.Now
			l.late = append(l.late, lateEnd{seen.place, billing.Span{From: seen.last, To: s.Now}})
			delete(l.nodes, name)
		}
	}
}

// followPods adds the pods that came to a node, and ends those that went away.
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
	for name, k := range l.pods { // in no order: each is ended by itself
		if !there[name] {
			u.Pods[k].To = s.Now // its end was not observed, as after a gap
			delete(l.pods, name)
		}
	}
}

// nodeNamed returns the place of a node that is or was there, -1 for one that was not.
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

// owner returns the place of the owner of the pods of t.
func (l *loader) owner(s *policy.Snapshot, t *policy.Template) int32 {
	kind := policy.KindBare
	if t.Workload >= 0 {
		kind = s.Workloads[t.Workload].Kind
	}
	key := fmt.Sprint(t.Name, kind, t.Requests, t.Labels) // the pods of a workload may change
	k, ok := l.owners[key]
	if !ok {
		k = int32(len(l.usage.Owners))
		l.owners[key] = k
		l.usage.Owners = append(l.usage.Owners, ownerOf(t, kind))
	}
	return k
}

// finish ends what is still there, and leaves out what has no price.
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

// warn says what the ends of nodes that were not observed may add to the bill, and what is not in
// it.
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

// leaveOut removes the nodes of which no price is known, with their pods.
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

// check reports a recording of which no bill can be made.
func (l *loader) check() error {
	switch u := l.usage; {
	case u.Window.To == u.Window.From:
		return fmt.Errorf("%w: the recording has one step, and no time passes in it", ErrUnknown)
	case len(u.Nodes) == 0 && len(u.Warnings) > 0:
		return fmt.Errorf("%w: the recording has no price of any node that ran", ErrUnknown)
	}
	return nil
}
