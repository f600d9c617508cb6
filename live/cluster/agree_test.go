package cluster_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/models"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/registry"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/scenarios/trace"
	"github.com/spotter-dev/spotter/sim"
)

func newMilli(n int64) *resource.Quantity { return resource.NewMilliQuantity(n, resource.DecimalSI) }

// canon writes what s shows by names, since identifiers differ, leaving out what a
// cluster does not show: see the comment on each.
func canon(s *policy.Snapshot) []string {
	var all []string
	add := func(kind string, v any) {
		text, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		all = append(all, kind+" "+string(text))
	}
	name := func(n policy.NodeID) string {
		if n == policy.None {
			return ""
		}
		return s.Nodes[n].Name
	}
	for i := range s.Nodes {
		n := s.Nodes[i]
		if n.Phase == policy.NodeGone {
			continue
		}
		n.ID = 0
		// Karpenter says of nodes that they are initialized, and a cordon is a taint.
		n.Labels = slices.DeleteFunc(slices.Clone(n.Labels), func(l policy.Label) bool { return l.Key == "karpenter.sh/initialized" })
		n.Taints = slices.DeleteFunc(slices.Clone(n.Taints), func(t policy.Taint) bool { return t.Owner != policy.ActorNone })
		if len(n.Taints) == 0 {
			n.Taints = nil
		}
		n.Nominated, n.Deleting = 0, 0
		add("node", n)
	}
	for i := range s.Pods {
		p := s.Pods[i]
		if p.Phase == policy.PodGone {
			continue
		}
		text := fmt.Sprintf("%s of %s on %q for %q zone %d", p.Name, s.Templates[p.Template].Name, name(p.Node), name(p.Nominated), p.VolumeZone)
		p.ID, p.Node, p.Nominated, p.Template, p.UID = 0, 0, 0, 0, ""
		add("pod "+text, p)
	}
	for i := range s.Templates {
		t := s.Templates[i]
		text := t.Name
		for _, b := range t.PDBs {
			text += " " + s.PDBs[b].Name
		}
		if t.Workload != policy.None {
			text += " of " + s.Workloads[t.Workload].Name
		}
		t.ID, t.Workload, t.PDBs = 0, 0, nil
		add("template "+text, t)
	}
	for i := range s.Workloads {
		w := s.Workloads[i]
		if w.ID, w.UID = 0, ""; w.Kind == policy.KindDaemonSet {
			w.Replicas = 0 // the simulator leaves it open how many nodes there are
		}
		add("workload", w)
	}
	for i := range s.PDBs {
		b := s.PDBs[i]
		b.ID = 0
		add("pdb", b)
	}
	for i := range s.Pools {
		add("pool", s.Pools[i])
	}
	for i := range s.Budgets {
		add("budget", s.Budgets[i])
	}
	slices.Sort(all)
	return all
}

// differences returns the lines that only one of two sorted lists has.
func differences(a, b []string) []string {
	var out []string
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && a[0] < b[0]:
			out = append(out, "- "+a[0])
			a = a[1:]
		case len(a) == 0 || b[0] < a[0]:
			out = append(out, "+ "+b[0])
			b = b[1:]
		default:
			a, b = a[1:], b[1:]
		}
	}
	return out
}

// errEnough ends a run of the simulator.
var errEnough = errors.New("enough was compared")

// A comparer is the recorder of a simulated run: at regular steps it shows the cluster as objects
// to an observer and lets the policy decide again on the observer's snapshot.
type comparer struct {
	t         testing.TB
	manifests []client.Object
	policy    policy.Policy
	every     int
	steps     int
	compared  int
	acted     int // of those, the plans that do something
	most      int
}

func (c *comparer) Record(_ context.Context, s *policy.Snapshot, m *policy.Memory, plan *policy.Plan) error {
	c.steps++
	// Plans that do something are rarer and count for more.
	does := len(plan.Steers)+len(plan.Launches)+len(plan.Drains)+len(plan.DeletionCosts)+len(plan.Evicts)+len(plan.Gates)+len(plan.Pauses) > 0
	if !does && c.steps%c.every != 0 || does && c.steps%3 != 0 {
		return nil
	}
	seen := newMirror(c.t, c.manifests).show(s)
	if d := differences(canon(s), canon(seen)); d != nil {
		c.t.Fatalf("step %d at %v: the cluster is not seen as the simulator shows it (- simulator, + cluster):\n%s",
			c.steps, s.Now, strings.Join(d[:min(12, len(d))], "\n"))
	}
	// What the simulator ended is no object any more.
	for i := range s.Ended {
		e := s.Ended[i]
		e.Template = policy.TemplateID(slices.IndexFunc(seen.Templates,
			func(t policy.Template) bool { return t.Name == s.Templates[e.Template].Name }))
		seen.Ended = append(seen.Ended, e)
	}
	again, _ := c.policy.Decide(seen, *m)
	if a, b := plan.Format(s), again.Format(seen); a != b || plan.Wake != again.Wake {
		c.t.Fatalf("step %d at %v: other plans\nsimulator, wake %v:\n%s\ncluster, wake %v:\n%s", c.steps, s.Now, plan.Wake, a, again.Wake, b)
	}
	c.compared++
	if does {
		c.acted++
	}
	if c.compared >= c.most {
		return errEnough
	}
	return nil
}

// TestSimulatorAndLiveAgree shows the clusters of simulated runs as Kubernetes objects
// to the observer: what it sees is what the simulator shows, and the policy decides
// the same on it.
func TestSimulatorAndLiveAgree(t *testing.T) {
	tr, err := trace.Synthetic()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ scenario, policy string }{
		{"tiny", "karpetrack"}, {"web-week", "spotvortex"}, {"zone-outage", "portfolio"},
		{"squeeze", "rescheduler"}, {"monoculture", "leftover"}, {"stateful-zonal", "portfolio"}, {"asg-web", "portfolio"},
		{"gpu-inference", "static"},
	} {
		t.Run(c.scenario+" "+c.policy, func(t *testing.T) {
			sc, err := scenarios.Load(c.scenario)
			if err != nil {
				t.Fatal(err)
			}
			w, err := scenarios.Bind(sc, tr, scenarios.BindOptions{})
			if err != nil {
				t.Fatal(err)
			}
			w.WarmUp, w.Duration = min(w.WarmUp, time.Hour), min(w.Duration, 36*time.Hour)
			agree(t, w, c.scenario, c.policy)
		})
	}
}

func agree(t *testing.T, w *scenarios.BoundScenario, scenario, spec string) {
	t.Helper()
	var names []string
	for i := range w.Pools {
		names = append(names, w.Pools[i].Policy)
	}
	decider := func() policy.Policy {
		p, err := registry.New(spec, registry.Options{Manifests: names})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	stage, err := sim.Prepare(w)
	if err != nil {
		t.Fatal(err)
	}
	forecaster, err := models.NewClosedForm(models.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	c := &comparer{t: t, manifests: manifestsOf(t, scenario), policy: decider(), every: 31, most: 12}
	_, err = sim.Run(context.Background(), sim.Config{Prepared: stage, Policy: decider(), Forecaster: forecaster, Seed: 1, Recorder: c})
	if err != nil && !errors.Is(err, errEnough) {
		t.Fatal(err)
	}
	if c.compared < 5 {
		t.Errorf("only %d of %d steps were compared", c.compared, c.steps)
	}
	t.Logf("%d of %d steps compared, %d of them with something to do", c.compared, c.steps, c.acted)
}
