package cluster_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/live/cluster"
	"github.com/spotter-dev/spotter/live/drain"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// TestWhoActs reads the marks that others, and we, leave on nodes.
func TestWhoActs(t *testing.T) {
	deleted := func(n *corev1.Node) { n.DeletionTimestamp = &metav1.Time{Time: epoch} }
	cordoned := func(n *corev1.Node) { n.Spec.Unschedulable = true }
	annotated := func(k string) func(*corev1.Node) { return func(n *corev1.Node) { n.Annotations[k] = "x" } }
	silent := func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown }
	for _, c := range []struct {
		name   string
		change []func(*corev1.Node)
		phase  policy.NodePhase
		actor  policy.Actor
	}{
		{"nobody", nil, policy.NodeInitialized, policy.ActorNone},
		{"a person cordons", []func(*corev1.Node){cordoned}, policy.NodeInitialized, policy.ActorPerson},
		{"we have ordered a drain", []func(*corev1.Node){annotated(drain.AnnotationDrain)}, policy.NodeInitialized, policy.ActorUs},
		{"we drain", []func(*corev1.Node){annotated(drain.AnnotationDrain), cordoned, tainted(drain.TaintDraining)},
			policy.NodeDraining, policy.ActorUs},
		{"we drain what Karpenter then deletes", []func(*corev1.Node){annotated(drain.AnnotationDrain),
			tainted("karpenter.sh/disrupted"), tainted(drain.TaintDraining)}, policy.NodeDraining, policy.ActorUs},
		{"Karpenter waits for a replacement", []func(*corev1.Node){tainted("karpenter.sh/disrupted")},
			policy.NodeInitialized, policy.ActorKarpenter},
		{"Karpenter drains", []func(*corev1.Node){tainted("karpenter.sh/disrupted"), deleted}, policy.NodeDraining, policy.ActorKarpenter},
		{"the Cluster Autoscaler drains", []func(*corev1.Node){tainted("ToBeDeletedByClusterAutoscaler")},
			policy.NodeDraining, policy.ActorClusterAutoscaler},
		{"the Cluster Autoscaler thinks", []func(*corev1.Node){tainted("DeletionCandidateOfClusterAutoscaler")},
			policy.NodeInitialized, policy.ActorNone},
		{"NTH drains", []func(*corev1.Node){tainted("aws-node-termination-handler/scheduled-maintenance"), cordoned},
			policy.NodeDraining, policy.ActorNTH},
		{"it does not answer", []func(*corev1.Node){silent}, policy.NodeInitialized, policy.ActorNone},
		{"it has not joined yet", []func(*corev1.Node){func(n *corev1.Node) {
			delete(n.Labels,
				"karpenter.sh/initialized")
		}}, policy.NodeRegistered, policy.ActorNone},
	} {
		t.Run(c.name, func(t *testing.T) {
			busy := pod("w", "n")
			l := newLab(t, capacityPool("p"), node("n", c.change...), busy)
			n := nodeIn(t, l.observe(0), "n")
			if n.Phase != c.phase || n.ActedBy != c.actor {
				t.Errorf("it is %v, acted on by %v; want %v, %v", n.Phase, n.ActedBy, c.phase, c.actor)
			}
			if c.name == "Karpenter drains" {
				l.remove(busy)
				if n := nodeIn(t, l.observe(time.Second), "n"); n.Phase != policy.NodeDeleting {
					t.Errorf("an empty node that is being deleted is %v", n.Phase)
				}
			}
			if want := c.name == "it does not answer"; n.NotReady != want {
				t.Errorf("not ready is %v", n.NotReady)
			}
		})
	}
}

// TestNodeOfPool reads pool, market, size and times of a node.
func TestNodeOfPool(t *testing.T) {
	l := newLab(t, capacityPool("p"), node("n"), node("other", func(n *corev1.Node) {
		n.Labels["karpenter.sh/nodepool"], n.Labels["karpenter.sh/capacity-type"] = "theirs", "on-demand"
	}))
	s := l.observe(0)
	n := nodeIn(t, s, "n")
	if n.Pool != 0 || s.Markets[n.Market].Name != "aws/us-east-1/us-east-1a/m5.xlarge/spot" ||
		n.Allocatable.CPU != 3900 || n.VolumesMax != 25 {
		t.Errorf("%+v", n)
	}
	if n.Registered != at(-time.Hour) || n.Initialized != at(-50*time.Minute) || n.Launched != n.Registered {
		t.Errorf("registered %v, initialized %v, launched %v", n.Registered, n.Initialized, n.Launched)
	}
	if _, has := n.Label("kubernetes.io/hostname"); has {
		t.Error("the name of the node is among its labels")
	}
	if used := s.Pools[0].Used; used.CPU != 4000 {
		t.Errorf("the pool uses %+v", used)
	}
	o := nodeIn(t, s, "other")
	if o.Pool != policy.None || s.Markets[o.Market].Capacity != policy.OnDemand {
		t.Errorf("%+v", o)
	}
}

