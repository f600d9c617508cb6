package eval

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/eval/evaltest"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/policytest"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/scenarios/trace"
	"github.com/spotter-dev/spotter/scenarios/trace/importer"
	"github.com/spotter-dev/spotter/sim"
	"pgregory.net/rapid"
)

// The job of Can't Be Late (Wu et al., NSDI 2024): 48 hours of work on one V100, due after
// 52 or 70, that takes twelve minutes to work again on another node. Most of these are its
// start-up; a node takes a minute to come.
const (
	lateWork    = 48.0
	lateRestart = 0.2
)

const lateScenario = `
apiVersion: spotter.dev/v1alpha1
kind: Scenario
metadata: {name: one-v100}
spec: {duration: %dh}
---
apiVersion: spotter.dev/v1alpha1
kind: CapacityPool
metadata: {name: gpu}
spec:
  backend: {karpenter: {nodeClassName: default}}
  markets: {instanceTypes: [p3.2xlarge]}
  capacity: {spotShare: {min: 0, max: 1}}
  disruption: {budget: 100%%, consolidationPolicy: WhenEmptyOrUnderutilized, consolidateAfter: 10s}
  mode: active
---
apiVersion: batch/v1
kind: Job
metadata:
  name: train
  annotations: {spotter.dev/duration: 48h, spotter.dev/checkpoint-interval: 1m, spotter.dev/deadline: %dh, spotter.dev/startup-time: 11m}
spec:
  parallelism: 1
  completions: 1
  backoffLimit: 1000
  template:
    spec:
      restartPolicy: Never
      containers:
        - {name: main, image: registry.k8s.io/pause:3.10, resources: {requests: {cpu: 4, memory: 32Gi}, limits: {nvidia.com/gpu: 1}}}
`

// A lateWindow is a job on one recorded zone: in step i spot can be had or not.
type lateWindow struct {
	up          []bool
	step        float64 // hours
	spot, fixed float64 // dollars an hour
	bound       *scenarios.BoundScenario
	deadline    float64
}

// A lateSet is recordings of V100 in one zone each, and the days on which the jobs start.
type lateSet struct {
	folder      string
	zones       int
	first, last int
	every       int // days between two jobs
}

var lateSets = []lateSet{
	{"availability/1-node/aws-02-15-2023", 9, 2, 37, 5},
	{"preemption/1-node/aws-04-22-2023", 4, 0, 4, 1},
}

// files returns the recordings of the set.
func (x *lateSet) files(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(policytest.Recording(t, "availability/skypilot/"+x.folder), "*v100*.json"))
	if err != nil || len(files) != x.zones {
		t.Fatalf("%d files, %v", len(files), err)
	}
	return files
}

// The costs that a lateSum sums, in dollars.
const (
	latePortfolio = iota
	lateOnDemand
	lateGreedy
	lateUniform
	lateHindsight
	lateCosts
)

// A lateSum is what jobs cost in the sum.
type lateSum struct {
	cost [lateCosts]float64
	jobs float64
}

// add counts what the job of w costs under each rule.
func (x *lateSum) add(t *testing.T, w *lateWindow) {
	t.Helper()
	costs := [lateCosts]float64{w.portfolio(t), lateWork * w.fixed, w.play(greedy), w.play(uniform), w.hindsight()}
	for i, cost := range costs {
		x.cost[i] += cost
	}
	x.jobs++
}

// plus returns the sum of both, each divided by its jobs.
func (x *lateSum) plus(y *lateSum) lateSum {
	z := lateSum{jobs: x.jobs + 1}
	for i := range z.cost {
		z.cost[i] = x.cost[i] + y.cost[i]/y.jobs
	}
	return z
}

