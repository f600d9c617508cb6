package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"sigs.k8s.io/karpenter/pkg/controllers/disruption"

	"github.com/spotter-dev/spotter/sim/karpenter"
)

// An action is what a method of disruption does to a state.
type action struct {
	// candidates are in order, ties as Karpenter took them; in order are those of Karpenter
	// that its method passes over, too.
	candidates, order []string

	nodes    []string // that go, sorted
	types    []string // of the replacement, sorted; empty without a replacement
	cheapest int64    // of the types, in millionths of a dollar an hour
	replaces bool
}

func (a *action) String() string {
	what := "nothing"
	switch {
	case a.replaces:
		what = fmt.Sprintf("replaces %v by one of %v from %d", a.nodes, a.types, a.cheapest)
	case len(a.nodes) > 0:
		what = fmt.Sprintf("deletes %v", a.nodes)
	}
	return fmt.Sprintf("%s; candidates %v", what, a.candidates)
}

// differ says in what two actions differ; empty where they are equal.
func (a *action) differ(b *action) string {
	switch {
	case !slices.Equal(a.candidates, b.candidates):
		return "candidates"
	case len(a.nodes) == 0 && len(b.nodes) > 0:
		return "done and not by Karpenter"
	case len(a.nodes) > 0 && len(b.nodes) == 0:
		return "done by Karpenter alone"
	case a.replaces != b.replaces:
		return "replaced or deleted"
	case !slices.Equal(a.nodes, b.nodes):
		return "nodes"
	case !slices.Equal(a.types, b.types):
		return "types"
	case a.cheapest != b.cheapest:
		return "cheapest"
	}
	return ""
}

// A passing validator accepts every command, since both sides decide at the same instant.
type passing struct{}

func (passing) Validate(_ context.Context, cmd disruption.Command, _ time.Duration) (disruption.Command, error) {
	return cmd, nil
}

// methods are those that are compared, in Karpenter's order.
var methods = [...]string{karpenter.Emptiness: "emptiness", karpenter.MultiNode: "multi",
	karpenter.SingleNode: "single"}

// method makes one of Karpenter's methods, which has looked at nothing yet.
func (c *cluster) method(m karpenter.Method, q *disruption.Queue) disruption.Method {
	base := disruption.MakeConsolidation(c.clock, c.state, c.client, c.provisioner, c.provider, silence{}, q)
	with := disruption.WithValidator(passing{})
	switch m {
	case karpenter.Emptiness:
		return disruption.NewEmptiness(base, with)
	case karpenter.MultiNode:
		return disruption.NewMultiNodeConsolidation(base, with)
	}
	return disruption.NewSingleNodeConsolidation(base, with)
}

// disrupt asks one of Karpenter's methods for what it does, as Controller.disrupt does.
func (c *cluster) disrupt(s *State, m karpenter.Method) (*action, error) {
	q := disruption.NewQueue(c.client, silence{}, c.state, c.clock, c.provisioner)
	method := c.method(m, q)
	list, err := c.candidates(s, method, q)
	if err != nil {
		return nil, fmt.Errorf("listing candidates: %w", err)
	}
	a := new(action)
	if len(list) == 0 {
		return a, nil
	}
	budgets, err := disruption.BuildDisruptionBudgetMapping(c.ctx, c.state, c.clock, c.client, c.provider, silence{},
		method.Reason())
	if err != nil {
		return nil, fmt.Errorf("reading budgets: %w", err)
	}
	cmds, err := method.ComputeCommands(c.ctx, budgets, list...)
	if err != nil {
		return nil, fmt.Errorf("deciding: %w", err)
	}
	for _, x := range list { // sorted in place
		if a.order = append(a.order, x.Name()); !c.skips(m, x) {
			a.candidates = append(a.candidates, x.Name())
		}
	}
	if len(cmds) > 0 {
		a.take(&cmds[0])
	}
	return a, nil
}

func (a *action) take(cmd *disruption.Command) {
	for _, x := range cmd.Candidates {
		a.nodes = append(a.nodes, x.Name())
	}
	slices.Sort(a.nodes)
	for _, r := range cmd.Replacements {
		a.replaces = true
		for i, t := range r.InstanceTypeOptions {
			a.types = append(a.types, t.Name)
			if i > 0 {
				continue
			}
			if of := t.Offerings.Available().Compatible(r.Requirements); len(of) > 0 {
				a.cheapest = int64(of.Cheapest().Price*1e6 + .5)
			}
		}
	}
	slices.Sort(a.types)
}

// A contest is what came of one method on one state.
type contest struct {
	method     karpenter.Method
	difference string // empty where the two are equal
	runs       int
	ours       *action
	theirs     *action
	saved      int64 // what Karpenter's action saves an hour at the cheapest prices
	more       int64 // what Spotter's saves more
}