// TestMachineBecomesNode follows a node from its order to its end: it keeps its
// slot, in whichever order backend and API server report it.
func TestMachineBecomesNode(t *testing.T) {
	machine := backend.Machine{Name: "claim", Pool: "p", Market: "aws/us-east-1/us-east-1a/m5.xlarge/spot", Token: "t1",
		Phase: policy.NodeLaunching, Launched: at(time.Minute)}
	l := newLab(t, capacityPool("p"))
	l.observe(0)
	l.observer.SetMachine("karpenter", machine)
	s := l.observe(time.Minute)
	n := nodeIn(t, s, "claim")
	slot := n.ID
	if n.Phase != policy.NodeLaunching || n.Allocatable.CPU != 4000 || n.Pool != 0 || n.Launched != at(time.Minute) || len(n.Labels) == 0 {
		t.Fatalf("%+v", n)
	}
	if l.met(backend.MetLaunch) != 0 {
		t.Error("an order counts as a launch")
	}
	machine.ProviderID, machine.Phase = "aws:///us-east-1a/i-n", policy.NodeRegistered
	l.observer.SetMachine("karpenter", machine)
	l.put(node("n"))
	if n := nodeIn(t, l.observe(2*time.Minute), "n"); n.ID != slot || n.Token != "t1" || n.Launched != at(time.Minute) ||
		n.Phase != policy.NodeInitialized {
		t.Errorf("%+v, want slot %d", n, slot)
	}

	// The Node object first, and a machine that learns only then which it is.
	other := backend.Machine{Name: "claim2", Pool: "p", Market: machine.Market, Phase: policy.NodeLaunching, Launched: at(time.Minute)}
	l.observer.SetMachine("karpenter", other)
	l.put(node("m"))
	if s := l.observe(3 * time.Minute); nodeIn(t, s, "claim2").ID == nodeIn(t, s, "m").ID {
		t.Error("two nodes are in one slot")
	}
	other.Node, other.ProviderID = "m", "aws:///us-east-1a/i-m"
	l.observer.SetMachine("karpenter", other)
	s = l.observe(4 * time.Minute)
	if nodeIn(t, s, "m").Launched != at(time.Minute) || count(s) != 2 {
		t.Errorf("%d nodes, and %+v", count(s), nodeIn(t, s, "m"))
	}
	slots := len(s.Nodes)
	l.put(node("z"))
	if s := l.observe(4*time.Minute + time.Second); len(s.Nodes) != slots {
		t.Errorf("the slot that was left is not used again: %d slots, then %d", slots, len(s.Nodes))
	}
	l.remove(l.objects["node z"])
	if n := l.met(backend.MetLaunch); n != 3 {
		t.Errorf("%d launches count, want 3", n)
	}

	l.remove(l.objects["node n"])
	if n := nodeIn(t, l.observe(5*time.Minute), "claim"); n.Phase != policy.NodeDeleting {
		t.Errorf("a machine whose node is gone is %v", n.Phase)
	}
	l.observer.DropMachine("karpenter", "claim")
	if s := l.observe(6 * time.Minute); count(s) != 1 {
		t.Errorf("%d nodes are left", count(s))
	}
}

func count(s *policy.Snapshot) int {
	n := 0
	for i := range s.Nodes {
		if s.Nodes[i].Live() {
			n++
		}
	}
	return n
}

