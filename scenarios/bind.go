package scenarios

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
	"github.com/spotter-dev/spotter/scenarios/catalog"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

// ErrTooShort is returned when a trace does not cover the span of a run.
var ErrTooShort = errors.New("the trace is too short")

// ErrNoMarket is returned when a trace has no market that a pool may buy in.
var ErrNoMarket = errors.New("no market")

// BindOptions select the part of a trace to use and override settings of the scenario.
type BindOptions struct {
	// From is the start of metering in window 0. Zero means the start of the scenario, or else the
	// first time of the trace.
	From policy.Time

	// Window is the index of the window. Windows are contiguous, each as long as the scenario.
	Window int

	// Intensity, if not nil, replaces the intensity of the scenario.
	Intensity *float64

	// NodeFee, if not nil, replaces the node fee of the scenario.
	NodeFee *policy.Money

	// Karpenter, if above 0, replaces the Karpenter version of the scenario.
	Karpenter KarpenterVersion

	// StartCluster, if not nil, replaces the start cluster of the scenario. It is an error for a
	// scenario that lists nodes.
	StartCluster *StartCluster
}

// Bind binds a scenario to the prices of a trace. The result shares the memory of both, which must
// not change afterwards.
func Bind(sc *Scenario, tr *trace.Trace, o BindOptions) (*BoundScenario, error) {
	if err := sc.Validate(); err != nil {
		return nil, err
	}
	start := cmp.Or(o.From, sc.Start, tr.From).Add(time.Duration(o.Window) * sc.Duration)
	end := start.Add(sc.Duration)
	if err := sc.CheckCovered(start, tr.Name, tr.From, tr.To); err != nil {
		return nil, err
	}
	w := &BoundScenario{Settings: sc.Settings, TraceDigest: windowDigest(tr, start, end),
		Templates: slices.Clone(sc.templates), PDBs: sc.pdbs}
	w.Start, w.Karpenter = start, cmp.Or(o.Karpenter, sc.Karpenter)
	w.Warnings = slices.Concat(sc.Warnings, tr.Warnings)
	if o.NodeFee != nil {
		w.NodeFee = *o.NodeFee
	}
	if o.Intensity != nil {
		w.Intensity = *o.Intensity
	}
	if err := w.startIn(sc, o.StartCluster); err != nil {
		return nil, err
	}
	begin := start.Add(-sc.WarmUp)
	for i := range sc.loads {
		w.Workloads = append(w.Workloads, sc.loads[i].times(begin, start, end))
	}
	w.Gangs, w.Queues = sc.gangs(), sc.queueSetup()
	for i, f := range sc.faults {
		f.At = start.Add(sc.faultsAt[i])
		w.Faults = append(w.Faults, f)
	}
	if err := w.sell(sc, tr, begin); err != nil {
		return nil, err
	}
	w.Trace = InfoOf(tr)
	w.Trace.Availability = w.Available != nil
	w.nameZones()
	w.charge(sc)
	w.meterCredits(sc)
	w.commit(sc)
	w.warnOfFaults()
	return w, w.seed(sc)
}

// nameZones sets the zone name of each fault that states a zone number. A fault whose number
// exceeds the number of zones gets a name that matches no market, since an empty name would match
// all of them.
func (w *BoundScenario) nameZones() {
	for i := range w.Faults {
		switch f := &w.Faults[i]; {
		case f.ZoneNumber > len(w.Zones):
			f.Zone = fmt.Sprintf("number %d", f.ZoneNumber)
		case f.ZoneNumber > 0:
			f.Zone = w.Zones[f.ZoneNumber-1]
		}
	}
}

// warnOfFaults warns of faults whose zone and instance type match no market.
func (w *BoundScenario) warnOfFaults() {
	for i := range w.Faults {
		f := &w.Faults[i]
		meets := slices.ContainsFunc(w.Markets, func(m policy.Market) bool {
			return (f.Zone == "" || f.Zone == w.Zones[m.Zone]) && (f.Type == "" || f.Type == w.Types[m.Type].Name)
		})
		if !meets {
			w.Warnings = append(w.Warnings,
				fmt.Sprintf("faults[%d] has no effect: no market with zone %q and instance type %q", i, f.Zone, f.Type))
		}
	}
}

// wholeDay rounds the time of a trace's last change up to the end of its UTC day, since prices hold
// until they change and recordings consist of whole days.
func wholeDay(t policy.Time) policy.Time {
	return (t + day - 1) / day * day
}