// log writes the costs of a job, and how many times Uniform Progress and hindsight portfolio costs.
func (x *lateSum) log(t *testing.T, name string) {
	t.Helper()
	c := func(i int) float64 { return x.cost[i] / x.jobs }
	t.Logf("%-24s portfolio %5.1f, on demand %5.1f, greedy %5.1f, Uniform Progress %5.1f, hindsight %5.1f: %.3f, %.3f",
		name, c(latePortfolio), c(lateOnDemand), c(lateGreedy), c(lateUniform), c(lateHindsight),
		x.times(lateUniform), x.times(lateHindsight))
}

// times returns what portfolio costs in units of another cost.
func (x *lateSum) times(of int) float64 { return x.cost[latePortfolio] / x.cost[of] }

// TestJobsWithDeadlines runs one job with a deadline on every recorded zone of V100 and
// compares what it costs under portfolio with what simple rules and Uniform Progress would
// have paid, and the best schedule in hindsight. These know no delays but the restart. No
// job is late, and in the mean over recordings portfolio pays no more than Uniform Progress.
func TestJobsWithDeadlines(t *testing.T) {
	for _, x := range []struct {
		hours int
		most  float64 // times the cost in hindsight
	}{{52, 1.18}, {70, 1.14}} {
		all := lateSum{}
		for _, set := range lateSets {
			every := set.every
			if testing.Short() {
				every *= 4
			}
			for _, file := range set.files(t) {
				zone, _, err := importer.Import([]string{file}, importer.Options{})
				if err != nil {
					t.Fatal(err)
				}
				sum := lateSum{}
				for day := set.first; day <= set.last; day += every {
					sum.add(t, readWindow(t, zone, x.hours, time.Duration(day)*24*time.Hour))
				}
				sum.log(t, strings.TrimSuffix(filepath.Base(file), ".json"))
				all = all.plus(&sum)
			}
		}
		all.log(t, fmt.Sprintf("due after %d hours", x.hours))
		if testing.Short() {
			continue
		}
		if a, b := all.times(lateUniform), all.times(lateHindsight); a > 1 || b > x.most {
			t.Errorf("due after %d hours portfolio costs %.3f of Uniform Progress and %.3f of hindsight", x.hours, a, b)
		}
	}
}

// neverLate is the scenario of a job on one GPU in the embedded trace, without weather of its own.
const neverLate = `
apiVersion: spotter.dev/v1alpha1
kind: Scenario
metadata: {name: never-late}
spec: {duration: 30h, market: {intensity: 0}}
---
apiVersion: spotter.dev/v1alpha1
kind: CapacityPool
metadata: {name: gpu}
spec:
  backend: {karpenter: {nodeClassName: default}}
  markets: {minGPUs: 1, maxVCPU: 16}
  capacity: {spotShare: {min: 0, max: 1}}
  disruption: {budget: 100%%, consolidationPolicy: WhenEmptyOrUnderutilized, consolidateAfter: 10s}
  mode: active
---
apiVersion: batch/v1
kind: Job
metadata:
  name: train
  annotations: {spotter.dev/duration: 8h, spotter.dev/checkpoint-interval: %dm, spotter.dev/deadline: %dm, spotter.dev/startup-time: %dm}
spec:
  parallelism: 1
  completions: 1
  backoffLimit: 1000
  template:
    spec:
      restartPolicy: Never
      containers:
        - {name: main, image: registry.k8s.io/pause:3.10, resources: {requests: {cpu: 2, memory: 8Gi}, limits: {nvidia.com/gpu: 1}}}
`

