package capture

import (
	"bytes"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/history"
	"github.com/spotter-dev/spotter/cmd/spotter/internal/history/historytest"
	"github.com/spotter-dev/spotter/cmd/spotter/internal/runner"
	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/kube"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/scenarios/trace"
	"github.com/spotter-dev/spotter/sim"
	"github.com/spotter-dev/spotter/test/nightly"
)

// clusterOf is what kube-state-metrics writes of a run.
func clusterOf(w *scenarios.BoundScenario, h *history.History) *historytest.Cluster {
	c := &historytest.Cluster{From: h.From, To: h.To, Nodes: h.Nodes, Hourly: h.Dollars / h.To.Sub(h.From).Hours()}
	for i := range w.Workloads {
		x, t := &w.Workloads[i], &w.Templates[i]
		pod := history.Pod{Requests: t.Requests, Start: t.Startup}
		switch {
		case x.Kind == policy.KindDaemonSet:
		case x.Job != nil:
			c.Jobs = append(c.Jobs, history.Job{Name: x.Name, Runs: x.Job.Releases, Took: x.Job.Work, Parallelism: x.Job.Pods,
				Completions: x.Job.Completions, Pod: pod})
		default:
			y := history.Workload{Name: x.Name, Kind: x.Kind, Pod: pod}
			for _, s := range x.Schedule {
				y.Replicas = append(y.Replicas, history.Change{At: s.At, N: s.Replicas})
			}
			c.Workloads = append(c.Workloads, y)
		}
	}
	return c
}

// placements records which nodes run the pods when metering starts.
type placements struct {
	at policy.Time
	on map[string]string // nodes by pods
}

func (p *placements) Happened(e sim.Entry) {
	switch {
	case e.At > p.at:
	case e.Kind == "bound":
		p.on[e.Subject] = e.Object
	case e.Kind == "ended":
		delete(p.on, e.Subject)
	}
}

func (p *placements) Settled(*sim.Moment) {}

// placedOf returns the nodes of the pods at the start of metering, in a run of w.
func placedOf(t *testing.T, w *scenarios.BoundScenario, seed uint64) (all []history.Placed) {
	t.Helper()
	runs, job := runner.New(), eval.Job{Case: eval.Case{Scenario: w.Name, Bound: w}, Policy: asIs, Seed: seed}
	cfg, err := runs.Config(job)
	if err != nil {
		t.Fatal(err)
	}
	p := &placements{at: w.Start, on: map[string]string{}}
	cfg.Observer = p
	if _, err := runs.Simulate(t.Context(), job, cfg); err != nil {
		t.Fatal(err)
	}
	count := map[history.Placed]int32{}
	for pod, node := range p.on {
		name := pod[:strings.LastIndexByte(pod, '-')]
		k := slices.IndexFunc(w.Workloads, func(x scenarios.Workload) bool { return x.Name == name })
		if kind := w.Workloads[k].Kind; kind != policy.KindDaemonSet {
			count[history.Placed{Node: node, Workload: name, Kind: kind}]++
		}
	}
	for x, n := range count {
		x.N = n
		all = append(all, x)
	}
	slices.SortFunc(all, history.Placed.Compare)
	return all
}

// recapture has a Prometheus keep what kube-state-metrics would write of a run of w, and
// captures it. The figures are those of the run, and of what was read.
func recapture(t *testing.T, w *scenarios.BoundScenario, tr *trace.Trace, seed uint64) (again *scenarios.BoundScenario, ran, read *figure) {
	t.Helper()
	run, err := simulate(t.Context(), w.Name, w, seed)
	if err != nil {
		t.Fatal(err)
	}
	cluster := clusterOf(w, run)
	cluster.Placed = placedOf(t, w, seed)
	at, err := url.Parse(historytest.New(t, cluster.Source).URL)
	if err != nil {
		t.Fatal(err)
	}
	p := &history.Prometheus{Client: history.Client{URL: at, Tries: 1}}
	o := options()
	if o.History, err = p.Read(t.Context(), run.From, run.To); err != nil {
		t.Fatal(err)
	}
	taken, err := Take(snapshot(w), o)
	if err != nil {
		t.Fatal(err)
	}
	out, err := taken.Write(Run{Start: w.Start, Duration: w.Duration, Intensity: &w.Intensity})
	if err != nil {
		t.Fatal(err)
	}
	again, _ = bind(t, "captured.yaml", out, tr)
	return again, figureOf(run, &kube.CapacityResolver{}), figureOf(o.History, &kube.CapacityResolver{})
}

