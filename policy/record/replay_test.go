package record

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/policy"
)

// counting is a policy whose plan depends on all that it is given: it drains
// the node whose turn it is, and remembers.
type counting struct{ skip uint64 }

func (counting) Name() string { return "counting" }

func (c counting) Decide(s *policy.Snapshot, m policy.Memory) (policy.Plan, policy.Memory) {
	m.Decisions++
	p := policy.Plan{Wake: s.Now + 600_000}
	if m.Decisions == c.skip {
		return p, m
	}
	n := &s.Nodes[m.Decisions%uint64(len(s.Nodes))]
	p.Drains = []policy.Drain{{Node: n.ID, Why: policy.Why{
		Reason: policy.ReasonCheaper, Text: "its market costs less next door",
		Before: s.Markets[n.Market].Price, After: 10_000, RunnerUp: "stay",
	}}}
	p.Holds = []policy.Hold{{Pool: n.Pool, Node: policy.None, Why: policy.Why{Reason: policy.ReasonCooldown}}}
	return p, m
}

// played records ten decisions of a counting policy over two nodes.
func played(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	w := newWriter(t, dir, testMeta)
	w.limits.Steps = 3
	var m policy.Memory
	for i := range policy.Time(10) {
		s := &policy.Snapshot{
			Now: 600_000 * (i + 1),
			Markets: []policy.Market{{Name: "aws/r/z/m5/spot", Offered: true, Price: policy.Money(20_000 + i),
				OnDemand: 90_000, Capacity: policy.Spot}},
			Pools: []policy.Pool{{Name: "web", Share: policy.ShareRange{Max: 1}}},
			Nodes: []policy.Node{
				{ID: 0, Name: "a", Phase: policy.NodeInitialized}, {ID: 1, Name: "b", Phase: policy.NodeInitialized,
					NoticeAt: 600_000, ReclaimAt: 9_000_000},
			},
		}
		plan, after := counting{}.Decide(s, m)
		if err := w.Record(t.Context(), s, &m, &plan); err != nil {
			t.Fatal(err)
		}
		m = after
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestReplay(t *testing.T) {
	r, err := Open(played(t))
	if err != nil {
		t.Fatal(err)
	}
	n, differences, err := replayed(r, counting{})
	if err != nil || n != 10 || len(differences) != 0 {
		t.Errorf("%d steps, differences %v, %v", n, differences, err)
	}
	// A policy that once does nothing differs in that step's two entries.
	_, differences, err = replayed(r, counting{skip: 4})
	if err != nil || len(differences) != 2 || differences[0].Step != 4 {
		t.Fatalf("differences %v, %v", differences, err)
	}
	if got := differences[0].String(); !strings.Contains(got, "- drain a: cheaper") || !strings.Contains(got, "+ (nothing)") {
		t.Errorf("difference reads\n%s", got)
	}
}

// forgetful decides as counting does and leaves another memory behind.
type forgetful struct{ counting }

func (f forgetful) Decide(s *policy.Snapshot, m policy.Memory) (policy.Plan, policy.Memory) {
	plan, _ := f.counting.Decide(s, m)
	return plan, m
}

func TestReplayComparesMemory(t *testing.T) {
	r, err := Open(played(t))
	if err != nil {
		t.Fatal(err)
	}
	_, differences, err := replayed(r, forgetful{})
	if err != nil || len(differences) != 9 || !strings.Contains(differences[0].Recorded, "Decisions:1") {
		t.Errorf("differences %v, %v; want one between each two steps", differences, err)
	}
}

// Whatever of an entry is changed shows, down to the sign of a zero.
func TestDiff(t *testing.T) {
	s := &Step{Number: 1, Snapshot: &policy.Snapshot{Now: 1, Pools: []policy.Pool{{Name: "web"}}}}
	plan := func() *policy.Plan {
		return &policy.Plan{
			Steers: []policy.Steer{{Markets: []policy.MarketID{}, Why: policy.Why{Text: "a"}}},
			Drains: []policy.Drain{{Node: policy.None, After: []string{"t"}}},
			Wake:   5,
		}
	}
	s.Plan = *plan()
	for name, change := range map[string]func(*policy.Plan){
		"share":    func(p *policy.Plan) { p.Steers[0].Share = math.Copysign(0, -1) },
		"markets":  func(p *policy.Plan) { p.Steers[0].Markets = nil }, // nil means all of them
		"reason":   func(p *policy.Plan) { p.Steers[0].Why.Reason = policy.ReasonRisk },
		"dollars":  func(p *policy.Plan) { p.Steers[0].Why.After = 1 },
		"tokens":   func(p *policy.Plan) { p.Drains[0].After = nil },
		"deadline": func(p *policy.Plan) { p.Drains[0].Deadline = 9 },
		"wake":     func(p *policy.Plan) { p.Wake = 6 },
		"fewer":    func(p *policy.Plan) { p.Drains = nil },
		"more":     func(p *policy.Plan) { p.Holds = []policy.Hold{{}} },
	} {
		again := plan()
		change(again)
		if d := diffOf(t, s, again); len(d) != 1 {
			t.Errorf("%s: %d differences, want 1", name, len(d))
		}
	}
	reworded := plan()
	reworded.Steers[0].Why.Text, reworded.Steers[0].Why.RunnerUp = "b", "another"
	for _, again := range []*policy.Plan{plan(), reworded} {
		if d := diffOf(t, s, again); len(d) != 0 {
			t.Errorf("equal plans differ: %v", d)
		}
	}
}

func TestExplain(t *testing.T) {
	r, err := Open(played(t))
	if err != nil {
		t.Fatal(err)
	}
	s, err := r.Step(3)
	if err != nil {
		t.Fatal(err)
	}
	got, err := explained(s, "b")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"node b is initialized", "notice at", "market aws/r/z/m5/spot: $0.02/h, on-demand $0.09/h",
		"drain b: cheaper, its market costs less next door ($0.02/h → $0.01/h); runner-up: stay", "hold web: cooldown",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
	if got, err := explained(s, "web"); err != nil || !strings.Contains(got,
		"pool web: 2 Spot nodes, 0 on-demand nodes") || !strings.Contains(got, "drain b") {
		t.Errorf("pool: %v\n%s", err, got)
	}
	if _, err := explained(s, "nobody"); !errors.Is(err, ErrNoSuch) {
		t.Errorf("unknown name: %v", err)
	}
	if _, err := r.Step(11); err == nil || !strings.Contains(err.Error(), "its last is 10") {
		t.Errorf("unknown step: %v", err)
	}
}

// Both sides of a comparison are counted with their dollars, a step that differs in
// two entries is one step, and of many differences the first are kept.
func TestCompare(t *testing.T) {
	r, err := Open(played(t))
	if err != nil {
		t.Fatal(err)
	}
	c, err := Compare(r, func(s *Step) (policy.Policy, error) {
		if s.Number > 7 {
			return counting{skip: s.Memory.Decisions + 1}, nil
		}
		return counting{}, nil
	}, Comparing{Most: 2})
	if err != nil {
		t.Fatal(err)
	}
	if c.Steps != 10 || c.Differing != 3 || c.Total != 6 || len(c.Differences) != 2 || c.Differences[0].Step != 8 {
		t.Errorf("%+v", c)
	}
	// Ten drains from $0.020000…$0.020009 to $0.01 each; the last three are not taken again.
	want := Tally{Drains: 10, Holds: 10, Priced: 10, Before: 200_045, After: 100_000}
	if c.Recorded != want {
		t.Errorf("recorded %+v, want %+v", c.Recorded, want)
	}
	want = Tally{Drains: 7, Holds: 7, Priced: 7, Before: 140_021, After: 70_000}
	if c.Again != want {
		t.Errorf("again %+v, want %+v", c.Again, want)
	}
}

// panicking cannot decide at all.
type panicking struct{ counting }

func (panicking) Decide(*policy.Snapshot, policy.Memory) (policy.Plan, policy.Memory) {
	panic("no such node")
}

func TestReplayOfPanic(t *testing.T) {
	r, err := Open(played(t))
	if err != nil {
		t.Fatal(err)
	}
	c, err := Compare(r, func(*Step) (policy.Policy, error) { return panicking{}, nil }, Comparing{})
	if err != nil || c.Differing != 10 || c.Again != (Tally{}) || !strings.Contains(c.Differences[0].Again, "panicked: no such node") {
		t.Errorf("%+v, %v", c, err)
	}
}

// Where a number is left out a step was not recorded, and the memory that it left
// behind is not compared with the next.
func TestReplayOverGap(t *testing.T) {
	dir := t.TempDir()
	var m policy.Memory
	for _, skip := range []bool{false, true} {
		dir := filepath.Join(dir, fmt.Sprint(skip))
		w := newWriter(t, dir, testMeta)
		for i := range policy.Time(3) {
			s := &policy.Snapshot{Now: 600_000 * (i + 1), Markets: []policy.Market{{}}, Nodes: []policy.Node{{Name: "a"}}}
			plan, after := counting{}.Decide(s, m)
			if i != 1 { // the second step is not recorded
				if err := w.Record(t.Context(), s, &m, &plan); err != nil {
					t.Fatal(err)
				}
			} else if skip {
				w.Skip()
			}
			m = after
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		r, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		n, differences, err := replayed(r, counting{})
		if err != nil || n != 2 || (len(differences) == 0) != skip {
			t.Errorf("gap said %v: %d steps, differences %v, %v", skip, n, differences, err)
		}
	}
}

// replayed takes every decision of r again with p.
func replayed(r *Recording, p policy.Policy) (steps int, differences []Difference, err error) {
	c, err := Compare(r, func(*Step) (policy.Policy, error) { return p, nil }, Comparing{Memory: true})
	return c.Steps, c.Differences, err
}

// diffOf returns where another plan differs from that of s.
func diffOf(t *testing.T, s *Step, again *policy.Plan) []Difference {
	t.Helper()
	a, err := toPlanRows(s.Number, s.Snapshot, &s.Plan)
	if err != nil {
		t.Fatal(err)
	}
	b, err := toPlanRows(s.Number, s.Snapshot, again)
	if err != nil {
		t.Fatal(err)
	}
	return diff(s, again, a, b)
}

// explained returns what is said at s of the node or pool called name.
func explained(s *Step, name string) (string, error) {
	q := Query{Node: name, Pool: name}
	pool, node := q.subject(s.Snapshot)
	if node == policy.None && pool == policy.None {
		return "", ErrNoSuch
	}
	var b strings.Builder
	err := explain(&b, s, pool, node)
	return b.String(), err
}