// TestJobsAreNeverLate: however spot comes and goes, a job is done in time that could change
// to on demand twice and wait for two decisions when it began, at any start-up and interval
// of checkpoints.
func TestJobsAreNeverLate(t *testing.T) {
	tr, _, err := trace.EmbeddedNamed("synthetic")
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(rt *rapid.T) {
		checkpoint := rapid.IntRange(1, 30).Draw(rt, "checkpoint")
		startup := rapid.IntRange(1, 20).Draw(rt, "startup")
		least := 8*60 + 2*(checkpoint+startup+2) + 20
		due := rapid.IntRange(least, 24*60).Draw(rt, "due")
		sc, err := scenarios.Parse("never-late.yaml", fmt.Appendf(nil, neverLate, checkpoint, due, startup))
		if err != nil {
			rt.Fatal(err)
		}
		b, err := scenarios.Bind(sc, tr, scenarios.BindOptions{})
		if err != nil {
			rt.Fatal(err)
		}
		for at := b.Start; at < b.Start.Add(28*time.Hour); {
			up := rapid.IntRange(0, 300).Draw(rt, "up")
			down := rapid.IntRange(1, 300).Draw(rt, "down")
			at = at.Add(time.Duration(up) * time.Minute)
			b.Faults = append(b.Faults, scenarios.Fault{
				Kind: scenarios.FaultCapacityShortage, At: at, Duration: time.Duration(down) * time.Minute,
				Capacity: "spot", Share: 1,
			})
			at = at.Add(time.Duration(down) * time.Minute)
		}
		res, err := sim.Run(context.Background(), evaltest.Config(t, b, "portfolio", 1))
		if err != nil {
			rt.Fatal(err)
		}
		if res.JobsMissed > 0 || res.JobsDone != 1 {
			rt.Errorf("%d missed, %d done", res.JobsMissed, res.JobsDone)
		}
	})
}

// readWindow binds the scenario to the recording of one zone.
func readWindow(t *testing.T, tr *trace.Trace, hours int, after time.Duration) *lateWindow {
	t.Helper()
	sc, err := scenarios.Parse("one-v100.yaml", fmt.Appendf(nil, lateScenario, hours+1, hours))
	if err != nil {
		t.Fatal(err)
	}
	b, err := scenarios.Bind(sc, tr, scenarios.BindOptions{From: tr.From.Add(after)})
	if err != nil {
		t.Fatal(err)
	}
	w := &lateWindow{bound: b, deadline: float64(hours), step: 1. / lateSteps}
	for i := range b.Markets {
		price := b.Prices[i].Price[0].Float()
		if b.Markets[i].Capacity != policy.Spot {
			w.fixed = price
			continue
		}
		w.spot = price
		w.readUp(&b.Available[i], hours)
	}
	// A node is lost as soon as a probe finds none. The recording alone would leave part of
	// the nodes where a launch is refused.
	b.Available, b.Intensity = nil, 0
	return w
}

// lateSteps is how many steps an hour has.
const lateSteps = 20

// readUp reads in which steps spot can be had, and orders a shortage for each of the others.
func (w *lateWindow) readUp(c *scenarios.AvailabilityCurve, hours int) {
	for k := range hours * lateSteps {
		at := w.bound.Start.Add(time.Duration(k) * time.Hour / lateSteps)
		n, exact := slices.BinarySearch(c.At, at)
		if !exact {
			n--
		}
		up := n >= 0 && c.Available[n]
		w.up = append(w.up, up)
		if up {
			continue
		}
		f := &w.bound.Faults
		if k == 0 || w.up[k-1] {
			*f = append(*f, scenarios.Fault{Kind: scenarios.FaultCapacityShortage, At: at, Capacity: "spot", Share: 1})
		}
		(*f)[len(*f)-1].Duration += time.Hour / lateSteps
	}
}

// portfolio returns what the job costs in dollars under portfolio.
func (w *lateWindow) portfolio(t *testing.T) float64 {
	t.Helper()
	res, err := sim.Run(context.Background(), evaltest.Config(t, w.bound, "portfolio", 1))
	if err != nil {
		t.Fatal(err)
	}
	if res.JobsMissed > 0 || res.JobsDone != 1 {
		t.Errorf("%v: %d missed, %d done", w.bound.Start, res.JobsMissed, res.JobsDone)
	}
	return res.Bill.Float()
}

