package guard_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/guard"
	"github.com/spotter-dev/spotter/policy/policytest"
)

// A scripted policy plans what its script says: words joined by "+".
//
//	n1        drain n1
//	n1@2      launch in market 2, and drain n1 once it is there
//	n1/2      launch in market 2 for n1, and drain n1 at once
//	n1~0      drain n1 once the launch of the first word is there
//	n1=empty  drain n1 for that reason
//	steer=0.5 steer every pool to that share
//	buy=2     launch in market 2 for pending pods
type scripted string

func (p scripted) Name() string { return "scripted" }

func (p scripted) Decide(s *policy.Snapshot, m policy.Memory) (policy.Plan, policy.Memory) {
	plan := policy.Plan{Wake: s.Now + 1}
	m.Decisions++
	if p == "" {
		return plan, m
	}
	why := policy.Why{Reason: policy.ReasonShare, Text: "as the script says", Before: 2, After: 1}
	for i, word := range strings.Split(string(p), "+") {
		name, value, isReason := strings.Cut(word, "=")
		switch name {
		case "steer":
			share, err := strconv.ParseFloat(value, 64)
			if err != nil {
				panic(err)
			}
			for k := range s.Pools {
				plan.Steers = append(plan.Steers, policy.Steer{Pool: policy.PoolID(k), Share: share, Why: why})
			}
			continue
		case "buy":
			plan.Launches = append(plan.Launches, launch(i, value, policy.None, policy.Why{Reason: policy.ReasonShortage, Text: "pods wait"}))
			continue
		}
		d := policy.Drain{Why: why}
		if isReason {
			d.Why.Reason = policy.Reason(value)
		}
		name, market, after := strings.Cut(name, "@")
		name, atOnce, parallel := strings.Cut(name, "/")
		name, earlier, shared := strings.Cut(name, "~")
		d.Node = nodeCalled(s, name)
		if after || parallel {
			l := launch(i, market+atOnce, d.Node, why)
			plan.Launches = append(plan.Launches, l)
			if after {
				d.After = []string{l.Token}
			}
		}
		if shared {
			d.After = []string{"token" + earlier}
		}
		plan.Drains = append(plan.Drains, d)
	}
	return plan, m
}

func launch(i int, market string, replaces policy.NodeID, why policy.Why) policy.Launch {
	m, err := strconv.Atoi(market)
	if err != nil {
		panic(err)
	}
	return policy.Launch{Token: fmt.Sprint("token", i), Markets: []policy.MarketID{policy.MarketID(m)}, Replaces: replaces, Why: why}
}

func nodeCalled(s *policy.Snapshot, name string) policy.NodeID {
	i := slices.IndexFunc(s.Nodes, func(n policy.Node) bool { return n.Name == name })
	if i < 0 {
		panic("no node " + name)
	}
	return policy.NodeID(i)
}

func TestGuard(t *testing.T) {
	policytest.Cases(t, "testdata/decide", func(spec string) (policy.Policy, error) {
		cfg := guard.DefaultConfig()
		script, all := strings.CutPrefix(spec, "all:") // nodes may go at once
		if all {
			cfg.FractionMax = 1
		}
		return guard.Around(scripted(script), cfg), nil
	})
}

// An eager policy drains every node of its pools, each in one of the ways that
// its digits choose, and launches a replacement where it says so.
type eager struct{ ways []int }

func (p eager) Name() string { return "eager" }

func (p eager) Decide(s *policy.Snapshot, m policy.Memory) (policy.Plan, policy.Memory) {
	plan := policy.Plan{Wake: s.Now + 1}
	m.Decisions++
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if !n.Live() || n.Pool == policy.None {
			continue
		}
		why := policy.Why{Reason: policy.ReasonShare, Text: "eager"}
		d := policy.Drain{Node: n.ID, Why: why}
		way := p.ways[i%len(p.ways)]
		if m := n.Market; way > 0 && m != policy.None && s.Markets[m].Offered {
			l := policy.Launch{Token: n.Name, Pool: n.Pool, Markets: []policy.MarketID{m}, Replaces: n.ID, Why: why}
			plan.Launches = append(plan.Launches, l)
			if way > 1 {
				d.After = []string{l.Token}
			}
		}
		plan.Drains = append(plan.Drains, d)
	}
	return plan, m
}

