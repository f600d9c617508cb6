package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// A feature is something that some states have. It is drawn from random numbers of its own, so that
// a state without it does not depend on it.
type feature struct {
	name    string
	percent int // of the states that have it
	draw    func(*generator)
}

var features = []feature{
	{"reserved capacity", 30, (*generator).reserve},
	{"open labels", 30, (*generator).open},
	{"gpus", 12, (*generator).gpus},
	{"host ports", 12, (*generator).hostPorts},
	{"volumes", 12, (*generator).volumes},
	{"min values", 12, (*generator).minValues},
	{"limits", 12, (*generator).limits},
	{"startup taints", 12, (*generator).startupTaints},
	{"label domains", 12, (*generator).labelDomains},
	{"storage", 12, (*generator).storage},
	{"unready nodes", 8, nil},
	{"grace periods", 12, (*generator).gracePeriods},
}

// forced names a feature that all states have; empty for none.
var forced string

// addFeatures draws the features of the state.
func (g *generator) addFeatures() {
	own := g.Rand
	for i := range features {
		f := &features[i]
		g.Rand = rand.New(rand.NewPCG(g.s.Seed, 0xfea7<<8+uint64(i)))
		if !g.chance(f.percent) && f.name != forced {
			continue
		}
		g.s.Features = append(g.s.Features, f.name)
		if f.draw != nil {
			f.draw(g)
		}
	}
	g.Rand = own
}

// has reports whether the state was drawn with a feature.
func (s *State) has(feature string) bool { return slices.Contains(s.Features, feature) }

// A featureTally counts, by feature, the states that have it and those of them that differ.
type featureTally struct{ states, differ map[string]int }

func newFeatureTally() featureTally { return featureTally{map[string]int{}, map[string]int{}} }

func (t *featureTally) add(s *State, differs bool) {
	for _, f := range s.Features {
		t.states[f]++
		if differs {
			t.differ[f]++
		}
	}
}

// String lists how many states with each feature are equal.
func (t *featureTally) String() (s string) {
	for i := range features {
		if f := features[i].name; t.states[f] > 0 {
			s += fmt.Sprintf("  %-17s %5d states, %.2f%% equal\n", f, t.states[f],
				100*float64(t.states[f]-t.differ[f])/float64(t.states[f]))
		}
	}
	return s
}

// reserve adds capacity reservations.
func (g *generator) reserve() {
	for i, n := 0, 1+g.IntN(3); i < n; i++ {
		t, zone := &g.s.Types[g.IntN(len(g.s.Types))], pick(g, g.zones...)
		if slices.ContainsFunc(t.Offerings, func(o Offering) bool { return o.Reservation != "" && o.Zone == zone }) {
			continue // a node's labels would not tell which of the two it is in
		}
		t.Offerings = append(t.Offerings, Offering{Zone: zone, Capacity: "reserved", Price: t.CPU * 4, Available: true,
			Reservation: fmt.Sprintf("cr-%d", i), Left: 1 + g.IntN(4)})
	}
	for i := range g.s.Pools {
		for k := range g.s.Pools[i].Requirements {
			if r := &g.s.Pools[i].Requirements[k]; r.Key == "karpenter.sh/capacity-type" && g.chance(60) {
				r.Values = append(r.Values, "reserved")
			}
		}
	}
}

// openValues are the values of labels that pools leave open.
var openValues = map[string][]string{labelTeam: {"red", "blue", "green"}, labelRack: {"r1", "r2", "r3"}}

// open has some pools leave open the value of a label that they do not give their nodes.
func (g *generator) open() {
	for i := range g.s.Pools {
		p := &g.s.Pools[i]
		r := Requirement{Key: pick(g, labelTeam, labelTeam, labelRack), Op: pick(g, "In", "In", "Exists")}
		if _, fixed := p.Labels[r.Key]; fixed || !g.chance(60) {
			continue
		}
		if r.Op == "In" {
			r.Values = some(g, openValues[r.Key])
		}
		p.Requirements = append(p.Requirements, r)
	}
}

// gpuResource is what limits of pools count, otherGPU a device of another vendor. A pool with a limit
// may not buy the other: the simulator refuses such NodePools.
const (
	gpuResource = "nvidia.com/gpu"
	otherGPU    = "amd.com/gpu"
)

// gpus gives some types accelerators, and has some workloads request them.
func (g *generator) gpus() {
	kinds := []string{gpuResource, gpuResource, gpuResource, otherGPU}
	limited := g.chance(50)
	if limited {
		kinds = kinds[:1]
	}
	for i := range g.s.Types {
		t := &g.s.Types[i]
		if !g.chance(50) {
			continue
		}
		t.GPUs, t.GPUResource = pick[int64](g, 1, 1, 2, 4, 8), pick(g, kinds...)
		for k := range t.Offerings {
			t.Offerings[k].Price += t.GPUs * pick[int64](g, 0, 300_000, 300_000)
		}
	}
	for i := range g.s.Pools {
		p := &g.s.Pools[i]
		if limited && g.chance(40) {
			p.GPUMax = pick[int64](g, 1, 2, 4, 16)
		}
		if len(p.Taints) == 0 && g.chance(20) {
			p.Taints = []Taint{{Key: gpuResource, Value: "true", Effect: "NoSchedule"}}
		}
	}
	for i := range g.s.Workloads {
		w := &g.s.Workloads[i]
		if w.Daemon || !g.chance(60) {
			continue
		}
		w.GPUs, w.GPUResource = pick[int64](g, 1, 1, 1, 2, 4), pick(g, gpuResource, gpuResource, gpuResource, otherGPU)
		if g.chance(70) {
			w.Tolerations = append(w.Tolerations, Toleration{Key: gpuResource, Op: "Exists", Effect: pick(g, "", "NoSchedule")})
		}
	}
}

