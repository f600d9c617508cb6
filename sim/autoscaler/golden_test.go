package autoscaler_test

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/policy/policytest"
	"github.com/spotter-dev/spotter/sim/autoscaler"
)

// A goldenState is one state of the golden vectors, whose README describes the fields.
type goldenState struct {
	ID         string           `json:"id"`
	Seed       int              `json:"seed"`
	Balance    bool             `json:"balance_similar"`
	Similarity string           `json:"similarity"`
	Groups     []goldenGroup    `json:"groups"`
	Nodes      []goldenNode     `json:"nodes"`
	Workloads  []goldenWorkload `json:"workloads"`
	Running    []goldenPod      `json:"running"`
	Pods       []goldenPod      `json:"pods"`
	PDBs       []struct {
		NS       string            `json:"ns"`
		Selector map[string]string `json:"selector"`
		Allowed  int32             `json:"disruptions_allowed"`
	} `json:"pdbs"`
	Priorities map[string][]string `json:"priority_list"`
	Expected   json.RawMessage     `json:"expected"`
}

type goldenSize struct {
	CPU    int64 `json:"cpu_m"`
	Memory int64 `json:"mem_mib"`
	Pods   int64 `json:"pods"`
}

func (s goldenSize) resources() policy.Resources {
	return policy.Resources{CPU: s.CPU, Memory: s.Memory << 20, Pods: s.Pods}
}

type goldenTaint struct{ Key, Value, Effect string }

type goldenGroup struct {
	Name           string
	Min, Max, Size int
	Capacity       goldenSize
	Allocatable    goldenSize
	Labels         map[string]string
	Taints         []goldenTaint
	Daemons        []goldenSize `json:"daemon_pods"`
}

type goldenNode struct {
	Name, Group string
	Labels      map[string]string
	Taints      []goldenTaint
	Annotations map[string]string
	NotReady    bool `json:"not_ready"`
	Cordoned    bool
}

type goldenWorkload struct {
	goldenSize
	Name, NS, Kind string
	Labels         map[string]string
	Selector       map[string]string
	Tolerations    []struct{ Key, Op, Value, Effect string }
	AntiHost       bool `json:"anti_host"`
	Spread         []struct {
		Key     string
		MaxSkew int32 `json:"max_skew"`
	}
	Priority    int32
	Annotations map[string]string
	Volumes     []struct{ Name, Type string }
	Pending     int
}

type goldenPod struct {
	Name, Workload, Node string
	Age                  int64  `json:"age_s"`
	Deleted              *int64 `json:"deleted_s"`
	Grace                int64  `json:"grace_s"`
}

// goldenStates reads the states of a file; those of an older version have its own expectations.
func goldenStates(t *testing.T, name, version string) []goldenState {
	t.Helper()
	states := goldenLines(t, name)
	if version == "" {
		return states
	}
	expected := make(map[string]json.RawMessage)
	for _, s := range goldenLines(t, name+"-"+version) {
		expected[s.ID] = s.Expected
	}
	states = slices.DeleteFunc(states, func(s goldenState) bool { return expected[s.ID] == nil })
	for i := range states {
		states[i].Expected = expected[states[i].ID]
	}
	return states
}

func goldenLines(t *testing.T, name string) (states []goldenState) {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(policytest.Golden(t, "cluster_autoscaler/"+name+".jsonl.gz")))
	if err != nil {
		t.Fatal(err)
	}
	for d := json.NewDecoder(r); d.More(); {
		var s goldenState
		if err := d.Decode(&s); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		states = append(states, s)
	}
	return states
}

// A goldenCluster is a state as the package under test takes it.
type goldenCluster struct {
	autoscaler.Cluster
	state   *goldenState
	pending []policy.Pod
}

var goldenNow = policy.TimeOf(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))

var goldenEffects = map[string]policy.TaintEffect{"": policy.EffectAny, "NoSchedule": policy.NoSchedule,
	"PreferNoSchedule": policy.PreferNoSchedule, "NoExecute": policy.NoExecute}

func sortedLabels(m map[string]string) (labels []policy.Label) {
	for _, k := range slices.Sorted(maps.Keys(m)) {
		labels = append(labels, policy.Label{Key: k, Value: m[k]})
	}
	return labels
}

func taintsOf(list []goldenTaint) (taints []policy.Taint) {
	for _, x := range list {
		taints = append(taints, policy.Taint{Key: x.Key, Value: x.Value, Effect: goldenEffects[x.Effect]})
	}
	return taints
}

func selectorOf(labels map[string]string) (s policy.Selector) {
	for _, l := range sortedLabels(labels) {
		s.Requirements = append(s.Requirements, policy.Requirement{Key: l.Key, Op: policy.OpIn, Values: []string{l.Value}})
	}
	return s
}

