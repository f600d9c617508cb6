package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// A generator draws states: few prices, zones and labels, so that much is equal, and
// many rules at once.
type generator struct {
	*rand.Rand
	s     *State
	zones []string
}

// generate draws the state of a seed.
func generate(seed uint64) *State {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 0x5157a7e)), s: &State{Seed: seed}}
	g.zones = []string{"zone-a", "zone-b", "zone-c", "zone-d"}[:1+g.IntN(4)]
	g.types()
	g.pools()
	g.workloads()
	g.addFeatures()
	g.nodes()
	g.pods()
	g.pdbs()
	return g.s
}

func (g *generator) chance(percent int) bool { return g.IntN(100) < percent }

func pick[T any](g *generator, list ...T) T { return list[g.IntN(len(list))] }

// some returns a part of list that is not empty, in its order.
func some[T any](g *generator, list []T) []T {
	out := make([]T, 0, len(list))
	for _, x := range list {
		if g.chance(60) {
			out = append(out, x)
		}
	}
	if len(out) == 0 {
		out = append(out, pick(g, list...))
	}
	return out
}

func (g *generator) types() {
	sizes := []int64{1, 2, 4, 8, 16}
	for i, n := 0, 1+g.IntN(12); i < n; i++ {
		cpu := pick(g, sizes...)
		t := Type{
			Name: fmt.Sprintf("t%02d", i), Arch: pick(g, "amd64", "amd64", "amd64", "arm64"), Family: pick(g, "c", "m", "r"),
			CPU: cpu, Memory: cpu * pick[int64](g, 2, 4, 4, 8), Pods: pick[int64](g, 8, 16, 29, 58, 110),
		}
		base := cpu * 40_000
		if g.chance(40) {
			base += g.Int64N(3) * 4_000
		}
		for _, zone := range g.zones {
			for _, c := range []string{"spot", "on-demand"} {
				if g.chance(12) {
					continue
				}
				price := base
				if c == "spot" {
					price = base * pick[int64](g, 3, 4, 4, 10) / 10
				}
				t.Offerings = append(t.Offerings, Offering{Zone: zone, Capacity: c, Price: price, Available: !g.chance(10)})
			}
		}
		if len(t.Offerings) == 0 {
			t.Offerings = []Offering{{Zone: g.zones[0], Capacity: "on-demand", Price: base, Available: true}}
		}
		g.s.Types = append(g.s.Types, t)
	}
}

func (g *generator) pools() {
	for i, n := 0, 1+g.IntN(4); i < n; i++ {
		p := Pool{
			Name: fmt.Sprintf("pool-%d", i), Weight: pick[int32](g, 0, 0, 10, 50), Labels: map[string]string{},
			Policy: known(pick(g, "WhenEmpty", "WhenEmptyOrUnderutilized", "WhenEmptyOrUnderutilized",
				"WhenEmptyOrUnderutilized", "Balanced")),
			ConsolidateAfter: pick[int64](g, 0, 0, 30, 300),
		}
		if g.chance(15) {
			p.CPUMax = pick[int64](g, 4, 8, 16, 64)
		}
		if g.chance(8) {
			p.MemoryMax = pick[int64](g, 16, 64, 128)
		}
		if g.chance(8) {
			p.NodesMax = pick[int64](g, 1, 3, 10)
		}
		if g.chance(40) {
			p.Labels[labelTeam] = pick(g, "red", "blue")
		}
		if g.chance(25) {
			p.Labels[labelRack] = pick(g, "r1", "r2")
		}
		if g.chance(20) {
			p.Taints = []Taint{{Key: "dedicated", Value: pick(g, "x", "y"),
				Effect: pick(g, "NoSchedule", "NoSchedule", "PreferNoSchedule")}}
		}
		g.requirements(&p)
		if g.chance(30) {
			p.ExpireAfter = pick[int64](g, 3600, 86400)
		}
		p.Budgets = []Budget{{Nodes: pick(g, "10%", "100%", "100%", "50%", "1", "3")}}
		if g.chance(20) {
			p.Budgets = append(p.Budgets, Budget{Nodes: pick(g, "0", "1", "20%"),
				Reasons: some(g, []string{"Empty", "Underutilized", "Drifted"})})
		}
		g.s.Pools = append(g.s.Pools, p)
	}
}

// known returns a consolidation policy, or another for one that the linked Karpenter has
// not.
func known(policy string) string {
	if policy == "Balanced" && version.Before(14) {
		return "WhenEmptyOrUnderutilized"
	}
	return policy
}

