package workload_test

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/policytest"
	"github.com/spotter-dev/spotter/policy/share"
	"github.com/spotter-dev/spotter/policy/workload"
)

// plain computes the features of a pool the slow way, a pod at a time.
func plain(s *policy.Snapshot, pool policy.PoolID, compat bool) workload.Features {
	f := workload.Features{Startup: 300, Penalty: 5, Priority: 0.5, Safety: workload.DefaultPoolSafety()}
	plainNodes(s, pool, compat, &f)
	sums := plainSums{perNode: map[policy.PDBID]map[policy.NodeID]int{}}
	for i := range s.Pods {
		p := &s.Pods[i]
		if p.Phase == policy.PodGone || p.Node < 0 || s.Nodes[p.Node].Pool != pool {
			continue
		}
		if s.Nodes[p.Node].Usable() {
			f.Requested = f.Requested.Plus(s.Templates[p.Template].Requests)
		}
		if p.Phase != policy.PodTerminating || compat {
			sums.add(s, p, compat, &f)
		}
	}
	f.Utilization = plainUtilization(f.Requested, f.Allocatable, compat)
	if sums.weight == 0 {
		return f
	}
	f.Penalty, f.Priority, f.Startup = sums.penalty/sums.weight, sums.priority/sums.weight, 60
	if sums.workloads > 0 {
		f.Single = sums.single / sums.workloads
	}
	if len(sums.startups) > 0 {
		f.Startup = plainPercentile(sums.startups)
	}
	in := workload.SafetyInput{
		OnDemandNodes: f.Nodes - f.SpotNodes, Pods: f.Pods, Stateful: f.Stateful, Evictable: f.Evictable,
		Critical: f.Critical, CriticalOnSpot: f.CriticalOnSpot, Utilization: f.Utilization, ZoneCount: f.Zones, Restart: f.Startup,
	}
	if compat {
		in.Utilization = 0.5
	}
	for b := range s.PDBs {
		if nodes := sums.perNode[policy.PDBID(b)]; nodes != nil {
			in.Budgets = append(in.Budgets, plainSpread(plainAllowed(&s.PDBs[b], compat), nodes))
		}
	}
	f.Safety = workload.Safety(in, compat)
	return f
}

func plainNodes(s *policy.Snapshot, pool policy.PoolID, compat bool, f *workload.Features) {
	zones := map[policy.ZoneID]bool{}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.Phase == policy.NodeGone || n.Pool != pool {
			continue
		}
		if n.Market >= 0 {
			zones[s.Markets[n.Market].Zone] = true
		}
		if n.Usable() {
			f.Allocatable = f.Allocatable.Plus(n.Allocatable)
		}
		if n.Phase != policy.NodeInitialized {
			continue
		}
		units := workload.Units(s, n, share.CountsGPUs(s, pool))
		f.Nodes, f.Units = f.Nodes+1, f.Units+units
		if onSpot(s, n) {
			f.SpotNodes, f.SpotUnits = f.SpotNodes+1, f.SpotUnits+units
		}
	}
	for _, id := range s.Pools[pool].Markets {
		if m := &s.Markets[id]; !compat && m.Capacity == policy.Spot && m.Offered {
			zones[m.Zone] = true
		}
	}
	f.Zones = len(zones)
}

// plainSums are what the pods of a pool add up to. Startups are seconds and
// weights.
type plainSums struct {
	weight, workloads, single, penalty, priority float64
	startups                                     [][2]float64
	perNode                                      map[policy.PDBID]map[policy.NodeID]int
}

