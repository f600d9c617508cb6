package try

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/progress"
	"github.com/spotter-dev/spotter/cmd/spotter/internal/runner"
	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/eval/report"
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/sim"
)

// The policies that are compared, in the order of the output.
const (
	asIs      = eval.CaptureBaseline
	onDemand  = eval.OnDemand
	karpenter = eval.DefaultBaseline
	portfolio = "portfolio"
)

func compared() []string { return []string{asIs, onDemand, karpenter, portfolio} }

// limits bound the time of a trial.
type limits struct {
	// total is the time for the whole trial, and firstRuns the time for the runs of the first seed,
	// after which a smaller part of the cluster is simulated.
	total, firstRuns time.Duration

	// seedsMax is the maximum number of seeds. The time may limit it further.
	seedsMax int
}

func defaultLimits() limits {
	return limits{total: 55 * time.Second, firstRuns: 20 * time.Second, seedsMax: 20}
}

// wholeMax is the maximum size of a cluster that is simulated completely, and sampledMax that of
// the simulated part of a larger one. The size is the number of nodes plus a tenth of that of pods.
// Raising them leaves time for fewer seeds.
const (
	wholeMax   = 1500
	sampledMax = 1000
)

// oneIn returns n if one in n nodes must be simulated.
func oneIn(nodes, pods int) int {
	size := nodes + pods/10
	if size <= wholeMax {
		return 1
	}
	return (size + sampledMax - 1) / sampledMax
}

// graceWait is the time that started runs may take beyond the limit.
const graceWait = 15 * time.Second

// simulate runs every policy under as many seeds as the time allows.
func (t *trial) simulate(ctx context.Context, s *staged, now *cost) (*eval.Report, error) {
	shown := progress.Show(ctx, t.p, string(eval.StepRuns))
	defer func() { shown.Close(t.p) }()
	m, spent, err := t.firstRuns(ctx, s)
	if err != nil {
		return nil, err
	}
	left := t.patient.total - time.Since(t.began)
	seeds := 1 + int(left*3/4/max(spent, time.Millisecond)) // the rest is a reserve for other work and for a busy machine
	seeds = max(1, min(seeds, t.patient.seedsMax))
	cfg := eval.DefaultConfig()
	cfg.Policies, cfg.Baseline, cfg.Seeds = compared(), asIs, eval.DefaultSeeds(seeds)
	cfg.Cases = []eval.Case{m.k}
	if now.Of == packed {
		*now = m.packing()
	}
	cfg.Today = now.today(s.times)
	cfg.Version, cfg.Invocation = t.p.Version, t.p.Invocation()
	cfg.Command = func(j eval.Job) string {
		return cli.Shell([]string{"spotter", "sim", j.Scenario, "--policy", j.Policy, "--seed", fmt.Sprint(j.Seed)})
	}
	cfg.Progress = func(g eval.Progress) { shown.Send(g) }
	deadline, stop := context.WithTimeout(ctx, max(left, 0)+graceWait)
	defer stop()
	r, err := eval.Run(deadline, cfg, m.run)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("simulating: %w", err)
	}
	if x := eval.Broken(r.Runs); x != nil {
		return nil, fmt.Errorf("simulating %s: %w", x.Policy, x.Err)
	}
	return r, nil
}

// firstRuns runs every policy under the first seed and returns the time that it took. If that takes
// too long, it simulates a smaller part of the cluster. The smallest part has no time limit.
func (t *trial) firstRuns(ctx context.Context, s *staged) (*memo, time.Duration, error) {
	whole := s.seen.taken
	for times := oneIn(whole.Nodes, whole.Pods); ; times *= 4 {
		if times > 1 {
			if err := s.sample(times); err != nil {
				return nil, 0, err
			}
		}
		m, began := newMemo(s), time.Now()
		limited, stop := ctx, func() {}
		if whole.Nodes >= 4*times*nodesMin && time.Since(t.began) < t.patient.total {
			limited, stop = context.WithTimeout(ctx, t.patient.firstRuns)
		}
		err := m.all(limited)
		over := limited.Err() != nil && ctx.Err() == nil
		stop()
		if !over || err == nil {
			return m, time.Since(began), err
		}
	}
}

// nodesMin is the minimum number of nodes that can represent a cluster.
const nodesMin = 10

// A memo executes runs and caches those of the first seed. It is safe for concurrent use.
type memo struct {
	k      eval.Case
	runner *runner.Runner

	mu   sync.Mutex
	done map[string]*sim.Result // of the first seed, by policy
}

func newMemo(s *staged) *memo {
	return &memo{k: eval.Case{Scenario: s.file, Bound: s.bound}, runner: runner.New(), done: map[string]*sim.Result{}}
}

// packing returns the cost of on-demand nodes only. It replaces today's cost if no nodes are known.
func (m *memo) packing() cost {
	w := m.k.Bound
	perMonth := (&eval.Today{}).PerMonth(w.Duration)
	month := m.done[onDemand].Bill.Float() * perMonth
	return cost{Of: packed, Month: month, OnDemand: month}
}

// all executes the runs of the first seed, the longest first.
func (m *memo) all(ctx context.Context) error {
	policies := compared()
	slices.Reverse(policies)
	c := eval.Config{Cases: []eval.Case{m.k}, Seeds: eval.DefaultSeeds(1), Policies: policies}
	rows, err := eval.Cells(ctx, &c, m.run)
	if x := eval.Broken(rows); x != nil {
		err = x.Err
	}
	return err
}

// run implements eval.Runner. It records the samples that the report draws.
func (m *memo) run(ctx context.Context, j eval.Job) (*sim.Result, error) {
	m.mu.Lock()
	known := m.done[j.Policy]
	m.mu.Unlock()
	if j.Seed == 1 && known != nil {
		return known, nil
	}
	cfg, err := m.runner.Config(j)
	if err != nil {
		return nil, err
	}
	cfg.Sample = report.SampleEvery(j.Bound.Duration)
	r, err := m.runner.Simulate(ctx, j, cfg)
	if err == nil && j.Seed == 1 {
		m.mu.Lock()
		m.done[j.Policy] = r
		m.mu.Unlock()
	}
	return r, err
}