// load builds the cluster of s. Existing nodes carry the DaemonSet pods of their group where daemons is set.
func (s *goldenState) load(version autoscaler.Version, daemons bool) *goldenCluster {
	c := &goldenCluster{state: s}
	c.Options, c.Now = autoscaler.DefaultOptions(), goldenNow
	c.Version, c.Balance = version, s.Balance
	c.Draw = rand.New(rand.NewPCG(uint64(s.Seed), 1)).IntN
	if s.Similarity == "aws" {
		c.Ignored = []string{"alpha.eksctl.io/instance-id", "alpha.eksctl.io/nodegroup-name", "eks.amazonaws.com/nodegroup",
			"k8s.amazonaws.com/eniConfig", "lifecycle", "topology.ebs.csi.aws.com/zone"} // aws_nodegroups.go
	}
	for _, value := range slices.Sorted(maps.Keys(s.Priorities)) {
		n, _ := strconv.Atoi(value)
		p := autoscaler.Priority{Value: n}
		for _, name := range s.Priorities[value] {
			p.Names = append(p.Names, regexp.MustCompile(name))
		}
		c.Priorities = append(c.Priorities, p)
	}
	for i := range s.Workloads {
		c.addTemplate(&s.Workloads[i])
	}
	for _, b := range s.PDBs {
		c.addBudget(b.NS, b.Selector, b.Allowed)
	}
	c.Space = placement.New(c.Templates, nil)
	for i := range s.Groups {
		c.addGroup(&s.Groups[i])
	}
	for i := range s.Nodes {
		c.addNode(&s.Nodes[i], daemons)
	}
	for _, p := range slices.Concat(s.Running, s.Pods) {
		c.addPod(&p)
	}
	c.Free = policy.NodeID(len(c.Nodes))
	for i := range s.Workloads {
		for k := range s.Workloads[i].Pending {
			c.pending = append(c.pending, policy.Pod{ID: policy.PodID(len(c.Pods) + len(c.pending)),
				Name:     fmt.Sprintf("%s-%d", s.Workloads[i].Name, k),
				Template: policy.TemplateID(i), Phase: policy.PodPending, Node: policy.None, Nominated: policy.None, VolumeZone: policy.None})
		}
	}
	return c
}

func (c *goldenCluster) addTemplate(w *goldenWorkload) {
	t := policy.Template{ID: policy.TemplateID(len(c.Templates)), Workload: policy.None, Name: w.Name, Namespace: w.NS,
		Requests: w.resources(), Labels: sortedLabels(w.Labels), NodeSelector: sortedLabels(w.Selector), Priority: w.Priority}
	t.Requests.Pods = 1
	for _, x := range w.Tolerations {
		t.Tolerations = append(t.Tolerations, policy.Toleration{Key: x.Key, Exists: x.Op == "Exists", Value: x.Value,
			Effect: goldenEffects[x.Effect]})
	}
	app := selectorOf(map[string]string{"app": w.Labels["app"]})
	if w.AntiHost {
		t.PodAntiAffinity = []policy.PodTerm{{Selector: app, TopologyKey: "kubernetes.io/hostname"}}
	}
	for _, x := range w.Spread {
		t.Spread = append(t.Spread, policy.Spread{TopologyKey: x.Key, MaxSkew: x.MaxSkew, Selector: app})
	}
	safe := w.Annotations["cluster-autoscaler.kubernetes.io/safe-to-evict"]
	t.SafeToEvict, t.NotSafeToEvict = safe == "true", safe == "false"
	x := autoscaler.Traits{OnCompletion: safe == "on-completion", Owner: map[string]autoscaler.Owner{"Bare": autoscaler.OwnerNone,
		"DaemonSet": autoscaler.OwnerDaemonSet, "Custom": autoscaler.OwnerCustom, "Mirror": autoscaler.OwnerMirror,
		"ReplicaSet": autoscaler.OwnerReplicated, "StatefulSet": autoscaler.OwnerReplicated, "Job": autoscaler.OwnerReplicated}[w.Kind]}
	spared := strings.Split(w.Annotations["cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"], ",")
	for _, v := range w.Volumes {
		local := v.Type == "emptyDir" || v.Type == "hostPath"
		x.LocalStorage = x.LocalStorage || local && !slices.Contains(spared, v.Name)
	}
	c.Templates, c.Traits = append(c.Templates, t), append(c.Traits, x)
}

func (c *goldenCluster) addBudget(namespace string, labels map[string]string, allowed int32) {
	selector := selectorOf(labels)
	for i := range c.Templates {
		if t := &c.Templates[i]; t.Namespace == namespace && selector.Matches(t.Labels) {
			t.PDBs = append(t.PDBs, policy.PDBID(len(c.Allowed)))
		}
	}
	c.Allowed = append(c.Allowed, allowed)
}