// TestSinceRoundTrip simulates a scenario, captures what kube-state-metrics would have
// written of it, and simulates that: what is read is what was, and so is what is simulated
// again. Where nodes come and go the scenario is one that was captured itself: a capture has
// no warm-up, so that its weather is another, and a run of web-week differs from the next
// under other weather by 5% of its node-hours.
func TestSinceRoundTrip(t *testing.T) {
	if testing.Short() {
		t.Skip("it simulates weeks")
	}
	all := []string{"tiny", "batch-night", "stateful-zonal", "web-week"}
	for _, name := range all[:nightly.Count(2, len(all))] {
		t.Run(name, func(t *testing.T) {
			text, err := scenarios.Source(name)
			if err != nil {
				t.Fatal(err)
			}
			if name == "tiny" { // whose nodes stay in the slots of their markets, so that the capture meets the same reclaims
				text = bytes.Replace(text, []byte("duration: 168h"), []byte("duration: 168h\n  start: on-demand"), 1)
			}
			w, tr := bind(t, name, text, nil)
			first, ran, read := recapture(t, w, tr, 1)
			if math.Abs(read.total/ran.total-1) > 0.002 || math.Abs(read.dollars/ran.dollars-1) > 0.001 {
				t.Errorf("read are\n%s", strings.Join(compared(ran, read), "\n"))
			}
			if h, err := simulate(t.Context(), name, first, 1); name == "tiny" &&
				(err != nil || figureOf(h, &kube.CapacityResolver{}).total != ran.total) {
				t.Errorf("captured once it has %v node-hours, and it had %v: %v", figureOf(h, &kube.CapacityResolver{}).total, ran.total, err)
			}
			second, _, read := recapture(t, first, tr, 1)
			h, err := simulate(t.Context(), name, second, 1)
			if err != nil {
				t.Fatal(err)
			}
			if is := figureOf(h, &kube.CapacityResolver{}); math.Abs(is.total/read.total-1) > 0.01 || read.total < 100 {
				t.Errorf("simulated are\n%s", strings.Join(compared(read, is), "\n"))
			}
		})
	}
}

// TestPast holds what a history changes in what is captured: rules stay, requests are those
// of then, what is no more is added, and pods that nothing known made are what was counted.
func TestPast(t *testing.T) {
	kind := func(instance string, more ...string) *history.NodeKind {
		k := &history.NodeKind{Labels: map[string]string{"node.kubernetes.io/instance-type": instance,
			"topology.kubernetes.io/zone": "us-east-1a", "karpenter.sh/capacity-type": "spot", "karpenter.sh/nodepool": "team"}}
		for _, l := range more {
			k.Labels[l] = "true"
		}
		return k
	}
	text, err := scenarios.Source("web-week")
	if err != nil {
		t.Fatal(err)
	}
	w, _ := bind(t, "web-week", text, nil)
	s := snapshot(w)
	k := slices.IndexFunc(w.Workloads, func(x scenarios.Workload) bool { return x.Kind == policy.KindDeployment })
	name, cpu := w.Workloads[k].Name, w.Templates[k].Requests.CPU
	from := w.Start
	half := history.Pod{Requests: policy.Resources{CPU: 50, Memory: 100},
		Latest: policy.Resources{CPU: 100, Memory: 100}, Start: 77 * time.Second}
	o := options()
	o.Anonymise = true
	o.History = &history.History{From: from, To: from.Add(24 * time.Hour), Uncertain: []string{"something"},
		Nodes: []history.Node{
			{Name: "was", From: from, To: from.Add(time.Hour), Kind: kind("m5.large")},
			{Name: "came", From: from.Add(time.Hour), To: from.Add(2 * time.Hour), Kind: kind("m5.4xlarge")},
			{Name: "master", From: from, To: from.Add(24 * time.Hour), Kind: kind("m5.large", history.LabelControlPlane)},
			{Name: "unknown", From: from, To: from.Add(24 * time.Hour)},
		},
		Workloads: []history.Workload{
			{Name: name, Kind: policy.KindDeployment, Replicas: []history.Change{{At: from, N: 2}}, Pod: half},
			{Name: "secret/plans", Kind: policy.KindStatefulSet, Replicas: []history.Change{{At: from, N: 0},
				{At: from.Add(time.Hour), N: 2}}, Pod: half},
			{Name: "secret/empty", Kind: policy.KindDeployment, Replicas: []history.Change{{At: from, N: 1}}},
		},
		Jobs: []history.Job{{Name: "secret/job", Runs: []policy.Time{from}, Took: time.Minute, Parallelism: 1, Completions: 3, Pod: half}},
	}
	if f := figureOf(o.History, &kube.CapacityResolver{}); f.total != 2 || f.spot != 2 || f.withoutType != 1 ||
		f.all != 3 || f.hours["m5.large spot"] != 1 {
		t.Errorf("figures %+v", f)
	}
	c, err := Take(s, o)
	if err != nil {
		t.Fatal(err)
	}
	out := string(written(t, c, w))
	for want, n := range map[string]int{
		"spotter.dev/replica-schedule: +0s=2": 1, "spotter.dev/replica-schedule: +0s=0 +1h0m0s=2": 1, "spotter.dev/releases: 0s": 1, "completions: 3": 1,
		"cpu: " + fmt.Sprint(cpu/2) + "m": 1, "startup-time: 1m17s": 2, "# Assumed: something": 1, "rules unknown: 2 workloads": 1, "secret": 0,
		"instanceType: m5.large": 1, "instanceType:": 1, "of whose pods the metrics have no requests": 1, "nodes of the control plane": 1, "of 1 nodes that no CapacityPool": 0,
		"maxVCPU: 16": 1, "do not say their region": 1,
	} {
		if got := strings.Count(out, want); got != n {
			t.Errorf("%q stands %d times, want %d", want, got, n)
		}
	}
	if t.Failed() {
		t.Log(out)
	}
}

