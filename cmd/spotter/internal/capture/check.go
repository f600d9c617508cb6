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

// A figure is what a cluster came to, as it was or as it is simulated.
type figure struct {
	hours            map[string]float64 // of nodes, by instance type and capacity type
	total, spot      float64            // of them all, and of those on spot
	most             int                // nodes at once
	mean             float64
	gone             int64 // nodes that went away
	reclaims         history.Count
	evictions        history.Count
	disruptions      []history.Disruption
	dollars          float64
	hasDollars       bool
	withoutType, all int // nodes whose type is not known are in no other figure

	// reclaimed is the mean of reclaims, which a count rounds.
	reclaimed float64

	synthetic bool // the prices that dollars are of
}

// taken returns how many nodes were reclaimed: where they were counted in other node-hours
// than those of f, as many as that makes of its own.
func (f *figure) taken() int64 {
	if f.reclaims.Hours <= 0 {
		return f.reclaims.N
	}
	return int64(math.Round(float64(f.reclaims.N) * f.spot / f.reclaims.Hours))
}

// hourKey names nodes of one instance type that were bought alike.
func hourKey(instanceType string, c policy.CapacityType) string {
	return instanceType + " " + c.String()
}

// figureOf counts what a history has of nodes that a scenario can hold.
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

// controls reports whether n is one of the control plane.
func controls(n *history.Node) bool {
	return n.Kind != nil && slices.ContainsFunc(controlPlane, func(k string) bool {
		_,
			has := n.Kind.Labels[k]
		return has
	})
}

// sold reports whether the catalog has an instance type.
func sold(name string) bool {
	return slices.ContainsFunc(catalog.Providers(), func(p string) bool { _, ok := catalog.Lookup(p, name); return ok })
}

// lives follows the nodes of a run. A node counts from when the cluster has it.
type lives struct {
	w     *scenarios.BoundScenario
	nodes []history.Node
	open  map[policy.NodeID]history.Node
	kinds map[policy.MarketID]*history.NodeKind
}

func newLives(w *scenarios.BoundScenario) *lives {
	return &lives{w: w, open: map[policy.NodeID]history.Node{}, kinds: map[policy.MarketID]*history.NodeKind{}}
}

// Happened does nothing: what counts is where an instant ends.
func (*lives) Happened(sim.Entry) {}

// Settled notes which nodes came and went.
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

// kind returns what a node of a market is.
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

// history returns the lives of the nodes of a run.
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

// simulate returns what a scenario does as it is.
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
	h.Dollars, h.HasDollars = (r.Bill - r.Fees.Total()).Float(), true // bills and metrics are read for machines alone
	return h, nil
}

// seedsCompared are those over which what is simulated is averaged.
const seedsCompared = 3

// simulateSeeds returns the figures of a scenario as it is, the mean over seeds.
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

// money names what dollars are of.
func (f *figure) money() string {
	if f.synthetic {
		return "dollars on synthetic prices"
	}
	return "dollars"
}

// relative writes how far a figure is from what it should be.
func relative(got, want float64) string {
	if want == 0 {
		return figures.Unknown
	}
	return figures.PercentChange(100*(got-want)/want, 1)
}

// deviation says in a few words how far what is simulated is from what was.
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

// typesShown is how many instance types are compared by name.
const typesShown = 12

// compared returns lines that each compare a simulated figure with that of the history.
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

// reasons lists how many nodes were given up for each reason.
func reasons(all []history.Disruption) string {
	words := make([]string, len(all))
	for i, d := range all {
		words[i] = fmt.Sprintf("%d %s", d.N, d.Reason)
	}
	return strings.Join(words, ", ")
}

// intensity returns by what the modelled rate of reclaims is multiplied so that it is what
// was seen, and says how that is known; 1 where it is not. modelled is with 1.
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
