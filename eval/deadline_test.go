package eval

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/eval/evaltest"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/policytest"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/scenarios/trace"
	"github.com/spotter-dev/spotter/scenarios/trace/importer"
	"github.com/spotter-dev/spotter/sim"
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

// TestJobsWithDeadlines runs one job with a deadline on every recorded zone of V100 and
// compares what it costs under portfolio with what simple rules and Uniform Progress would
// have paid, and the best schedule in hindsight. These know no delays but the restart. No
// job is late, and in the mean portfolio pays no more than Uniform Progress and a hundredth.
func TestJobsWithDeadlines(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(policytest.Recording(t, "availability/skypilot/availability/1-node/aws-02-15-2023"), "*.json"))
	if err != nil || len(files) != 9 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	every := 5 // days between two jobs
	if testing.Short() {
		every = 20
	}
	for _, x := range []struct {
		hours int
		most  float64 // times the cost in hindsight
	}{{52, 1.25}, {70, 1.16}} {
		var sum [5]float64
		jobs := 0.
		for _, file := range files {
			zone, _, err := importer.Import([]string{file}, importer.Options{})
			if err != nil {
				t.Fatal(err)
			}
			for day := 2; day <= 37; day += every {
				w := readWindow(t, zone, x.hours, time.Duration(day)*24*time.Hour)
				for i, cost := range [...]float64{w.portfolio(t), lateWork * w.fixed, w.play(greedy), w.play(uniform), w.hindsight()} {
					sum[i] += cost
				}
				jobs++
			}
		}
		t.Logf("due after %d hours, $ a job: portfolio %.1f, on demand %.1f, greedy %.1f, Uniform Progress %.1f, hindsight %.1f",
			x.hours, sum[0]/jobs, sum[1]/jobs, sum[2]/jobs, sum[3]/jobs, sum[4]/jobs)
		if !testing.Short() && (sum[0] > 1.01*sum[3] || sum[0] > x.most*sum[4]) {
			t.Errorf("due after %d hours portfolio costs %.3f of Uniform Progress and %.3f of hindsight", x.hours, sum[0]/sum[3], sum[0]/sum[4])
		}
	}
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