// TestBegunEmpty captures a cluster that began without a node: prices are drawn where its later
// nodes are, of which one that runs now has no label for its region.
func TestBegunEmpty(t *testing.T) {
	from := policy.Time(1_760_000_400_000)
	s := &policy.Snapshot{Now: from.Add(24 * time.Hour), Nodes: []policy.Node{{Name: "came", Pool: policy.None,
		Market: policy.None, Phase: policy.NodeInitialized, Labels: []policy.Label{
			{Key: "karpenter.sh/nodepool", Value: "web-team"}, {Key: "node.kubernetes.io/instance-type",
				Value: "m5.large"}, {Key: "topology.kubernetes.io/zone", Value: "us-east-1b"},
		}}}}
	_, o := owned(t)
	o.History = &history.History{From: from, To: from.Add(24 * time.Hour),
		Nodes: []history.Node{{Name: "came", From: from.Add(time.Hour), To: from.Add(24 * time.Hour)}},
		Workloads: []history.Workload{{Name: "shop/web", Kind: policy.KindDeployment,
			Replicas: []history.Change{{At: from, N: 2}}, Pod: history.Pod{Requests: policy.Resources{CPU: 50}}}}}
	c, err := Take(s, o)
	if err != nil {
		t.Fatal(err)
	}
	drawn, err := c.Draw(1, 100, from, o.History.To)
	if err != nil {
		t.Fatal(err)
	}
	if x := drawn.Series[0]; c.Nodes != 0 || x.Region != "us-east-1" {
		t.Errorf("it begins with %d nodes, and prices are of %s", c.Nodes, x.Region)
	}
}

// TestIntensity has reclaims be as many as there were, and does not take none for a proof.
func TestIntensity(t *testing.T) {
	model := &figure{spot: 1000, reclaimed: 20}
	for _, c := range []struct {
		was  figure
		want float64
		said string
	}{
		{figure{spot: 500, reclaims: history.Count{N: 20, Source: "x"}}, 2,
			"20 in 500 Spot node-hours by x, 0.04 per node-hour (exact 95% interval 0.0244 to 0.0618); modelled are 0.02: spec.market.intensity is 2."},
		{figure{spot: 10_000, reclaims: history.Count{Source: "x"}}, 0.018, "0 in 10000"},
		{figure{spot: 10, reclaims: history.Count{Source: "x"}}, 1, "0 in 10"},
		{figure{spot: 500}, 1, "no metric counted them"},
		{figure{reclaims: history.Count{Source: "x"}}, 1, "no Spot node"},
	} {
		if x, said := intensity(&c.was, model); x != c.want || !strings.Contains(said, c.said) {
			t.Errorf("%+v: %v, %q", c.was, x, said)
		}
	}
}

// TestSchedules writes changes and releases as scenarios read them.
func TestSchedules(t *testing.T) {
	at := func(d time.Duration) policy.Time { return policy.Time(1_000_000_000_000).Add(d) }
	if got := scheduleOf(at(0), []history.Change{{At: at(0), N: 4}, {At: at(26*time.Hour + 200*time.Millisecond), N: 5},
		{At: at(26*time.Hour + 400*time.Millisecond), N: 6}}); got != "+0s=4 +26h0m0s=6" {
		t.Error(got)
	}
	if got := releasesOf(at(0), []policy.Time{at(0), at(time.Hour), at(time.Hour)}); got != "0s 1h0m0s*2" {
		t.Error(got)
	}
	for text, want := range map[string]time.Duration{"7d": 168 * time.Hour, "2w": 336 * time.Hour, "36h": 36 * time.Hour,
		"1.5d": 36 * time.Hour, "5m": 0, "d": 0, "9000d": 0, "x": 0} {
		if d, err := parseSpan(text); d != want || (err == nil) != (want > 0) {
			t.Errorf("%s: %v, %v", text, d, err)
		}
	}
}