func (g *generator) requirements(p *Pool) {
	add := func(key, op string, values ...string) {
		p.Requirements = append(p.Requirements, Requirement{Key: key, Op: op, Values: values})
	}
	if g.chance(50) {
		add("topology.kubernetes.io/zone", "In", some(g, g.zones)...)
	}
	if g.chance(60) {
		add("karpenter.sh/capacity-type", "In", some(g, []string{"spot", "on-demand"})...)
	}
	if g.chance(30) {
		add("kubernetes.io/arch", "In", pick(g, "amd64", "amd64", "arm64"))
	}
	if g.chance(20) {
		add(labelFamily, pick(g, "In", "NotIn"), some(g, []string{"c", "m", "r"})[0])
	}
	if g.chance(15) {
		add("node.kubernetes.io/instance-type", "Exists")
		p.Requirements[len(p.Requirements)-1].MinValues = 1 + g.IntN(3)
	}
}

func (g *generator) workloads() {
	if g.chance(30) {
		for i, n := 0, 1+g.IntN(2); i < n; i++ {
			w := Workload{
				Name: fmt.Sprintf("ds-%d", i), Daemon: true, Labels: map[string]string{"app": fmt.Sprintf("ds-%d", i)},
				CPU: pick[int64](g, 0, 50, 100), Memory: pick[int64](g, 0, 64, 128),
				Tolerations: []Toleration{{Op: "Exists"}},
			}
			if g.chance(30) {
				w.Selector = map[string]string{"kubernetes.io/arch": "amd64"}
			}
			g.s.Workloads = append(g.s.Workloads, w)
		}
	}
	for i, n := 0, 1+g.IntN(7); i < n; i++ {
		g.s.Workloads = append(g.s.Workloads, g.workload(i))
	}
}

func (g *generator) workload(i int) Workload {
	app := fmt.Sprintf("app-%d", i)
	w := Workload{
		Name: app, Labels: map[string]string{"app": app, "tier": pick(g, "web", "data")},
		CPU: pick[int64](g, 100, 250, 500, 500, 1000, 1000, 2000, 3500), Memory: pick[int64](g, 128, 512, 512, 1024,
			2048, 7000),
	}
	if g.chance(25) {
		w.Priority = pick[int32](g, -100, 1000, 1_000_000)
	}
	g.selectors(&w)
	g.companions(&w)
	if g.chance(30) {
		w.Spread = append(w.Spread, g.spread(&w))
		if g.chance(30) {
			w.Spread = append(w.Spread, g.spread(&w))
		}
	}
	if g.chance(30) {
		w.Tolerations = append(w.Tolerations, Toleration{Key: "dedicated", Op: pick(g, "Exists", "Equal"),
			Effect: pick(g, "", "NoSchedule")})
		if t := &w.Tolerations[0]; t.Op == "Equal" {
			t.Value = pick(g, "x", "y")
		}
	}
	if g.chance(5) {
		w.HostPorts = []HostPort{{Port: pick[int32](g, 8080, 9090), Protocol: "TCP"}}
	}
	return w
}

func (g *generator) selectors(w *Workload) {
	if g.chance(12) {
		w.Selector = map[string]string{"topology.kubernetes.io/zone": pick(g, g.zones...)}
	}
	if g.chance(8) {
		w.Selector = map[string]string{labelTeam: pick(g, "red", "blue")}
	}
	if g.chance(8) {
		w.Selector = map[string]string{"karpenter.sh/capacity-type": pick(g, "spot", "on-demand")}
	}
	if g.chance(15) {
		for i, n := 0, 1+g.IntN(2); i < n; i++ {
			w.Required = append(w.Required, []Requirement{g.requirement()})
		}
		if g.chance(30) {
			w.Required[0] = append(w.Required[0], g.requirement())
		}
	}
	if g.chance(15) {
		for i, n := 0, 1+g.IntN(2); i < n; i++ {
			w.Preferred = append(w.Preferred, Preference{Weight: pick[int32](g, 1, 10, 100),
				Term: []Requirement{g.requirement()}})
		}
	}
}

func (g *generator) requirement() Requirement {
	switch g.IntN(6) {
	case 0:
		return Requirement{Key: "topology.kubernetes.io/zone", Op: pick(g, "In", "In", "NotIn"), Values: some(g, g.zones)}
	case 1:
		return Requirement{Key: "karpenter.sh/capacity-type", Op: pick(g, "In", "NotIn"),
			Values: []string{pick(g, "spot", "on-demand")}}
	case 2:
		return Requirement{Key: "kubernetes.io/arch", Op: "In", Values: some(g, []string{"amd64", "arm64"})}
	case 3:
		return Requirement{Key: labelFamily, Op: pick(g, "In", "NotIn"), Values: some(g, []string{"c", "m", "r"})}
	case 4:
		op := pick(g, "In", "NotIn", "Exists", "DoesNotExist")
		r := Requirement{Key: labelTeam, Op: op}
		if op == "In" || op == "NotIn" {
			r.Values = []string{pick(g, "red", "blue")}
		}
		return r
	}
	return Requirement{Key: "node.kubernetes.io/instance-type", Op: pick(g, "In", "NotIn"),
		Values: []string{pick(g, g.s.Types...).Name}}
}