// TestNotices takes warnings from all who give them, each once.
func TestNotices(t *testing.T) {
	l := newLab(t, capacityPool("p"), node("n"), node("g"), node("r"))
	l.observe(0)
	l.wakes()
	l.put(node("g", tainted("cloud.google.com/impending-node-termination")))
	l.clock.SetTime(epoch.Add(time.Minute))
	l.observer.Notice(backend.Notice{Machine: "i-n", At: at(time.Minute), ReclaimAt: at(3 * time.Minute), Source: "sqs",
		ActedBy: policy.ActorKarpenter})
	l.observer.Notice(backend.Notice{Machine: "aws:///us-east-1a/i-n", At: at(time.Minute), ReclaimAt: at(3 * time.Minute), Source: "sqs"})
	l.observer.Notice(backend.Notice{Machine: "r", At: at(time.Minute), Source: "sqs"})
	l.observer.Notice(backend.Notice{Machine: "i-late", At: at(time.Minute), ReclaimAt: at(3 * time.Minute), Source: "sqs"})
	if got := l.wakes(); !slices.Equal(got, []string{"notice", "rebalance"}) {
		t.Errorf("it wakes for %v", got)
	}
	s := l.observe(time.Minute)
	if n := nodeIn(t, s, "n"); n.NoticeAt != at(time.Minute) || n.ReclaimAt != at(3*time.Minute) ||
		n.ActedBy != policy.ActorKarpenter || n.Usable() {
		t.Errorf("%+v", n)
	}
	if g := nodeIn(t, s, "g"); g.ReclaimAt != at(30*time.Second) || g.NoticeAt != at(0) {
		t.Errorf("%+v", g)
	}
	if r := nodeIn(t, s, "r"); r.Recommended != at(time.Minute) || r.ReclaimAt != 0 {
		t.Errorf("%+v", r)
	}
	l.put(node("late"))
	if n := nodeIn(t, l.observe(2*time.Minute), "late"); n.ReclaimAt != at(3*time.Minute) {
		t.Errorf("a notice that came before its node is forgotten: %+v", n)
	}
	if n := l.met(backend.MetReclaim); n != 3 {
		t.Errorf("%d reclaims count, want 3", n)
	}
	l.remove(l.objects["node n"])
	l.observe(3 * time.Minute)
	if got := l.wakes(); !slices.Contains(got, "lost-node") {
		t.Errorf("it wakes for %v", got)
	}
	if n := l.met(backend.MetReclaim); n != 3 {
		t.Errorf("a node that was announced and is gone counts twice: %d", n)
	}
	if n := nodeIn(t, l.observe(20*time.Minute), "late"); n.ReclaimAt != 0 {
		t.Errorf("a node that works on long after its end is still under notice: %+v", n)
	}
}

// TestUnclaimedNodesAreNobodys clears the actor of a node that another controller was expected to
// drain and did not, and wakes for it once.
func TestUnclaimedNodesAreNobodys(t *testing.T) {
	l := newLab(t, capacityPool("p"), node("n"))
	warning := backend.Notice{Machine: "i-n", At: at(0), ReclaimAt: at(2 * time.Minute), Source: "sqs", ActedBy: policy.ActorNTH}
	l.observer.Notice(warning)
	if n := nodeIn(t, l.observe(time.Second), "n"); n.ActedBy != policy.ActorNTH {
		t.Errorf("%+v", n)
	}
	l.wakes()
	warning.ActedBy, warning.Unclaimed = policy.ActorNone, true
	l.observer.Notice(warning)
	l.observer.Notice(warning)
	if got := l.wakes(); !slices.Equal(got, []string{"notice"}) {
		t.Errorf("it wakes for %v", got)
	}
	if n := nodeIn(t, l.observe(5*time.Second), "n"); n.ActedBy != policy.ActorNone || n.ReclaimAt != warning.ReclaimAt {
		t.Errorf("%+v", n)
	}
}

