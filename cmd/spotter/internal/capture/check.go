package capture

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/history"
	"github.com/spotter-dev/spotter/cmd/spotter/internal/runner"
	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/eval/stats"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/figures"
	"github.com/spotter-dev/spotter/policy/kube"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/scenarios/catalog"
	"github.com/spotter-dev/spotter/sim"
)

// A figure is the totals of a cluster, observed or simulated.
type figure struct {
	hours            map[string]float64 // node-hours by instance type and capacity type
	total, spot      float64            // node-hours of all nodes, and of Spot nodes
	most             int                // maximum number of nodes at once
	mean             float64
	gone             int64 // nodes that terminated
	reclaims         history.Count
	evictions        history.Count
	disruptions      []history.Disruption
	dollars          float64
	hasDollars       bool
	withoutType, all int // nodes of unknown type, counted in no other field; all nodes

	// reclaimed is the mean number of reclaims over seeds, before rounding.
	reclaimed float64

	synthetic bool // whether dollars are based on synthetic prices
}

// taken returns the number of reclaimed nodes. If reclaims were counted over other node-hours than
// those of f, the number is scaled to the Spot node-hours of f.
func (f *figure) taken() int64 {
	if f.reclaims.Hours <= 0 {
		return f.reclaims.N
	}
	return int64(math.Round(float64(f.reclaims.N) * f.spot / f.reclaims.Hours))
}

// hourKey returns the key in figure.hours of an instance type and a capacity type.
func hourKey(instanceType string, c policy.CapacityType) string {
	return instanceType + " " + c.String()
}

// figureOf totals the nodes of a history that a scenario can contain.
func figureOf(h *history.History, resolver *kube.CapacityResolver) *figure {
	f := &figure{hours: map[string]float64{}, reclaims: h.Reclaims, evictions: h.Evictions, disruptions: h.Disruptions,
		dollars: h.Dollars, hasDollars: h.HasDollars, all: len(h.Nodes)}
	held := *h
	held.Nodes = nil
	for _, n := range h.Nodes {
		if controls(&n) {
			f.all--
			continue
		}
		if n.Kind == nil || !sold(n.Kind.Labels[corev1.LabelInstanceTypeStable]) {
			f.withoutType++
			continue
		}
		capacity, _ := resolver.Resolve(n.Kind.Labels)
		if capacity == policy.Reserved {
			capacity = policy.OnDemand
		}
		f.hours[hourKey(n.Kind.Labels[corev1.LabelInstanceTypeStable], capacity)] += n.Hours()
		f.total += n.Hours()
		if capacity == policy.Spot {
			f.spot += n.Hours()
		}
		if n.To < h.To {
			f.gone++
		}
		held.Nodes = append(held.Nodes, n)
	}
	f.most, f.mean = held.Count()
	return f
}

// controls reports whether n is a node of the control plane.
func controls(n *history.Node) bool {
	return n.Kind != nil && slices.ContainsFunc(controlPlane, func(k string) bool {
		_,
			has := n.Kind.Labels[k]
		return has
	})
}

// sold reports whether the catalog contains an instance type.
func sold(name string) bool {
	return slices.ContainsFunc(catalog.Providers(), func(p string) bool { _, ok := catalog.Lookup(p, name); return ok })
}

// lives tracks the nodes of a run. A node counts from the moment it has joined the cluster.
type lives struct {
	w     *scenarios.BoundScenario
	nodes []history.Node
	open  map[policy.NodeID]history.Node
	kinds map[policy.MarketID]*history.NodeKind
}

func newLives(w *scenarios.BoundScenario) *lives {
	return &lives{w: w, open: map[policy.NodeID]history.Node{}, kinds: map[policy.MarketID]*history.NodeKind{}}
}

// Happened does nothing; only the state at the end of an instant counts.
func (*lives) Happened(sim.Entry) {}

// Settled records which nodes joined and left.
func (l *lives) Settled(m *sim.Moment) {
	for _, id := range m.Nodes() {
		n, _, _, ok := m.Node(id)
		ok = ok && n.Phase != policy.NodeLaunching
		was, open := l.open[id]
		if open && (!ok || was.Name != n.Name) {
			l.end(id, m.Now)
			open = false
		}
		if ok && !open {
			l.open[id] = history.Node{Name: n.Name, From: m.Now, Kind: l.kind(n.Market)}
		}
	}
}