func windowDigest(tr *trace.Trace, start, end policy.Time) [32]byte {
	b := tr.Digest[:]
	b = binary.BigEndian.AppendUint64(slices.Clip(b), uint64(start))
	b = binary.BigEndian.AppendUint64(b, uint64(end))
	return sha256.Sum256(b)
}

// sell sets what can be bought: instance types, zones, markets with their prices, and the pools
// with the markets that each may use.
func (w *BoundScenario) sell(sc *Scenario, tr *trace.Trace, begin policy.Time) error {
	x := newSelection(tr, begin, w.Start, w.Start.Add(w.Duration))
	x.reserve = sc.Reserve
	for i := range sc.pools {
		taken, err := x.choose(&sc.pools[i])
		if err != nil {
			return err
		}
		x.pools = append(x.pools, taken)
	}
	if len(sc.classes) > 0 {
		x.size(sc)
	}
	for i := range sc.pools {
		if len(x.pools[i]) == 0 {
			return sc.pools[i].nothing(x)
		}
	}
	x.takeReserved(sc)
	x.tabulate(w)
	w.keepSizes(x)
	for i := range sc.pools {
		p := sc.pools[i].base
		p.ID = policy.PoolID(i)
		if err := w.own(i, sc, &p); err != nil {
			return err
		}
		if p.Mode == policy.ModeShadow { // a simulated cluster is always changed
			p.Mode = policy.ModeActive
		}
		for _, k := range x.pools[i] {
			p.Markets = append(p.Markets, x.offers[k].onDemandID, x.offers[k].spotID)
		}
		slices.Sort(p.Markets)
		p.Markets = slices.Compact(p.Markets)
		w.Pools = append(w.Pools, p)
	}
	w.keepReserved(x)
	if err := w.overlay(sc); err != nil {
		return err
	}
	w.Warnings = append(w.Warnings, x.warnings()...)
	w.Warnings = append(w.Warnings, x.assumptions(sc)...)
	return nil
}

// own records the settings of a NodePool or an Auto Scaling group that its pool, p, has no field
// for. It fails if labels of the user's own have too many combinations of values.
func (w *BoundScenario) own(i int, sc *Scenario, p *policy.Pool) error {
	if g := sc.pools[i].group; g != nil {
		if w.ScalingGroups == nil {
			w.ScalingGroups = make([]*ScalingGroup, len(sc.pools))
		}
		w.ScalingGroups[i] = g
	}
	if sc.pools[i].own == nil {
		return nil
	}
	if w.NodePools == nil {
		w.NodePools = make([]*NodePool, len(sc.pools))
	}
	own := sc.pools[i].own.NodePool
	types := sc.pools[i].base.CapacityTypes
	own.OnlyReserved = len(types) == 1 && types[0] == policy.Reserved
	var labels []policy.Label
	own.Choices, labels = sc.pools[i].own.choose(sc.templates)
	combinations := 1
	for _, c := range own.Choices {
		labels = append(labels, policy.Label{Key: c.Key, Value: policy.AnyValue})
		if combinations *= len(c.Values); combinations > valuesMax {
			return sc.pools[i].doc.problem([]string{"spec", "template", "spec", "requirements"},
				"labels of your own that pods refer to have more than %d combinations of values", valuesMax)
		}
	}
	if len(labels) > 0 {
		p.Labels = append(slices.Clip(p.Labels), labels...)
		slices.SortFunc(p.Labels, func(a, b policy.Label) int { return cmp.Compare(a.Key, b.Key) })
	}
	w.NodePools[i] = &own
	return nil
}

// nothing returns the error for a pool that may buy in no market of the trace.
func (p *pool) nothing(x *selection) error {
	path := []string{"spec", "markets"}
	if p.own != nil {
		path = []string{"spec", "template", "spec", "requirements"}
	}
	err := p.doc.problem(path, "pool %s may not buy in any of the %d markets of trace %s", p.name, len(x.offers),
		x.tr.Name)
	if len(x.offers) > 0 {
		f, l := x.offers[0].series, x.offers[len(x.offers)-1].series
		return fmt.Errorf("%w: %w (from %s to %s)%s", ErrNoMarket, err, f.Name(), l.Name(), p.unmet(x))
	}
	for _, why := range x.warnings() {
		err = fmt.Errorf("%w; %s", err, why)
	}
	return fmt.Errorf("%w: %w", ErrNoMarket, err)
}