// TestExperienceOverRestart counts what happened while no process was observing, and nothing twice.
func TestExperienceOverRestart(t *testing.T) {
	l := newLab(t, capacityPool("p"))
	for i := range l.book.s.Markets {
		l.book.s.Markets[i].Experience = policy.Experience{At: at(-40 * time.Minute), Reclaimed: at(-30 * time.Minute)}
	}
	old, young := node("old"), node("young")
	young.CreationTimestamp.Time = epoch.Add(-20 * time.Minute)
	l.put(old, young)
	l.observer.Notice(backend.Notice{Machine: "old", At: at(-30 * time.Minute), ReclaimAt: at(time.Minute)})
	l.observer.Notice(backend.Notice{Machine: "young", At: at(-5 * time.Minute), ReclaimAt: at(time.Minute)})
	l.observe(0)
	if a, b := l.met(backend.MetLaunch), l.met(backend.MetReclaim); a != 1 || b != 1 {
		t.Errorf("%d launches and %d reclaims count, want 1 and 1", a, b)
	}
	l.observer.Meet(backend.Event{Kind: backend.MetLaunch, Market: "x"})
	l.observer.Meet(backend.Event{Kind: backend.MetReclaim, Market: "x"})
	l.observer.Meet(backend.Event{Kind: backend.MetRefusal, Pool: "p", Market: "x", At: at(0)})
	if a, b, c := l.met(backend.MetLaunch), l.met(backend.MetReclaim), l.met(backend.MetRefusal); a != 1 || b != 1 || c != 1 {
		t.Errorf("of what a backend reports %d, %d, %d count", a, b, c)
	}
	if s := l.observe(time.Second); s.Pools[0].Refused != at(0) {
		t.Errorf("the refusal does not show in the pool: %v", s.Pools[0].Refused)
	}
}

// TestLostWithoutNotice distinguishes nodes that the provider took from nodes that were deleted in
// another way.
func TestLostWithoutNotice(t *testing.T) {
	silent := func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown }
	for _, c := range []struct {
		name   string
		change []func(*corev1.Node)
		counts int
		wakes  bool
	}{
		{"it fell silent", []func(*corev1.Node){silent}, 1, true},
		{"somebody deleted it", nil, 0, true},
		{"we gave it back", []func(*corev1.Node){silent, tainted(drain.TaintDraining)}, 0, false},
		{"Karpenter gave it back", []func(*corev1.Node){silent, tainted("karpenter.sh/disrupted")}, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t, capacityPool("p"), node("n", c.change...), pod("w", "n"))
			l.observe(0)
			l.wakes()
			l.remove(l.objects["node n"])
			s := l.observe(time.Minute)
			if n := l.met(backend.MetReclaim); n != c.counts {
				t.Errorf("%d reclaims count, want %d", n, c.counts)
			}
			if got := slices.Contains(l.wakes(), "lost-node"); got != c.wakes {
				t.Errorf("it wakes: %v", got)
			}
			if p := podIn(t, s, "a/w"); p.Phase != policy.PodTerminating || p.Node != policy.None {
				t.Errorf("the pod of a node that is gone is %v on %d", p.Phase, p.Node)
			}
			l.remove(l.objects["pod a/w"])
			s = l.observe(2 * time.Minute)
			want := policy.EndUnknown
			if c.counts > 0 {
				want = policy.EndReclaimed
			}
			if len(s.Ended) != 1 || s.Ended[0].Cause != want || s.Ended[0].Node != "n" || s.Ended[0].Start != at(-29*time.Minute) {
				t.Errorf("it ended as %+v", s.Ended)
			}
		})
	}
}

// TestRule17Conflicts finds pools that lay claim to the same nodes.
func TestRule17Conflicts(t *testing.T) {
	groups := func(tags map[string]string) func(*v1alpha1.CapacityPool) {
		return func(p *v1alpha1.CapacityPool) {
			p.Spec.Backend = v1alpha1.Backend{AutoScalingGroups: &v1alpha1.AutoScalingGroupsBackend{DiscoveryTags: tags}}
		}
	}
	l := newLab(t, capacityPool("k"), capacityPool("a", groups(map[string]string{"x": "1"})),
		capacityPool("b", groups(map[string]string{"x": "1", "y": "2"})),
		capacityPool("c", groups(map[string]string{"x": "2"})))
	l.observe(0)
	got := l.observer.Conflicts()
	if len(got) != 2 || got["a"] == "" || got["b"] == "" {
		t.Errorf("conflicts: %v", got)
	}
	l.put(capacityPool("b", groups(map[string]string{"x": "3"}), func(p *v1alpha1.CapacityPool) { p.Generation = 2 }))
	l.observe(time.Second)
	if got := l.observer.Conflicts(); len(got) != 0 {
		t.Errorf("conflicts that are mended: %v", got)
	}
}