// compareDisruption asks both what each method does to s. Among equals Karpenter takes
// any, by the order of Go's maps: Spotter is right where it does what Karpenter did once.
func compareDisruption(s *State) ([]contest, error) {
	c, err := newCluster(s)
	if err != nil {
		return nil, fmt.Errorf("state %d: %w", s.Seed, err)
	}
	v := newDisruptionView(s)
	var all []contest
	for m := range karpenter.Methods {
		x := contest{method: m}
		for x.difference = "-"; x.difference != "" && x.runs < runsMax; {
			if x.theirs, err = c.disrupt(s, m); err != nil {
				return nil, fmt.Errorf("state %d, %s: %w", s.Seed, methods[m], err)
			}
			x.runs++
			v.compete(&x)
		}
		x.saved = v.saves(x.theirs)
		x.more = v.saves(x.ours) - x.saved
		all = append(all, x)
	}
	return all, nil
}

// compete has Spotter act as often as there are orders in which it may take pools and
// domains, until it does what Karpenter did.
func (v *disruptionView) compete(x *contest) {
	tries := 1
	if x.method == karpenter.SingleNode {
		tries = factorial(len(v.s.Pools))
	}
	for draw := range 4 {
		for turn := range tries {
			x.ours = v.act(x.method, x.theirs, permutation(len(v.s.Pools), turn), draw)
			if x.difference = x.theirs.differ(x.ours); x.difference == "" || x.difference == "candidates" {
				return
			}
		}
		if !v.drawn {
			return
		}
	}
}

func factorial(n int) int {
	if n < 2 {
		return 1
	}
	return n * factorial(n-1)
}

// generateDisruption draws a state in which there is more to disrupt than in one for
// scheduling: most pods run, nodes have lost some, and most were left alone for long.
func generateDisruption(seed uint64) *State {
	s := generate(seed)
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 0xd15)), s: s}
	if g.chance(20) {
		return s
	}
	if g.chance(60) && !s.has("label domains") {
		for i := range s.Workloads {
			w := &s.Workloads[i]
			w.Spread, w.Affinity, w.Anti = nil, nil, nil
		}
	}
	if g.chance(75) {
		for i := range s.Pools {
			p := &s.Pools[i]
			p.Taints = nil
			if !s.has("min values") {
				p.Requirements = nil
			}
			if !s.has("limits") {
				p.CPUMax, p.MemoryMax, p.NodesMax, p.GPUMax = 0, 0, 0, 0
			}
			p.Budgets = []Budget{{Nodes: pick(g, "100%", "100%", "60%")}}
			p.Policy = known(pick(g, "WhenEmptyOrUnderutilized", "WhenEmptyOrUnderutilized", "Balanced"))
		}
		s.PDBs = nil
		for i := range s.Workloads {
			w := &s.Workloads[i]
			w.Selector, w.Required = nil, nil
			if !s.has("host ports") {
				w.HostPorts = nil
			}
		}
		for i := range s.Pods {
			s.Pods[i].DoNotDisrupt = false
		}
	}
	gone := pick(g, 0, 0, 30, 60)
	s.Pods = slices.DeleteFunc(s.Pods, func(p Pod) bool {
		return p.Node == "" && g.chance(95) || p.Node != "" && !s.Workloads[p.Workload].Daemon && g.chance(gone)
	})
	for i := range s.Nodes {
		if n := &s.Nodes[i]; n.Phase == "initialized" && g.chance(80) {
			n.Age += 600
			n.Initialized, n.LastPodEvent, n.Consolidable = n.Age-30, 500+g.Int64N(60), true
			n.Nominated, n.Deleting, n.DoNotDisrupt = false, g.chance(2), false
		}
	}
	for i := range s.Pools {
		if g.chance(35) {
			s.Pools[i].Budgets = g.budgets()
		}
	}
	return s
}

// budgets draws the budgets of a pool, most of them for some reasons only and some of
// them for a part of the time. The strictest that is in force and has the reason holds.
func (g *generator) budgets() []Budget {
	var list []Budget
	for range 1 + g.IntN(3) {
		b := Budget{Nodes: pick(g, "0", "1", "2", "3", "10%", "50%", "100%")}
		if g.chance(75) {
			b.Reasons = some(g, []string{"Empty", "Underutilized", "Drifted"})
		}
		switch { // it is Monday, noon
		case g.chance(15):
			b.Schedule, b.Duration = pick(g, "0 9 * * mon-fri", "0 12 * * *", "@weekly"), 40*3600
		case g.chance(15):
			b.Schedule, b.Duration = pick(g, "0 9 * * mon-fri", "0 0 * * *", "0 12 * * sat"), pick[int64](g, 1800, 3*3600)
		}
		list = append(list, b)
	}
	return list
}