// match returns labels that the pods of w have, or now and then other pods.
func (g *generator) match(w *Workload) map[string]string {
	switch {
	case g.chance(70):
		return map[string]string{"app": w.Labels["app"]}
	case g.chance(50):
		return map[string]string{"tier": w.Labels["tier"]}
	}
	return map[string]string{"app": fmt.Sprintf("app-%d", g.IntN(4))}
}

func (g *generator) topologyKey() string {
	return pick(g, "topology.kubernetes.io/zone", "topology.kubernetes.io/zone", "kubernetes.io/hostname",
		"kubernetes.io/hostname",
		"karpenter.sh/capacity-type", labelRack)
}

func (g *generator) companions(w *Workload) {
	if g.chance(12) {
		w.Affinity = append(w.Affinity, g.term(w))
	}
	if g.chance(22) {
		for i, n := 0, 1+g.IntN(2); i < n; i++ {
			w.Anti = append(w.Anti, g.term(w))
		}
	}
}

func (g *generator) term(w *Workload) Term {
	t := Term{Key: g.topologyKey(), Match: g.match(w)}
	if g.chance(55) {
		t.Weight = pick[int32](g, 1, 50, 100)
	}
	return t
}

func (g *generator) spread(w *Workload) Spread {
	s := Spread{
		Key: g.topologyKey(), MaxSkew: pick[int32](g, 1, 1, 1, 2, 3), Soft: g.chance(50), Match: g.match(w),
		IgnoreAffinity: g.chance(10), HonorTaints: g.chance(10),
	}
	if !s.Soft && s.Key != "kubernetes.io/hostname" && g.chance(10) {
		s.MinDomains = 1 + g.Int32N(4)
	}
	return s
}

// sells reports whether the pool may buy the type there.
func (p *Pool) sells(s *State, t *Type, o *Offering) bool {
	labels := s.labelsOf(p, t, o)
	for _, r := range p.Requirements {
		if r.Key == labelTeam || r.Key == labelRack {
			continue // its nodes take a value
		}
		v, there := labels[r.Key]
		has := slices.Contains(r.Values, v)
		if r.Op == "In" && !has || r.Op == "NotIn" && has || r.Op == "Exists" && !there {
			return false
		}
	}
	return true
}

func (g *generator) nodes() {
	if g.chance(25) {
		return
	}
	for i, n := 0, 1+g.IntN(pick(g, 4, 12, 40)); i < n; i++ {
		p, t := pick(g, g.s.Pools...), pick(g, g.s.Types...)
		o := pick(g, t.Offerings...)
		if !p.sells(g.s, &t, &o) {
			continue
		}
		x := Node{
			Name: fmt.Sprintf("node-%03d",
				i), Pool: p.Name, Type: t.Name, Zone: o.Zone, Capacity: o.Capacity, Phase: "initialized",
			Age: 60 +
				g.Int64N(7200), Drifted: g.chance(5), DoNotDisrupt: g.chance(4), Deleting: g.chance(4), Nominated: g.chance(4),
		}
		switch {
		case g.chance(8):
			x.Phase = "launching"
		case g.chance(8):
			x.Phase = "registered"
		default:
			x.Initialized = x.Age - 30
			if g.chance(70) {
				x.LastPodEvent = 1 + g.Int64N(x.Initialized)
			}
			since := x.LastPodEvent
			if since == 0 {
				since = x.Initialized
			}
			x.Consolidable = since >= p.ConsolidateAfter
		}
		g.addNode(x, p)
	}
}

// addNode gives a node of a pool what features of the state add to it.
func (g *generator) addNode(x Node, p Pool) {
	x.NotReady = g.s.has("unready nodes") && x.Phase == "initialized" && g.chance(20)
	x.Retainted = len(p.StartupTaints) > 0 && x.Phase == "initialized" && g.chance(20)
	for _, r := range p.open() {
		values := r.Values
		if r.Op == "Exists" {
			values = openValues[r.Key]
		}
		x.Labels = map[string]string{r.Key: pick(g, values...)}
	}
	g.s.Nodes = append(g.s.Nodes, x)
}