// A lateNode is what the job runs on.
type lateNode int

const (
	lateIdle lateNode = iota
	lateSpot
	lateFixed
)

// A lateState is what a rule is asked in.
type lateState struct {
	on            lateNode
	up            bool
	elapsed, done float64 // hours
	final         bool    // on demand to the end
}

// play returns what the job costs in dollars by rule.
func (w *lateWindow) play(rule func(w *lateWindow, x *lateState) lateNode) float64 {
	x, restart, cost := lateState{}, 0.0, 0.0
	for k, up := range w.up {
		x.up, x.elapsed = up, float64(k)*w.step
		if x.on == lateSpot && !up {
			x.on = lateIdle
		}
		if x.on == lateIdle && w.deadline-x.elapsed < lateWork-x.done+2*lateRestart {
			x.final = true
		}
		next := lateFixed
		if !x.final {
			next = rule(w, &x)
		}
		if next != x.on {
			x.on, restart = next, lateRestart
		}
		if next == lateIdle {
			continue
		}
		worked := max(0, w.step-restart)
		restart = max(0, restart-w.step)
		x.done += worked
		cost += w.step * map[lateNode]float64{lateSpot: w.spot, lateFixed: w.fixed}[next]
		if x.done >= lateWork-1e-9 {
			return cost
		}
	}
	panic("late")
}

// greedy takes spot whenever there is some and waits else; play ends the wait.
func greedy(_ *lateWindow, x *lateState) lateNode {
	if x.up {
		return lateSpot
	}
	return lateIdle
}

// uniform is Uniform Progress: progress is to grow evenly up to the deadline. Without spot
// the job waits while it is ahead of that and is on demand while it is behind, where it
// stays until it will be ahead for as long as two restarts take. Spot is taken from
// waiting whenever there is some.
func uniform(w *lateWindow, x *lateState) lateNode {
	expected := func(at float64) float64 { return lateWork * at / w.deadline }
	switch {
	case x.on == lateSpot, x.on == lateIdle && x.up:
		return lateSpot
	case x.on == lateFixed && x.done < expected(x.elapsed+2*lateRestart):
		return lateFixed
	case x.up:
		return lateSpot
	case x.on == lateIdle && x.done < expected(x.elapsed):
		return lateFixed
	}
	return lateIdle
}

// hindsight returns the least that the job can cost in dollars for who knows when spot can
// be had, by dynamic programming over steps, steps of work left and what it runs on.
func (w *lateWindow) hindsight() float64 {
	const restart = 4 // steps
	work := int(lateWork/w.step + 0.5)
	inf := 1e9
	// cost[k][left*3+on] is the least from step k on.
	rows := make([][]float64, len(w.up)+restart+1)
	for k := range rows {
		rows[k] = make([]float64, 3*(work+1))
		if k >= len(w.up) {
			for i := 3; i < len(rows[k]); i++ {
				rows[k][i] = inf
			}
		}
	}
	run := make([]int, len(w.up)+1) // steps that spot lasts
	for k := len(w.up) - 1; k >= 0; k-- {
		if w.up[k] {
			run[k] = run[k+1] + 1
		}
		for left := 1; left <= work; left++ {
			spot, fixed := inf, w.step*w.fixed+rows[k+1][(left-1)*3+2]
			if w.up[k] {
				spot = w.step*w.spot + rows[k+1][(left-1)*3+1]
			}
			next := rows[min(k+restart, len(w.up))]
			newFixed, newSpot := float64(restart)*w.step*w.fixed+next[left*3+2], inf
			if run[k] >= restart {
				newSpot = float64(restart)*w.step*w.spot + next[left*3+1]
			}
			idle := min(rows[k+1][left*3], newFixed, newSpot)
			rows[k][left*3], rows[k][left*3+1], rows[k][left*3+2] = idle, min(idle, spot), min(idle, fixed)
		}
	}
	return rows[0][3*work]
}