// hostPorts has workloads, DaemonSets among them, take ports of their nodes.
func (g *generator) hostPorts() {
	for i := range g.s.Workloads {
		w := &g.s.Workloads[i]
		if !g.chance(50) {
			continue
		}
		w.HostPorts = nil
		for range 1 + g.IntN(2) {
			w.HostPorts = append(w.HostPorts, HostPort{IP: pick(g, "", "", "", "0.0.0.0", "10.0.0.1", "10.0.0.2"),
				Port:     pick[int32](g, 80, 443, 9100),
				Protocol: pick(g, "TCP", "TCP", "UDP")})
		}
	}
}

// volumes gives workloads claims, and bounds how many of them nodes attach.
func (g *generator) volumes() {
	for i := range g.s.Types {
		if g.chance(60) {
			g.s.Types[i].VolumesMax = pick(g, 1, 2, 3, 5, 25)
		}
	}
	for i := range g.s.Workloads {
		w := &g.s.Workloads[i]
		if w.Daemon || !g.chance(60) {
			continue
		}
		for k := range 1 + g.IntN(3) {
			x := Volume{Zonal: g.chance(60)}
			if g.chance(35) {
				x.Claim, x.Once = fmt.Sprintf("%s-%d", w.Name, k), g.chance(30)
			}
			w.Volumes = append(w.Volumes, x)
		}
	}
}

// minValues has pools require several types, families or architectures.
func (g *generator) minValues() {
	for i := range g.s.Pools {
		p := &g.s.Pools[i]
		for _, key := range some(g, []string{labelType, labelFamily, labelArch}) {
			if at := slices.IndexFunc(p.Requirements, func(r Requirement) bool { return r.Key == key }); at < 0 {
				p.Requirements = append(p.Requirements, Requirement{Key: key, Op: "Exists", MinValues: 1 + g.IntN(3)})
			} else {
				p.Requirements[at].MinValues = 1 + g.IntN(3)
			}
		}
	}
}

// limits bounds all pools.
func (g *generator) limits() {
	for i := range g.s.Pools {
		p := &g.s.Pools[i]
		switch g.IntN(4) {
		case 0:
			p.NodesMax = 1 + g.Int64N(12)
		case 1:
			p.MemoryMax = pick[int64](g, 8, 16, 32, 64, 256)
		default:
			p.CPUMax = pick[int64](g, 2, 4, 8, 16, 32, 64)
		}
	}
}

// startupTaints puts taints on nodes until they are initialized. Some come back later.
func (g *generator) startupTaints() {
	for i := range g.s.Pools {
		p := &g.s.Pools[i]
		if !g.chance(70) {
			continue
		}
		p.StartupTaints = []Taint{{Key: "example.com/agent", Effect: pick(g, "NoSchedule", "NoExecute")}}
		if g.chance(20) {
			p.StartupTaints = append(p.StartupTaints, Taint{Key: "dedicated", Value: "x", Effect: "NoSchedule"})
		}
	}
}

// gracePeriods bounds how long nodes of pools terminate, which consolidation does not heed.
func (g *generator) gracePeriods() {
	for i := range g.s.Pools {
		g.s.Pools[i].TerminationGrace = pick[int64](g, 0, 60, 3600)
	}
}

// labelDomains has topology rules divide nodes by labels of pools and instance types.
func (g *generator) labelDomains() {
	key := func(now string) string {
		return pick(g, now, labelFamily, labelFamily, labelTeam, labelType, labelArch, labelRack)
	}
	for i := range g.s.Workloads {
		w := &g.s.Workloads[i]
		if len(w.Spread) == 0 && g.chance(40) {
			w.Spread = append(w.Spread, g.spread(w))
		}
		for k := range w.Spread {
			w.Spread[k].Key = key(w.Spread[k].Key)
		}
		for k := range w.Affinity {
			w.Affinity[k].Key = key(w.Affinity[k].Key)
		}
		for k := range w.Anti {
			w.Anti[k].Key = key(w.Anti[k].Key)
		}
	}
}

// storage gives types ephemeral storage, which some workloads request.
func (g *generator) storage() {
	for i := range g.s.Types {
		g.s.Types[i].Storage = pick[int64](g, 20, 20, 20, 100, 500)
	}
	for i := range g.s.Workloads {
		if g.chance(50) {
			g.s.Workloads[i].Storage = pick[int64](g, 0, 500, 4000, 15_000, 60_000)
		}
	}
}