// TestGuardProperties lets a policy through the guardrails that wants to drain
// everything at once.
func TestGuardProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := policytest.Snapshot().Draw(t, "snapshot")
		m := policytest.Memory(s).Draw(t, "memory")
		inner := eager{rapid.SliceOfN(rapid.IntRange(0, 2), 1, 5).Draw(t, "ways")}
		cfg := guard.DefaultConfig()
		cfg.FractionMax = rapid.SampledFrom([]float64{0.01, 0.3, 1}).Draw(t, "fraction")
		plan, next := guard.Around(inner, cfg).Decide(s, m)
		wanted, _ := inner.Decide(s, m)

		if len(plan.Drains)+heldNodes(s, &plan) != len(wanted.Drains) {
			t.Fatalf("of %d drains %d were let through and %d held:\n%s", len(wanted.Drains), len(plan.Drains), heldNodes(s, &plan), plan.Format(s))
		}
		checkLimits(t, s, &plan, cfg)
		for i := range s.Nodes {
			n := &s.Nodes[i]
			drained := slices.ContainsFunc(plan.Drains, func(d policy.Drain) bool { return d.Node == n.ID })
			others := n.ActedBy != policy.ActorNone && n.ActedBy != policy.ActorUs
			if n.ReclaimAt != 0 && n.Pool != policy.None && n.Phase == policy.NodeInitialized && !others && !drained {
				t.Fatalf("%s is under notice and was held:\n%s", n.Name, plan.Format(s))
			}
			for _, d := range plan.Drains {
				if d.Node == n.ID && n.ReclaimAt != 0 && (len(d.After) > 0 || d.Deadline == 0 || d.Deadline > n.ReclaimAt) {
					t.Fatalf("%s is taken at %v and its drain waits for %v until %v", n.Name, n.ReclaimAt, d.After, d.Deadline)
				}
			}
			if drained && others {
				t.Fatalf("%s is in the hands of %v and was drained", n.Name, n.ActedBy)
			}
		}
		for i := range plan.Launches {
			if !slices.ContainsFunc(plan.Drains, func(d policy.Drain) bool { return d.Node == plan.Launches[i].Replaces }) {
				t.Fatalf("a replacement of %s is bought, which stays", s.Nodes[plan.Launches[i].Replaces].Name)
			}
		}
		for i := range s.Pools {
			was, is := m.Pool(s.Pools[i].Name), next.Pool(s.Pools[i].Name)
			if is.Moved != was.Moved && is.Moved != s.Now {
				t.Fatalf("pool %d was moved at %v, now at %v", i, was.Moved, is.Moved)
			}
		}
	})
}

func heldNodes(s *policy.Snapshot, plan *policy.Plan) int {
	n := 0
	for _, h := range plan.Holds {
		onlyLaunch := strings.Contains(h.Why.Text, "low confidence: no forecast") && slices.ContainsFunc(plan.Holds, func(g policy.Hold) bool {
			return g.Node == h.Node && g.Why.Text != h.Why.Text
		})
		if h.Node != policy.None && !onlyLaunch {
			n++
		}
	}
	return n
}

// checkLimits counts, plainly, what is on its way out once plan has begun.
func checkLimits(t *rapid.T, s *policy.Snapshot, plan *policy.Plan, cfg guard.Config) {
	byChoice := make([]int, len(s.Pools))
	all := 0
	for _, d := range plan.Drains {
		if s.Nodes[d.Node].ReclaimAt == 0 {
			byChoice[s.Nodes[d.Node].Pool]++
			all++
		}
	}
	nodes, ours, others := 0, 0, 0
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.Pool == policy.None || n.Phase < policy.NodeInitialized {
			continue
		}
		nodes++
		switch {
		case n.ActedBy > policy.ActorUs && n.ReclaimAt == 0:
			others++
		case n.Phase > policy.NodeInitialized || n.ActedBy != policy.ActorNone || n.ReclaimAt != 0:
			ours++
		}
	}
	limit := max(1, int(cfg.FractionMax*float64(nodes)))
	if all > 0 && all+ours > limit {
		t.Fatalf("%d of %d nodes are on their way out and %d are added", ours, nodes, all)
	}
	if all > 1 && all+ours+others > limit {
		t.Fatalf("%d of %d nodes are on their way out, %d by others, and %d are added", ours+others, nodes, others, all)
	}
	for i, n := range byChoice {
		if allowed := s.Disruptable(policy.PoolID(i), policy.Underutilized); n > allowed {
			t.Fatalf("pool %d: %d drains, %d allowed", i, n, allowed)
		}
	}
}

