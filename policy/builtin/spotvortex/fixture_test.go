package spotvortex_test

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// epoch is the instant of every scripted case: a step of ten minutes.
const epoch = policy.Time(1_767_225_600_000) // 2026-01-01

// A fixture is a snapshot and a memory written as text, one thing a line:
//
//	type NAME vcpu=N mem=GIB [gpu=N]
//	market TYPE ZONE spot=$ od=$ [c=P] [r=P] [model] [closed]    (in place of an earlier one)
//	scores c=P r=P                  of every Spot market so far
//	pool NAME [min=] [max=] [target=] [exact=] [none|groups] [budget=N|N%] [steer=] [cooldown=] [shadow]
//	nodes N POOL TYPE ZONE spot|od [notice=DUR] [recommended[=DUR ago]] [boot=DUR] [launching] [karpenter]
//	pdb NAME allowed=N healthy=N desired=N expected=N
//	pods N NAME POOL cpu=MILLI [mem=MIB] [kind=] [startup=DUR] [penalty=H] [class=] [pdb=] [tier=] [replicas=] [critical] [ns=]
//	memory POOL [target=] [moved=DUR] [steered=DUR] [calm=DUR]
//
// Pods are laid on the nodes of their pool in turn. Durations in memory are how
// long ago something was.
type fixture struct {
	t *testing.T
	s policy.Snapshot
	m policy.Memory
}

type options struct {
	words  []string
	values map[string]string
}

func parseOptions(fields []string) options {
	o := options{values: map[string]string{}}
	for _, f := range fields {
		if key, value, ok := strings.Cut(f, "="); ok {
			o.values[key] = value
		} else {
			o.words = append(o.words, f)
		}
	}
	return o
}

func (o options) has(word string) bool { return slices.Contains(o.words, word) }

func (o options) number(key string, otherwise float64) float64 {
	v, ok := o.values[key]
	if !ok {
		return otherwise
	}
	x, err := strconv.ParseFloat(v, 64)
	if err != nil {
		panic(fmt.Sprintf("%s=%s: %v", key, v, err))
	}
	return x
}

func (o options) duration(key string) time.Duration {
	v, ok := o.values[key]
	if !ok {
		return 0
	}
	d, err := time.ParseDuration(v)
	if err != nil {
		panic(fmt.Sprintf("%s=%s: %v", key, v, err))
	}
	return d
}

func parseFixture(t *testing.T, text string) *fixture {
	t.Helper()
	w := &fixture{t: t, s: policy.Snapshot{Now: epoch, Zones: []string{"a", "b", "c"}}}
	lines := [][]string{}
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) > 0 && !strings.HasPrefix(f[0], "#") {
			lines = append(lines, f)
		}
	}
	for _, order := range []string{"type", "market", "scores", "pool", "nodes", "pdb", "pods", "memory"} {
		for _, f := range lines {
			if f[0] == order {
				w.line(order, f[1:])
			}
		}
		switch order {
		case "type":
			w.sortTypes()
		case "scores":
			w.sortMarkets()
		case "pool":
			slices.SortFunc(w.s.Pools, func(a, b policy.Pool) int { return cmp.Compare(a.Name, b.Name) })
			for i := range w.s.Pools {
				w.s.Pools[i].ID = policy.PoolID(i)
			}
		}
	}
	if err := w.s.Validate(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return w
}

func (w *fixture) line(kind string, f []string) {
	o := parseOptions(f)
	switch kind {
	case "type":
		w.instanceType(f[0], o)
	case "market":
		w.market(f[0], f[1], o)
	case "scores":
		for i := range w.s.Markets {
			if m := &w.s.Markets[i]; m.Capacity == policy.Spot {
				m.Forecast.Capacity, m.Forecast.Runtime = o.number("c", 0), o.number("r", 0)
			}
		}
	case "pool":
		w.pool(f[0], o)
	case "nodes":
		w.nodes(f, o)
	case "pdb":
		w.s.PDBs = append(w.s.PDBs, policy.PDB{
			ID: policy.PDBID(len(w.s.PDBs)), Name: f[0], Namespace: "default",
			Allowed: int32(o.number("allowed", 0)), Healthy: int32(o.number("healthy", 0)),
			Desired: int32(o.number("desired", 0)), Expected: int32(o.number("expected", 0)),
		})
	case "pods":
		w.pods(f, o)
	case "memory":
		w.memory(f[0], o)
	}
}

func (w *fixture) instanceType(name string, o options) {
	vcpu := int64(o.number("vcpu", 2))
	r := policy.Resources{CPU: vcpu * 1000, Memory: int64(o.number("mem", 8)) << 30, GPU: int64(o.number("gpu", 0)),
		Pods: 58, Storage: 20 << 30}
	t := policy.InstanceType{
		ID: policy.TypeID(len(w.s.Types)), Provider: "aws", Name: name, Arch: "amd64", VCPU: vcpu,
		Capacity: r, Allocatable: r, VolumesMax: 25,
	}
	if r.GPU > 0 {
		t.GPUResource = "nvidia.com/gpu"
	}
	w.s.Types = append(w.s.Types, t)
}