func (c *goldenCluster) addGroup(g *goldenGroup) {
	x := autoscaler.Group{Name: g.Name, Min: g.Min, Max: g.Max, Size: g.Size, Capacity: g.Capacity.resources(),
		Allocatable: g.Allocatable.resources(), Labels: sortedLabels(g.Labels), Taints: taintsOf(g.Taints)}
	for _, d := range g.Daemons {
		x.Daemons = x.Daemons.Plus(d.resources()).Plus(policy.Resources{Pods: 1})
	}
	c.Groups = append(c.Groups, x)
}

func (c *goldenCluster) addNode(n *goldenNode, daemons bool) {
	at := slices.IndexFunc(c.Groups, func(g autoscaler.Group) bool { return g.Name == n.Group })
	g := &c.Groups[at]
	labels := sortedLabels(n.Labels)
	for _, l := range g.Labels {
		if _, own := n.Labels[l.Key]; !own {
			labels = append(labels, l)
		}
	}
	labels = append(labels, policy.Label{Key: "kubernetes.io/hostname", Value: n.Name})
	slices.SortFunc(labels, func(a, b policy.Label) int { return cmp.Compare(a.Key, b.Key) })
	x := &policy.Node{ID: policy.NodeID(len(c.Nodes)), Name: n.Name, Phase: policy.NodeInitialized, Allocatable: g.Allocatable,
		Labels: labels, Taints: slices.Concat(g.Taints, taintsOf(n.Taints))}
	if daemons {
		x.Allocatable = x.Allocatable.Minus(g.Daemons)
	}
	if n.Cordoned {
		x.Phase = policy.NodeDraining
	}
	c.Space.SetNode(x)
	c.Nodes = append(c.Nodes, autoscaler.Node{Node: x, Group: int32(at), Unready: n.NotReady,
		Disabled: n.Annotations["cluster-autoscaler.kubernetes.io/scale-down-disabled"] == "true"})
}

func (c *goldenCluster) addPod(p *goldenPod) {
	w := slices.IndexFunc(c.state.Workloads, func(w goldenWorkload) bool { return w.Name == p.Workload })
	n := policy.NodeID(slices.IndexFunc(c.Nodes, func(n autoscaler.Node) bool { return n.Name == p.Node }))
	x := policy.Pod{ID: policy.PodID(len(c.Pods)), Name: p.Name, Template: policy.TemplateID(w), Phase: policy.PodReady, Node: n,
		Nominated: policy.None, VolumeZone: policy.None, Created: goldenNow.Add(-time.Duration(p.Age) * time.Second)}
	if p.Deleted != nil {
		// A template has one grace period, and these pods have several: it goes into the instant.
		x.Phase, x.Deleting = policy.PodTerminating, goldenNow.Add(time.Duration(p.Grace-*p.Deleted)*time.Second)
	}
	c.Pods = append(c.Pods, x)
	c.Space.Bind(&c.Pods[x.ID], n)
}

// A tally counts right answers by kind, and keeps the seeds of wrong ones.
type tally struct {
	right, all map[string]int
	wrong      map[string][]int
	shown      int
}

func newTally() *tally {
	return &tally{right: map[string]int{}, all: map[string]int{}, wrong: map[string][]int{}}
}

func (y *tally) count(t *testing.T, kind string, s *goldenState, ok bool, format string, args ...any) {
	y.all[kind]++
	if ok {
		y.right[kind]++
		return
	}
	if len(y.wrong[kind]) == 0 || y.wrong[kind][len(y.wrong[kind])-1] != s.Seed {
		y.wrong[kind] = append(y.wrong[kind], s.Seed)
	}
	if y.shown++; y.shown <= 12 {
		t.Logf("%s, %s: %s", s.ID, kind, fmt.Sprintf(format, args...))
	}
}

// goldenShare is the least part of the answers of each kind that must be right.
const goldenShare = 0.99

func (y *tally) report(t *testing.T) {
	t.Helper()
	for _, kind := range slices.Sorted(maps.Keys(y.all)) {
		share := float64(y.right[kind]) / float64(y.all[kind])
		text := fmt.Sprintf("%s: %d of %d right (%.2f%%)", kind, y.right[kind], y.all[kind], 100*share)
		if len(y.wrong[kind]) > 0 {
			text += fmt.Sprintf("; seeds that differ: %v", y.wrong[kind])
		}
		if share < goldenShare {
			t.Errorf("%s, want at least %v%%", text, 100*goldenShare)
		} else {
			t.Log(text)
		}
	}
}

// The versions that the vectors hold.
var goldenVersions = map[string]autoscaler.Version{"": 37, "1.35.2": 35}