// TestGuardNeverDeadlocks moves one node of clusters of every small size, with another controller
// acting on any number of the other nodes: the move is always allowed.
func TestGuardNeverDeadlocks(t *testing.T) {
	g := guard.Around(scripted("n00@1"), guard.DefaultConfig())
	for size := 1; size <= 20; size++ {
		for others := range size {
			var b strings.Builder
			b.WriteString("type b.4 4\nmarket z b.4 on-demand 0.2\nmarket z b.4 spot 0.06\npool web\napp one 1\n")
			for i := range size {
				by := ""
				if i >= size-others {
					by = []string{" by=karpenter", " by=person", " by=nth draining"}[i%3]
				}
				fmt.Fprintf(&b, "node n%02d web z b.4 on-demand%s\npod one n%02d 3\n", i, by, i)
			}
			s, m, err := policytest.Parse(b.String())
			if err != nil {
				t.Fatal(err)
			}
			if plan, _ := g.Decide(s, m); len(plan.Drains) != 1 {
				t.Fatalf("with %d of %d nodes in others' hands the node is held:\n%s", others, size, plan.Format(s))
			}
		}
	}
}

// TestGuardLeavesPlansAlone shows that what needs no guarding passes as it is.
func TestGuardLeavesPlansAlone(t *testing.T) {
	s, m, err := policytest.Parse("type b.4 4\nmarket z b.4 on-demand 0.2\npool web")
	if err != nil {
		t.Fatal(err)
	}
	g := guard.Around(scripted(""), guard.DefaultConfig())
	if g.Name() != "scripted" {
		t.Errorf("the guarded policy is called %q", g.Name())
	}
	if n := policytest.Allocations(100, func() { g.Decide(s, m) }); n > 0 {
		t.Errorf("an empty plan costs %v allocations", n)
	}
}

// TestGuardBackoff drains one node again and again: it is left alone for twice
// as long each time, up to the limit.
func TestGuardBackoff(t *testing.T) {
	s, m, err := policytest.Parse("type b.4 4\nmarket z b.4 on-demand 0.2\npool web\nnode n1 web z b.4 on-demand")
	if err != nil {
		t.Fatal(err)
	}
	g := guard.Around(scripted("n1=empty"), guard.DefaultConfig())
	for _, want := range []time.Duration{30 * time.Minute, time.Hour, 2 * time.Hour, 4 * time.Hour, 6 * time.Hour, 6 * time.Hour} {
		var plan policy.Plan
		plan, m = g.Decide(s, m)
		if len(plan.Drains) != 1 {
			t.Fatalf("after the back-off the node is held:\n%s", plan.Format(s))
		}
		pm := m.Pool("web")
		if !pm.BackedOff("n1", s.Now.Add(want-time.Millisecond)) || pm.BackedOff("n1", s.Now.Add(want)) {
			t.Fatalf("backed off until %v, want for %v from %v", pm.Backoff[0].Until, want, s.Now)
		}
		s.Now = s.Now.Add(want - time.Millisecond)
		if plan, _ := g.Decide(s, m); len(plan.Drains) > 0 {
			t.Fatalf("drained before the back-off ended")
		}
		s.Now++
	}
	// A node that is gone is forgotten with the next move.
	s.Nodes[0].Name = "n2"
	if _, m = guard.Around(scripted("n2"), guard.DefaultConfig()).Decide(s, m); len(m.Pools[0].Backoff) != 1 ||
		m.Pools[0].Backoff[0].Node != "n2" {
		t.Errorf("remembered: %+v", m.Pools[0].Backoff)
	}
}

func TestGuardConfig(t *testing.T) {
	if err := guard.DefaultConfig().Validate(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		field string
		set   func(*guard.Config)
	}{
		{"fraction max 0", func(c *guard.Config) { c.FractionMax = 0 }},
		{"confidence min 2", func(c *guard.Config) { c.ConfidenceMin = 2 }},
		{"utilization tight -1", func(c *guard.Config) { c.UtilizationTight = -1 }},
		{"utilization full 0.1", func(c *guard.Config) { c.UtilizationFull = 0.1 }},
		{"cooldown -1s", func(c *guard.Config) { c.Cooldown = -time.Second }},
		{"backoff min -1s", func(c *guard.Config) { c.BackoffMin = -time.Second }},
		{"patches max 0", func(c *guard.Config) { c.PatchesMax = 0 }},
		{"backoff max 1s", func(c *guard.Config) { c.BackoffMax = time.Second }},
	} {
		cfg := guard.DefaultConfig()
		c.set(&cfg)
		if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), c.field) {
			t.Errorf("%s: %v", c.field, err)
		}
	}
}