// pods binds some of the pods to nodes that have the free capacity and the labels that they
// require, and leaves the others pending.
func (g *generator) pods() {
	b := binder{generator: g}
	for i := range g.s.Nodes {
		b.free = append(b.free, nodeRoom{Amount: g.s.typ(g.s.Nodes[i].Type).allocatable()})
	}
	for w := range g.s.Workloads {
		x := &g.s.Workloads[w]
		if x.Daemon {
			for n := range g.s.Nodes {
				if g.chance(90) && b.bind(w, n, "") {
					g.s.Pods = append(g.s.Pods, Pod{Workload: w, Node: g.s.Nodes[n].Name, Age: g.s.Nodes[n].Age / 2})
				}
			}
			continue
		}
		shared := ""
		if slices.ContainsFunc(x.Volumes, func(v Volume) bool { return v.Zonal && v.Claim != "" }) {
			shared = pick(g, g.zones...)
		}
		for i, n := 0, 1+g.IntN(pick(g, 4, 12, 30)); i < n; i++ {
			p := Pod{Workload: w, Age: g.Int64N(40), VolumeZone: shared}
			if len(g.s.Nodes) > 0 && g.chance(60) {
				if at := g.IntN(len(g.s.Nodes)); (len(x.HostPorts) == 0 || g.s.has("host ports")) && b.bind(w, at, shared) {
					p.Node, p.Age = g.s.Nodes[at].Name, 40+g.Int64N(3600)
					p.Terminating = g.chance(3)
				}
			}
			if shared == "" && slices.ContainsFunc(x.Volumes, func(v Volume) bool { return v.Zonal }) {
				p.VolumeZone = g.volumeZone(&p)
			}
			if g.chance(10) {
				p.DeletionCost = pick[int32](g, -1000, 1000, 1<<28)
			}
			p.DoNotDisrupt = g.chance(2)
			g.s.Pods = append(g.s.Pods, p)
		}
	}
}

// volumeZone returns the zone of a pod's own volumes: that of its node, else any or none.
func (g *generator) volumeZone(p *Pod) string {
	if p.Node != "" {
		return g.s.Nodes[slices.IndexFunc(g.s.Nodes, func(n Node) bool { return n.Name == p.Node })].Zone
	}
	return pick(g, append([]string{""}, g.zones...)...)
}

// A nodeRoom is what is left of a node, and what takes ports and shared claims there.
type nodeRoom struct {
	Amount
	ports  []HostPort
	claims []string
	own    int // claims of one pod each
}

// A binder binds pods to nodes.
type binder struct {
	*generator
	free []nodeRoom
}

// bind binds a pod of workload w to node n if it may run there. Its shared volumes are in a zone.
func (b *binder) bind(w, n int, zone string) bool {
	x, node, f := &b.s.Workloads[w], &b.s.Nodes[n], &b.free[n]
	if node.Phase == "launching" || zone != "" && zone != node.Zone || !b.s.admits(node, x) {
		return false
	}
	if x.CPU > f.CPU || x.Memory > f.Memory || x.Storage > f.Storage || f.Pods < 1 ||
		x.GPUs > 0 && (x.GPUs > f.GPUs || x.GPUResource != f.GPUResource) {
		return false
	}
	if slices.ContainsFunc(x.HostPorts, func(p HostPort) bool {
		return slices.ContainsFunc(f.ports, func(q HostPort) bool { return p.Port == q.Port && p.Protocol == q.Protocol })
	}) {
		return false
	}
	own, claims := f.own, slices.Clone(f.claims)
	for _, v := range x.Volumes {
		if v.Claim == "" {
			own++
		} else if !slices.Contains(claims, v.Claim) {
			claims = append(claims, v.Claim)
		}
	}
	if most := b.s.typ(node.Type).VolumesMax; most > 0 && own+len(claims) > most {
		return false
	}
	f.CPU, f.Memory, f.Storage, f.GPUs, f.Pods = f.CPU-x.CPU, f.Memory-x.Memory, f.Storage-x.Storage, f.GPUs-x.GPUs, f.Pods-1
	f.ports, f.own, f.claims = append(f.ports, x.HostPorts...), own, claims
	return true
}

// admits reports whether labels and taints of a node let pods of w run there.
func (s *State) admits(n *Node, w *Workload) bool {
	labels := s.labelsOn(n)
	for k, v := range w.Selector {
		if labels[k] != v {
			return false
		}
	}
	for _, t := range s.taintsOn(n) {
		tolerated := t.Effect == "PreferNoSchedule" || slices.ContainsFunc(w.Tolerations, func(x Toleration) bool {
			return (x.Key == "" || x.Key == t.Key) && (x.Op == "Exists" || x.Value == t.Value) &&
				(x.Effect == "" || x.Effect == t.Effect)
		})
		if !tolerated {
			return false
		}
	}
	return len(w.Required) == 0
}

func (g *generator) pdbs() {
	for w := range g.s.Workloads {
		if x := &g.s.Workloads[w]; !x.Daemon && g.chance(15) {
			g.s.PDBs = append(g.s.PDBs, PDB{Name: "pdb-" + x.Name, Match: map[string]string{"app": x.Labels["app"]},
				Allowed: pick[int32](g, 0, 0, 1, 100)})
		}
	}
}