func (l *lives) end(id policy.NodeID, at policy.Time) {
	n := l.open[id]
	delete(l.open, id)
	n.From, n.To = max(n.From, l.w.Start), min(at, l.w.Start.Add(l.w.Duration))
	if n.To > n.From {
		l.nodes = append(l.nodes, n)
	}
}

// kind returns the kind of a node of a market.
func (l *lives) kind(id policy.MarketID) *history.NodeKind {
	if l.kinds[id] == nil {
		m := &l.w.Markets[id]
		l.kinds[id] = &history.NodeKind{Labels: map[string]string{
			corev1.LabelInstanceTypeStable: l.w.Types[m.Type].Name, corev1.LabelTopologyZone: l.w.Zones[m.Zone], corev1.LabelTopologyRegion: m.Region,
			keyCapacity: m.Capacity.String(),
		}}
	}
	return l.kinds[id]
}

// history returns the history of the nodes of a run. It ends the nodes that still run.
func (l *lives) history() *history.History {
	for _, id := range slices.Sorted(maps.Keys(l.open)) {
		l.end(id, l.w.Start.Add(l.w.Duration))
	}
	slices.SortFunc(l.nodes, func(a, b history.Node) int {
		return cmp.Or(cmp.Compare(a.From, b.From),
			cmp.Compare(a.Name, b.Name))
	})
	return &history.History{From: l.w.Start, To: l.w.Start.Add(l.w.Duration), Nodes: l.nodes}
}

// asIs is the policy that keeps what the cluster runs.
const asIs = "as-is"

// simulate simulates a scenario under the policy as-is and returns its history.
func simulate(ctx context.Context, name string, w *scenarios.BoundScenario, seed uint64) (*history.History, error) {
	runs := runner.New()
	job := eval.Job{Case: eval.Case{Scenario: name, Bound: w}, Policy: asIs, Seed: seed}
	cfg, err := runs.Config(job)
	if err != nil {
		return nil, err
	}
	l := newLives(w)
	cfg.Observer = l
	r, err := runs.Simulate(ctx, job, cfg)
	if err != nil {
		return nil, fmt.Errorf("simulating what was captured: %w", err)
	}
	h := l.history()
	h.Reclaims, h.Evictions = history.Count{N: r.Interruptions, Source: asIs}, history.Count{N: r.VoluntaryEvictions,
		Source: asIs}
	h.Dollars, h.HasDollars = (r.Bill - r.Fees.Total()).Float(), true // without fees: bills and metrics are read for machines alone
	return h, nil
}

// seedsCompared is the number of seeds over which the simulation is averaged.
const seedsCompared = 3

// simulateSeeds returns the figure of a scenario under the policy as-is, averaged over seeds.
func simulateSeeds(ctx context.Context, name string, w *scenarios.BoundScenario) (*figure, error) {
	mean := &figure{hours: map[string]float64{}, hasDollars: true, reclaims: history.Count{Source: asIs},
		evictions: history.Count{Source: asIs}}
	for seed := uint64(1); seed <= seedsCompared; seed++ {
		h, err := simulate(ctx, name, w, seed)
		if err != nil {
			return nil, err
		}
		f := figureOf(h, &kube.CapacityResolver{})
		for k, v := range f.hours {
			mean.hours[k] += v / seedsCompared
		}
		mean.total += f.total / seedsCompared
		mean.spot += f.spot / seedsCompared
		mean.mean += f.mean / seedsCompared
		mean.dollars += f.dollars / seedsCompared
		mean.most = max(mean.most, f.most)
		mean.gone += f.gone
		mean.reclaims.N += f.reclaims.N
		mean.evictions.N += f.evictions.N
	}
	round := func(n int64) int64 { return (n + seedsCompared/2) / seedsCompared }
	mean.reclaimed = float64(mean.reclaims.N) / seedsCompared
	mean.gone, mean.reclaims.N, mean.evictions.N = round(mean.gone), round(mean.reclaims.N), round(mean.evictions.N)
	return mean, nil
}

// money returns the label for dollars, which states whether prices are synthetic.
func (f *figure) money() string {
	if f.synthetic {
		return "dollars on synthetic prices"
	}
	return "dollars"
}

// relative formats the relative deviation of a value from the expected one.
func relative(got, want float64) string {
	if want == 0 {
		return figures.Unknown
	}
	return figures.PercentChange(100*(got-want)/want, 1)
}