func (w *fixture) sortTypes() {
	slices.SortFunc(w.s.Types, func(a, b policy.InstanceType) int { return cmp.Compare(a.Name, b.Name) })
	for i := range w.s.Types {
		w.s.Types[i].ID = policy.TypeID(i)
	}
}

func (w *fixture) typeID(name string) policy.TypeID {
	for i := range w.s.Types {
		if w.s.Types[i].Name == name {
			return policy.TypeID(i)
		}
	}
	w.t.Fatalf("there is no type %q", name)
	return policy.None
}

func (w *fixture) market(typ, zone string, o options) {
	id, od := w.typeID(typ), policy.Dollars(o.number("od", 0.10))
	m := policy.Market{
		Provider: "aws", Region: "r", Zone: policy.ZoneID(slices.Index(w.s.Zones, zone)), Type: id,
		Offered: true, OnDemand: od, Band: policy.BandUnknown, PlacementScore: -1,
	}
	m.Name, m.Capacity, m.Price = "aws/r/"+zone+"/"+typ+"/on-demand", policy.OnDemand, od
	w.addMarket(m)
	m.Name, m.Capacity, m.Price = "aws/r/"+zone+"/"+typ+"/spot", policy.Spot, policy.Dollars(o.number("spot", 0.03))
	m.Offered = !o.has("closed")
	m.Forecast = policy.Forecast{Capacity: o.number("c", 0), Runtime: o.number("r", 0), Confidence: 1, Source: policy.SourceClosedForm}
	if o.has("model") {
		m.Forecast.Source = policy.SourceModel
	}
	w.addMarket(m)
}

// addMarket adds m, in the place of one of its name.
func (w *fixture) addMarket(m policy.Market) {
	for i := range w.s.Markets {
		if w.s.Markets[i].Name == m.Name {
			w.s.Markets[i] = m
			return
		}
	}
	w.s.Markets = append(w.s.Markets, m)
}

func (w *fixture) sortMarkets() {
	slices.SortFunc(w.s.Markets, func(a, b policy.Market) int { return cmp.Compare(a.Name, b.Name) })
	for i := range w.s.Markets {
		w.s.Markets[i].ID = policy.MarketID(i)
	}
}

func (w *fixture) marketID(typ, zone, capacity string) policy.MarketID {
	if capacity == "od" {
		capacity = "on-demand"
	}
	name := "aws/r/" + zone + "/" + typ + "/" + capacity
	for i := range w.s.Markets {
		if w.s.Markets[i].Name == name {
			return policy.MarketID(i)
		}
	}
	w.t.Fatalf("there is no market %q", name)
	return policy.None
}

func (w *fixture) pool(name string, o options) {
	p := policy.Pool{
		ID: policy.PoolID(len(w.s.Pools)), Name: name, Provisioner: policy.ProvisionerKarpenter, Mode: policy.ModeActive,
		Share:            policy.ShareRange{Min: o.number("min", 0), Max: o.number("max", 1)},
		OnDemandFallback: true, Cooldown: o.duration("cooldown"), Levers: policy.Levers{Weights: true, Limits: true, Launch: true},
	}
	if _, ok := o.values["target"]; ok {
		p.Share.Target, p.Share.HasTarget = o.number("target", 0), true
	}
	if _, ok := o.values["exact"]; ok {
		p.Share.Target, p.Share.HasTarget, p.Share.Exact = o.number("exact", 0), true, true
	}
	if _, ok := o.values["steer"]; ok {
		p.Steer = policy.SteerState{Set: true, Share: o.number("steer", 0), Exact: p.Share.Exact,
			Fallback: !o.has("no-fallback"), Since: epoch.Add(-time.Hour)}
	}
	if o.has("shadow") {
		p.Mode = policy.ModeShadow
	}
	if o.has("none") {
		p.Provisioner = policy.ProvisionerNone
	}
	if o.has("groups") {
		p.Provisioner = policy.ProvisionerClusterAutoscaler
	}
	if b, ok := o.values["budget"]; ok {
		n, err := strconv.Atoi(strings.TrimSuffix(b, "%"))
		if err != nil {
			w.t.Fatalf("budget=%s: %v", b, err)
		}
		p.Budgets = []policy.DisruptionBudget{{Nodes: policy.Quantity{Set: true, Percent: strings.HasSuffix(b, "%"), N: int32(n)}, Active: true}}
	}
	for i := range w.s.Markets {
		p.Markets = append(p.Markets, policy.MarketID(i))
	}
	w.s.Pools = append(w.s.Pools, p)
}

func (w *fixture) poolID(name string) policy.PoolID {
	for i := range w.s.Pools {
		if w.s.Pools[i].Name == name {
			return policy.PoolID(i)
		}
	}
	w.t.Fatalf("there is no pool %q", name)
	return policy.None
}