func (x *plainSums) add(s *policy.Snapshot, p *policy.Pod, compat bool, f *workload.Features) {
	t := &s.Templates[p.Template]
	w := float64(cmp.Or(max(0, t.Requests.CPU), 1000))
	x.weight += w
	x.penalty += w * plainPenalty(s, t)
	x.priority += w * plainPriority(t)
	if t.Startup > 0 {
		x.startups = append(x.startups, [2]float64{t.Startup.Seconds(), w})
	} else if p.ReadySince > p.Bound && p.Bound > 0 {
		x.startups = append(x.startups, [2]float64{float64(p.ReadySince-p.Bound) / 1000, w})
	}
	kind, replicas := owner(s, t)
	if t.DaemonSet || kind == policy.KindDaemonSet {
		return
	}
	x.workloads += w
	if kind != policy.KindJob && replicas <= 1 {
		x.single += w
	}
	f.Pods++
	if kind == policy.KindStatefulSet {
		f.Stateful++
	}
	if t.Critical || plainPriority(t) >= 0.75 {
		f.Critical++
		if onSpot(s, &s.Nodes[p.Node]) {
			f.CriticalOnSpot++
		}
	}
	free := true
	for k, b := range t.PDBs {
		if compat && k > 0 {
			break
		}
		free = free && plainAllowed(&s.PDBs[b], compat) > 0
		if x.perNode[b] == nil {
			x.perNode[b] = map[policy.NodeID]int{}
		}
		x.perNode[b][p.Node]++
	}
	if free {
		f.Evictable++
	}
}

func onSpot(s *policy.Snapshot, n *policy.Node) bool {
	return n.Market >= 0 && s.Markets[n.Market].Capacity == policy.Spot
}

func owner(s *policy.Snapshot, t *policy.Template) (policy.WorkloadKind, int32) {
	if t.Workload < 0 {
		return policy.KindBare, 1
	}
	return s.Workloads[t.Workload].Kind, s.Workloads[t.Workload].Replicas
}

func plainPenalty(s *policy.Snapshot, t *policy.Template) float64 {
	if t.OutagePenalty >= 0 {
		return t.OutagePenalty
	}
	kind, replicas := owner(s, t)
	hours := 4.0
	switch {
	case strings.Contains(t.PriorityClass, "-critical"):
		hours = 48
	case strings.Contains(t.PriorityClass, "high"):
		hours = 12
	case strings.Contains(t.PriorityClass, "low"):
		hours = 1
	}
	restricted := slices.ContainsFunc(s.PDBs, func(b policy.PDB) bool { return b.Namespace == t.Namespace && b.Healthy <= b.Desired })
	if restricted {
		hours *= 2
	}
	if kind == policy.KindStatefulSet {
		hours *= 2
	} else if kind == policy.KindDeployment && replicas >= 2 && !restricted {
		hours /= 2
	}
	return hours
}

func plainPriority(t *policy.Template) float64 {
	if t.MigrationTier >= 0 && t.MigrationTier <= 2 {
		return []float64{1, 0.5, 0.25}[t.MigrationTier]
	}
	for _, x := range []struct {
		part  string
		score float64
	}{{"system", 1}, {"high", 0.75}, {"low", 0.25}} {
		if strings.Contains(t.PriorityClass, x.part) {
			return x.score
		}
	}
	return 0.5
}

func plainAllowed(b *policy.PDB, compat bool) int {
	if compat {
		return int(b.Allowed)
	}
	if b.Expected == 0 {
		return int(b.Allowed)
	}
	return int(max(0, b.Expected-b.Desired))
}

func plainUtilization(used, of policy.Resources, compat bool) float64 {
	u := 0.0
	for i, c := range [][2]int64{{used.CPU, of.CPU}, {used.Memory, of.Memory}, {used.GPU, of.GPU}} {
		if c[1] > 0 && (i == 0 || !compat) {
			u = max(u, float64(c[0])/float64(c[1]))
		}
	}
	return min(1, u)
}

func plainPercentile(x [][2]float64) float64 {
	slices.SortFunc(x, func(a, b [2]float64) int { return cmp.Compare(a[0], b[0]) })
	total, sum := 0.0, 0.0
	for _, v := range x {
		total += v[1]
	}
	for _, v := range x {
		if sum += v[1]; sum*20 >= total*19 {
			return v[0]
		}
	}
	return 0
}

func plainSpread(allowed int, nodes map[policy.NodeID]int) workload.BudgetSpread {
	counts := []int{0, 0}
	for _, n := range nodes {
		counts = append(counts, n)
	}
	slices.Sort(counts)
	return workload.BudgetSpread{Allowed: allowed, Most: counts[len(counts)-1], Second: counts[len(counts)-2]}
}