// unmet returns a description of the first NodePool requirement that excludes all remaining markets
// of the trace, and of the catalog's instance types that satisfy it and those before it. It returns
// "" if the requirements leave a market.
func (p *pool) unmet(x *selection) string {
	if p.own == nil {
		return ""
	}
	some := ownPool{ref: p.own.ref}
	ofTypes := some
	for _, r := range p.own.Requirements {
		some.Requirements = append(some.Requirements, r)
		if r.Key != corev1.LabelTopologyZone && r.Key != corev1.LabelTopologyRegion {
			ofTypes.Requirements = append(ofTypes.Requirements, r)
		}
		if slices.ContainsFunc(x.poolOffers, func(o v1alpha1.Offer) bool {
			ok, _ := some.takes(&o)
			return ok
		}) {
			continue
		}
		var types []string
		for _, name := range catalog.Types(policy.AWS) {
			t, _ := catalog.Lookup(policy.AWS, name)
			if ok, _ := ofTypes.takes(&v1alpha1.Offer{Provider: policy.AWS, Type: &t}); ok {
				types = append(types, name)
			}
		}
		const shown = 5
		text := fmt.Sprintf("; what is required of %s leaves none", r.Key)
		if n := len(types); n > 0 {
			text += fmt.Sprintf(", and %d types of the catalog: %s", n, strings.Join(types[:min(n, shown)], ", "))
			if n > shown {
				text += ", …"
			}
		}
		return text
	}
	return ""
}

// capacityTypes maps the capacity type in a manifest to the capacity type that it restricts nodes
// to, if any.
var capacityTypes = map[string]struct {
	any  bool
	only policy.CapacityType
}{"": {any: true}, "spot": {only: policy.Spot}, "on-demand": {only: policy.OnDemand}, "reserved": {only: policy.Reserved}}

// BoughtBy returns the markets of a pool, followed by the reserved ones that only its NodePool may
// buy.
func (w *BoundScenario) BoughtBy(pool policy.PoolID) []policy.MarketID {
	markets := w.Pools[pool].Markets
	if own := w.ownOf(pool); own != nil {
		markets = slices.Concat(markets, own.Reserved)
	}
	return markets
}

// ownOf returns the NodePool of a pool, nil for a pool without one.
func (w *BoundScenario) ownOf(pool policy.PoolID) *NodePool {
	if w.NodePools == nil {
		return nil
	}
	return w.NodePools[pool]
}

// seed resolves the initial nodes of a scenario to the cheapest matching market; the first by name
// among equals.
func (w *BoundScenario) seed(sc *Scenario) error {
	stated := make([]int, len(w.Pools))
	for i, n := range sc.nodes {
		at := slices.IndexFunc(w.Pools, func(p policy.Pool) bool { return p.Name == n.Pool })
		p, want := &w.Pools[at], capacityTypes[n.CapacityType]
		best := policy.MarketID(policy.None)
		for _, id := range w.BoughtBy(p.ID) {
			m := &w.Markets[id]
			fits := (want.any && m.Capacity != policy.Reserved || want.only == m.Capacity) && m.Offered &&
				(n.InstanceType == "" || n.InstanceType == w.Types[m.Type].Name) &&
				(n.Zone == "" || n.Zone == w.Zones[m.Zone]) &&
				(n.Reservation == "" || strings.HasSuffix(m.Name, "/"+n.Reservation))
			if fits && (best == policy.None || m.Price < w.Markets[best].Price) {
				best = id
			}
		}
		if best == policy.None {
			return fmt.Errorf("%w: nodes[%d] of %s: pool %s has no market with type %q, zone %q, capacity type %q at the start",
				ErrNoMarket, i, sc.Name, n.Pool, n.InstanceType, n.Zone, strings.TrimSuffix(n.CapacityType+"/"+n.Reservation, "/"))
		}
		if own := w.ownOf(p.ID); own != nil && own.Static {
			if stated[p.ID] += int(n.Count); stated[p.ID] > own.Replicas {
				return fmt.Errorf("nodes[%d] of %s: pool %s has %d nodes at the start, more than its %d replicas", i, sc.Name,
					n.Pool, stated[p.ID], own.Replicas)
			}
		}
		w.Seeds = append(w.Seeds, NodeSeed{Pool: p.ID, Market: best, Count: int(n.Count)})
	}
	w.podsOn(sc)
	return nil
}