func (w *fixture) nodes(f []string, o options) {
	count, err := strconv.Atoi(f[0])
	if err != nil {
		w.t.Fatalf("nodes %s: %v", f[0], err)
	}
	market := w.marketID(f[2], f[3], f[4])
	t := &w.s.Types[w.s.Markets[market].Type]
	for range count {
		id := len(w.s.Nodes)
		n := policy.Node{
			ID: policy.NodeID(id), Name: fmt.Sprintf("n%02d", id), Pool: w.poolID(f[1]), Market: market,
			Phase: policy.NodeInitialized, Allocatable: t.Allocatable, VolumesMax: t.VolumesMax, GPUResource: t.GPUResource,
			Labels: []policy.Label{
				{Key: "kubernetes.io/hostname", Value: fmt.Sprintf("n%02d", id)},
				{Key: "topology.kubernetes.io/zone", Value: f[3]},
			},
			Launched: epoch.Add(-24 * time.Hour), Registered: epoch.Add(-24*time.Hour + time.Minute),
			Initialized: epoch.Add(-24*time.Hour + 2*time.Minute),
		}
		if d := o.duration("notice"); d > 0 {
			n.NoticeAt, n.ReclaimAt = epoch, epoch.Add(d)
		}
		if d := o.duration("recommended"); d > 0 || o.has("recommended") {
			n.Recommended = epoch.Add(-d)
		}
		if d := o.duration("boot"); d > 0 {
			n.Initialized = n.Launched.Add(d)
		}
		if o.has("karpenter") {
			n.ActedBy = policy.ActorKarpenter
		}
		if o.has("launching") {
			n.Phase, n.Registered, n.Initialized, n.Token = policy.NodeLaunching, 0, 0, "token"
		}
		w.s.Nodes = append(w.s.Nodes, n)
	}
}

var kinds = map[string]policy.WorkloadKind{
	"": policy.KindDeployment, "deployment": policy.KindDeployment, "statefulset": policy.KindStatefulSet,
	"job": policy.KindJob, "daemonset": policy.KindDaemonSet,
}

func (w *fixture) pods(f []string, o options) {
	count, err := strconv.Atoi(f[0])
	if err != nil {
		w.t.Fatalf("pods %s: %v", f[0], err)
	}
	id, kind, ns := len(w.s.Templates), kinds[o.values["kind"]], cmp.Or(o.values["ns"], "default")
	w.s.Workloads = append(w.s.Workloads, policy.Workload{
		ID: policy.WorkloadID(id), Name: ns + "/" + f[1], Kind: kind,
		Replicas: int32(o.number("replicas", float64(count))), Ready: int32(count),
	})
	t := policy.Template{
		ID: policy.TemplateID(id), Workload: policy.WorkloadID(id), Name: ns + "/" + f[1], Namespace: ns,
		Requests: policy.Resources{CPU: int64(o.number("cpu", 0)), Memory: int64(o.number("mem", 256)) << 20,
			GPU: int64(o.number("gpu", 0)), Pods: 1},
		Startup: o.duration("startup"), OutagePenalty: o.number("penalty", -1), MigrationTier: int8(o.number("tier", -1)),
		PriorityClass: o.values["class"], Critical: o.has("critical"), DaemonSet: kind == policy.KindDaemonSet, Grace: 30 * time.Second,
	}
	if t.Requests.GPU > 0 {
		t.GPUResource = "nvidia.com/gpu"
	}
	if name := o.values["pdb"]; name != "" {
		i := slices.IndexFunc(w.s.PDBs, func(b policy.PDB) bool { return b.Name == name })
		t.PDBs = []policy.PDBID{policy.PDBID(i)}
	}
	w.s.Templates = append(w.s.Templates, t)
	pool := w.poolID(f[2])
	var nodes []policy.NodeID
	for i := range w.s.Nodes {
		if w.s.Nodes[i].Pool == pool && w.s.Nodes[i].Phase == policy.NodeInitialized {
			nodes = append(nodes, policy.NodeID(i))
		}
	}
	for i := range count {
		p := policy.Pod{
			ID: policy.PodID(len(w.s.Pods)), Name: fmt.Sprintf("%s/%s-%d", ns, f[1], i), Template: t.ID,
			Node: policy.None, Nominated: policy.None, VolumeZone: policy.None,
			Phase: policy.PodPending, Created: epoch.Add(-time.Hour),
		}
		if len(nodes) > 0 && !o.has("pending") {
			p.Node, p.Phase = nodes[i%len(nodes)], policy.PodReady
			p.Bound, p.ReadySince = epoch.Add(-time.Hour), epoch.Add(-time.Hour+30*time.Second)
		}
		w.s.Pods = append(w.s.Pods, p)
	}
}

func (w *fixture) memory(pool string, o options) {
	m := policy.PoolMemory{Name: pool}
	if _, ok := o.values["target"]; ok {
		m.Target, m.HasTarget = o.number("target", 0), true
	}
	for key, at := range map[string]*policy.Time{"moved": &m.Moved, "steered": &m.Steered, "calm": &m.Below} {
		if d := o.duration(key); d > 0 {
			*at = epoch.Add(-d)
		}
	}
	w.m = w.m.With(m)
}