// TestCollect compares the features of generated clusters with the plain form,
// with one scratch for all of them: nothing in it may reach a result.
func TestCollect(t *testing.T) {
	var sc workload.Scratch
	rapid.Check(t, func(t *rapid.T) {
		s := policytest.Snapshot().Draw(t, "snapshot")
		for i := range s.Templates {
			x := &s.Templates[i]
			x.PriorityClass = rapid.SampledFrom([]string{"", "low", "web-high", "system-node-critical", "system"}).Draw(t, "class")
			x.MigrationTier = rapid.SampledFrom([]int8{-1, -1, 0, 1, 2}).Draw(t, "tier")
			x.OutagePenalty = rapid.SampledFrom([]float64{-1, -1, 0, 10}).Draw(t, "penalty")
			x.Startup = time.Duration(rapid.SampledFrom([]int{0, 0, 90, 400}).Draw(t, "startup")) * time.Second
		}
		for i := range s.Pods {
			if p := &s.Pods[i]; p.Phase == policy.PodReady {
				p.ReadySince = s.Now
				p.Bound = s.Now.Add(-time.Duration(rapid.IntRange(1, 900_000).Draw(t, "ms")) * time.Millisecond)
			}
		}
		for _, compat := range []bool{false, true} {
			all := workload.Collect(s, workload.Options{Compat: compat}, &sc)
			for p := range s.Pools {
				got, want := all[p], plain(s, policy.PoolID(p), compat)
				if !alike(got, want) {
					t.Fatalf("compat %v, pool %d:\ngot  %+v\nwant %+v", compat, p, got, want)
				}
			}
		}
	})
}

// alike compares features, means to the last few bits.
func alike(a, b workload.Features) bool {
	for _, x := range [][2]float64{{a.Penalty, b.Penalty}, {a.Priority, b.Priority}, {a.Single, b.Single}} {
		if math.Abs(x[0]-x[1]) > 1e-9 {
			return false
		}
	}
	a.Penalty, a.Priority, a.Single = b.Penalty, b.Priority, b.Single
	return a == b
}

// TestStableShare checks that the share it returns is allowed by the safety at
// that share and, unless it is 1, that a little more is not.
func TestStableShare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := workload.Features{
			Nodes: rapid.IntRange(0, 40).Draw(t, "nodes"), Pods: rapid.IntRange(0, 3).Draw(t, "pods"),
			Utilization: rapid.Float64Range(0, 1).Draw(t, "utilization"), Critical: rapid.IntRange(0, 2).Draw(t, "critical"),
			Units: 10, SpotUnits: int64(rapid.IntRange(0, 10).Draw(t, "spot")),
		}
		f.CriticalOnSpot = rapid.IntRange(0, f.Critical).Draw(t, "criticalOnSpot")
		f.Safety = workload.Safety(workload.SafetyInput{
			Pods: f.Pods, Evictable: f.Pods, ZoneCount: 3, Critical: f.Critical, CriticalOnSpot: f.CriticalOnSpot,
			OnDemandNodes: f.Nodes, Utilization: f.Utilization, Restart: 30,
		}, false)
		x := f.StableShare()
		if x > 0 && f.SafetyAt(x).SafeMax < x {
			t.Fatalf("%v is not allowed: %+v", x, f.SafetyAt(x))
		}
		if more := x + 1e-4; x < 1 && f.SafetyAt(more).SafeMax >= more {
			t.Fatalf("%v would be allowed too, beyond %v: %+v", more, x, f.SafetyAt(more))
		}
	})
}