// TestRule18YoungNodes counts a young node of Karpenter as nominated, by the instant of
// its snapshot, which is later than that at which it was begun.
func TestRule18YoungNodes(t *testing.T) {
	young := node("n")
	young.CreationTimestamp.Time = epoch
	l := newLab(t, capacityPool("p", func(p *v1alpha1.CapacityPool) {
		p.Spec.Disruption.ConsolidateAfter = &metav1.Duration{Duration: 2 * time.Minute}
	}), young)
	const takes = 3 * time.Millisecond
	l.book.filling = func() { l.clock.SetTime(l.clock.Now().Add(takes)) }
	for _, c := range []struct {
		after time.Duration
		want  policy.Time
	}{{149 * time.Second, at(149*time.Second + takes)}, {150*time.Second - takes, 0}} {
		if n := nodeIn(t, l.observe(c.after), "n"); n.Nominated != c.want {
			t.Errorf("after %v it was nominated at %v, want %v", c.after, n.Nominated, c.want)
		}
	}
}

// TestUnpricedNodes says of how many nodes of a pool the market is not known, and why of
// one: a pool must not seem well with none.
func TestUnpricedNodes(t *testing.T) {
	l, book, clock, _ := newBookLab(t)
	if err := book.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	without := func(label string) func(*corev1.Node) {
		return func(n *corev1.Node) { delete(n.Labels, label) }
	}
	observe := func() *policy.Snapshot {
		clock.Step(time.Second)
		s, err := l.observer.Observe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	priced := func() metav1.Condition {
		all := l.observer.Conditions("p")
		i := slices.IndexFunc(all, func(c metav1.Condition) bool { return c.Type == cluster.ConditionPriced })
		return all[i]
	}
	region := without("topology.kubernetes.io/region")
	l.put(capacityPool("p"), node("a", region), node("b", region, func(n *corev1.Node) {
		n.Labels["node.kubernetes.io/instance-type"], n.Labels["karpenter.sh/capacity-type"] = "m5.large", "on-demand"
	}))
	observe()
	if c := priced(); c.Status != metav1.ConditionTrue {
		t.Errorf("before the book was asked: %+v", c)
	}
	if n := nodeIn(t, observe(), "a"); n.Market == policy.None {
		t.Errorf("a node without a region label is of no market: %+v", n)
	}
	if c := priced(); c.Status != metav1.ConditionTrue || c.Reason != "AllPriced" {
		t.Errorf("with a market for each: %+v", c)
	}
	l.put(node("b", without("topology.kubernetes.io/zone")), node("c",
		func(n *corev1.Node) { n.Labels["node.kubernetes.io/instance-type"] = "z9.huge" }))
	observe()
	observe()
	want := "2 of 3 nodes are in no known market, so they are neither managed nor counted: node b has no label topology.kubernetes.io/zone"
	if c := priced(); c.Status != metav1.ConditionFalse || c.Reason != "UnpricedNodes" || c.Message != want {
		t.Errorf("%+v", c)
	}
	l.remove(l.objects["node b"])
	observe()
	want = "node c is spot z9.huge in zone us-east-1a of us-east-1, for which neither a price source nor the catalog of aws has a price"
	if c := priced(); !strings.HasPrefix(c.Message, "1 of 2 nodes") || !strings.HasSuffix(c.Message, want) {
		t.Errorf("%+v", c)
	}
}

// TestPoolChangeWakes: a pool that is made, changed or deleted has a step at once; its
// status does not, and neither do those that were there when all was read first.
func TestPoolChangeWakes(t *testing.T) {
	l := newLab(t, capacityPool("p"), node("n"))
	changed := func(what string, want bool) {
		t.Helper()
		if got := slices.Contains(l.wakes(), "pool-changed"); got != want {
			t.Errorf("%s: a step is asked for: %v", what, got)
		}
	}
	l.observe(0)
	changed("at first", false)
	l.put(capacityPool("p", func(p *v1alpha1.CapacityPool) { p.Status.Nodes = 7 }))
	changed("its status changes", false)
	l.put(capacityPool("p", func(p *v1alpha1.CapacityPool) { p.Generation = 2 }))
	changed("its spec changes", true)
	l.put(capacityPool("p", func(p *v1alpha1.CapacityPool) { p.Generation, p.Annotations = 2, map[string]string{"a": "b"} }))
	changed("its annotations change", true)
	l.put(capacityPool("q"))
	changed("another is made", true)
	l.remove(capacityPool("q"))
	changed("it is deleted", true)
}