// TestGuardMovesOn gives clusters of one to twenty nodes a policy that wants to
// replace every node, with some of them on their way out, in other hands or backed
// off, and each pool's last move a moment ago. Nothing forbids a move, so one
// happens before the longest back-off and the longest cooldown are over; and
// until then what comes under notice goes at once.
func TestGuardMovesOn(t *testing.T) {
	const steps = 10 * time.Minute
	rapid.Check(t, func(t *rapid.T) {
		s, m := drawSmall(t)
		g := guard.Around(eager{[]int{2}}, guard.DefaultConfig())
		bound := s.Now.Add(guard.DefaultConfig().BackoffMax + time.Hour + steps)
		for ; s.Now <= bound; s.Now = s.Now.Add(steps) {
			var plan policy.Plan
			plan, m = g.Decide(s, m)
			drained := map[policy.NodeID]bool{}
			for _, d := range plan.Drains {
				if s.Nodes[d.Node].ReclaimAt == 0 {
					return
				}
				drained[d.Node] = true
			}
			for i := range s.Nodes {
				n := &s.Nodes[i]
				if n.ReclaimAt != 0 && n.Phase == policy.NodeInitialized && n.ActedBy == policy.ActorNone && !drained[n.ID] {
					t.Fatalf("%s is under notice and held:\n%s", n.Name, plan.Format(s))
				}
				// Whatever is on its way out is gone a step later. Whom a person
				// cordoned stays for ever.
				if n.ReclaimAt != 0 || n.Phase == policy.NodeDraining || n.ActedBy == policy.ActorKarpenter {
					n.Phase, n.ReclaimAt, n.NoticeAt, n.ActedBy = policy.NodeGone, 0, 0, policy.ActorNone
				}
			}
			s.Pods = slices.DeleteFunc(s.Pods, func(p policy.Pod) bool { return s.Nodes[p.Node].Phase == policy.NodeGone })
			for i := range s.Pods {
				s.Pods[i].ID = policy.PodID(i)
			}
		}
		t.Fatalf("nothing has moved by %v: %d nodes", bound, len(s.Nodes))
	})
}

// drawSmall draws a cluster in which no controller acts on n00, and the other nodes are in any
// state.
func drawSmall(t *rapid.T) (*policy.Snapshot, policy.Memory) {
	var b strings.Builder
	b.WriteString("type b.4 4\nmarket z b.4 on-demand 0.2\nmarket z b.4 spot 0.06\napp one 1\n")
	pools := rapid.IntRange(1, 3).Draw(t, "pools")
	for i := range pools {
		fmt.Fprintf(&b, "pool p%d%s%s\n", i,
			rapid.SampledFrom([]string{"", " budget=10%", " budget=1"}).Draw(t, "budget"),
			rapid.SampledFrom([]string{"", " cooldown=5m", " cooldown=1h"}).Draw(t, "cooldown"))
	}
	states := []string{"", "", "", " notice", " draining", " by=karpenter", " by=person", " by=person draining"}
	size := rapid.IntRange(1, 20).Draw(t, "size")
	for i := range size {
		state := ""
		if i > 0 {
			state = rapid.SampledFrom(states).Draw(t, "state")
		}
		capacity := rapid.SampledFrom([]string{"spot", "on-demand"}).Draw(t, "capacity")
		fmt.Fprintf(&b, "node n%02d p%d z b.4 %s%s\npod one n%02d %d\n", i, i%pools, capacity, state, i, rapid.IntRange(1, 4).Draw(t, "pods"))
	}
	s, m, err := policytest.Parse(b.String())
	if err != nil {
		t.Fatal(err)
	}
	for i := range s.Pools {
		p := policy.PoolMemory{Name: s.Pools[i].Name, Moved: s.Now - 1}
		for k := range s.Nodes {
			if s.Nodes[k].Pool == policy.PoolID(i) && rapid.Bool().Draw(t, "backed off") {
				p.Backoff = append(p.Backoff, policy.Backoff{Node: s.Nodes[k].Name, Tries: 9, Until: s.Now.Add(guard.DefaultConfig().BackoffMax)})
			}
		}
		m = m.With(p)
	}
	return s, m
}