// TestSafety checks the corrected formula: a pool without budgets is unconstrained, and slack
// lowers the cap without freezing.
func TestSafety(t *testing.T) {
	in := workload.SafetyInput{OnDemandNodes: 10, Pods: 30, Evictable: 30, ZoneCount: 3, Restart: 30}
	if p := workload.Safety(in, false); p.SafeMax != 1 || p.Risk != 0 || p.Slack1 != 30 {
		t.Errorf("without budgets: %+v", p)
	}
	if p := workload.Safety(in, true); p.SafeMax != 0.35 || p.Risk != 0.70 {
		t.Errorf("without budgets, to the letter: %+v", p)
	}
	in.Budgets = []workload.BudgetSpread{{Allowed: 9, Most: 1}, {Allowed: 2, Most: 3, Second: 1}}
	if p := workload.Safety(in, false); p.SafeMax != 0.10 || p.Risk != 0 || p.Slack1 != -1 || p.Slack2 != -2 {
		t.Errorf("with a budget that one node breaks: %+v", p)
	}
	if p := workload.Safety(in, true); p.SafeMax != 0.10 || p.Risk != 0.95 {
		t.Errorf("with a budget that one node breaks, to the letter: %+v", p)
	}
}

// TestShare checks that the share counts vCPUs, and GPUs in a GPU pool, of the
// nodes that stay.
func TestShare(t *testing.T) {
	s := &policy.Snapshot{
		Zones: []string{"z"},
		Types: []policy.InstanceType{
			{Name: "c", VCPU: 8}, {Name: "g", VCPU: 4, Capacity: policy.Resources{GPU: 1}}, {Name: "h", VCPU: 96,
				Capacity: policy.Resources{GPU: 8}},
		},
		Markets: []policy.Market{{Type: 0}, {Type: 1}, {Type: 1, Capacity: policy.Spot}, {Type: 2, Capacity: policy.Spot}},
		Pools:   []policy.Pool{{Markets: []policy.MarketID{1, 2, 3}}, {Markets: []policy.MarketID{0, 1, 2}}},
		Nodes: []policy.Node{
			{Pool: 0, Market: 1, Phase: policy.NodeInitialized}, {Pool: 0, Market: 3, Phase: policy.NodeInitialized},
			{Pool: 0, Market: 3, Phase: policy.NodeDraining}, {Pool: 0, Market: 1, Phase: policy.NodeLaunching},
			{Pool: 1, Market: 0, Phase: policy.NodeInitialized}, {Pool: 1, Market: 2, Phase: policy.NodeInitialized}, {Phase: policy.NodeGone},
		},
	}
	if got := featuresOf(s, 0, workload.Options{}).Share(); got != 8.0/9 {
		t.Errorf("GPU pool: %v, want 8 of 9 GPUs", got)
	}
	if got := featuresOf(s, 1, workload.Options{}).Share(); got != 4.0/12 {
		t.Errorf("mixed pool: %v, want 4 of 12 vCPUs", got)
	}
}

// While a workload shrinks, pods that are still to be deleted count as healthy,
// and the budget allows their loss for a moment. That is no room of the pool.
func TestBudgetOfAShrinkingWorkloadGivesNoSlack(t *testing.T) {
	s := &policy.Snapshot{
		Pools: []policy.Pool{{Name: "p"}},
		Nodes: []policy.Node{{
			Market: policy.None, Phase: policy.NodeInitialized, Allocatable: policy.Resources{CPU: 4000, Memory: 1 << 34, Pods: 10},
		}},
		Workloads: []policy.Workload{{Kind: policy.KindDeployment, Replicas: 10}},
		Templates: []policy.Template{{
			Requests: policy.Resources{CPU: 1000}, PDBs: []policy.PDBID{0}, OutagePenalty: -1, MigrationTier: -1,
		}},
		PDBs: []policy.PDB{{Expected: 10, Desired: 9, Healthy: 20, Allowed: 11}},
		Pods: []policy.Pod{{Phase: policy.PodReady}, {ID: 1, Phase: policy.PodReady}},
	}
	if got := featuresOf(s, 0, workload.Options{}).Safety.Slack1; got != -1 {
		t.Errorf("slack after the loss of two of ten pods with one to spare is %v, want -1", got)
	}
	if got := featuresOf(s, 0, workload.Options{Compat: true}).Safety.Slack1; got != 9 {
		t.Errorf("compat: slack is %v, want the 11 allowed less the 2 on the node", got)
	}
}

// featuresOf returns the features of one pool.
func featuresOf(s *policy.Snapshot, pool policy.PoolID, o workload.Options) *workload.Features {
	return &workload.Collect(s, o, new(workload.Scratch))[pool]
}