// deviation summarises how far the simulated figure is from the observed one.
func deviation(was, is *figure) string {
	words := []string{"node-hours " + relative(is.total, was.total)}
	if was.spot > 0 {
		words = append(words, "Spot node-hours "+relative(is.spot, was.spot))
	}
	if was.reclaims.Source != "" {
		words = append(words, fmt.Sprintf("reclaims %d for %d", is.reclaims.N, was.taken()))
	}
	if was.hasDollars {
		words = append(words, is.money()+" "+relative(is.dollars, was.dollars))
	}
	return strings.Join(words, ", ")
}

// typesShown is the maximum number of instance types that are listed.
const typesShown = 12

// compared returns lines that each compare a simulated value with the observed one.
func compared(was, is *figure) []string {
	lines := []string{fmt.Sprintf("Simulated as-is, the mean of %d seeds, next to what happened:", seedsCompared)}
	line := func(name string, got, want float64, digits int) {
		lines = append(lines, fmt.Sprintf("  %-34s %10.*f %10.*f  %s", name, digits, got, digits, want, relative(got, want)))
	}
	line("node-hours", is.total, was.total, 1)
	types := map[string]float64{}
	maps.Copy(types, was.hours)
	maps.Copy(types, is.hours)
	order := slices.Sorted(maps.Keys(types))
	slices.SortStableFunc(order, func(a, b string) int {
		return cmp.Compare(max(was.hours[b], is.hours[b]), max(was.hours[a], is.hours[a]))
	})
	for _, k := range order[:min(len(order), typesShown)] {
		line("  "+k, is.hours[k], was.hours[k], 1)
	}
	if n := len(order) - typesShown; n > 0 {
		lines = append(lines, fmt.Sprintf("    and %d more types", n))
	}
	line("Spot node-hours", is.spot, was.spot, 1)
	line("nodes at most", float64(is.most), float64(was.most), 0)
	line("nodes on average", is.mean, was.mean, 1)
	line("nodes that went away", float64(is.gone), float64(was.gone), 0)
	if len(was.disruptions) > 0 {
		lines = append(lines, "    Karpenter gave up: "+reasons(was.disruptions))
	}
	if was.reclaims.Source != "" {
		line("nodes that were reclaimed", float64(is.reclaims.N), float64(was.taken()), 0)
	}
	if was.evictions.Source != "" {
		line("pods evicted", float64(is.evictions.N), float64(was.evictions.N), 0)
	}
	if was.hasDollars {
		line(is.money(), is.dollars, was.dollars, 2)
	}
	if was.withoutType > 0 {
		lines = append(lines, fmt.Sprintf("  %d of %d nodes are of no type that is known, and in no figure",
			was.withoutType, was.all))
	}
	return lines
}

// reasons lists the number of disrupted nodes for each reason.
func reasons(all []history.Disruption) string {
	words := make([]string, len(all))
	for i, d := range all {
		words[i] = fmt.Sprintf("%d %s", d.N, d.Reason)
	}
	return strings.Join(words, ", ")
}

// intensity returns the factor by which the modelled rate of reclaims must be multiplied to match
// the observed rate, and an explanation. It is 1 if no rate was observed. modelled must have been
// simulated with a factor of 1.
func intensity(was, modelled *figure) (x float64, said string) {
	seen := was.reclaims
	switch {
	case seen.Source == "":
		return 1, "Reclaims: no metric counted them, so that they are as modelled."
	case was.spot <= 0:
		return 1, "Reclaims: there was no Spot node."
	}
	hours := cmp.Or(seen.Hours, was.spot)
	interval := stats.PoissonInterval(seen.N, 0.05)
	said = fmt.Sprintf("Reclaims: %d in %.0f Spot node-hours by %s, %.3g per node-hour (exact 95%% interval %.3g to %.3g)",
		seen.N, hours, seen.Source, float64(seen.N)/hours, interval.Low/hours, interval.High/hours)
	if modelled.reclaimed <= 0 || modelled.spot <= 0 {
		return 1, said + "; the model had none, and is left as it is."
	}
	rate := modelled.reclaimed / modelled.spot
	x = float64(seen.N) / hours / rate
	if seen.N == 0 { // zero observed reclaims do not prove that there were no reclaims
		x = min(1, interval.High/hours/rate)
	}
	x = math.Round(min(x, 1000)*1000) / 1000
	return x, said + fmt.Sprintf("; modelled are %.3g: spec.market.intensity is %v.", rate, x)
}
