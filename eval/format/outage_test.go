package format

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/sim"
)

// hurt gives the second seed two services that are down for 20 s and 25 s, for none of
// which a minute stands, the third seed one of 90 s, and the fourth one of 20 s.
func hurt(ctx context.Context, j eval.Job) (*sim.Result, error) {
	r, err := fake{}.run(ctx, j)
	if err != nil || j.Policy != eval.OnDemand {
		return r, err
	}
	down := func(name string, d time.Duration, c sim.OutageCause) {
		w := sim.WorkloadResult{Name: name}
		w.Outages = sim.Outages{Outage: d, OutageMinutes: sim.OutageMinutes(d), Incidents: 1, PodsAffected: 1,
			Longest: sim.Incident{Workload: name, Began: j.Bound.Start, Outage: d, Pods: 1, Cause: c}}
		w.Causes[c] = sim.CauseOutage{Outage: d, Incidents: 1}
		r.Workloads = append(r.Workloads, w)
		r.Add(&w.Outages)
	}
	r.Workloads = nil
	switch j.Seed {
	case 2:
		down("default/a", 20*time.Second, sim.CauseProvisioner)
		down("default/b", 25*time.Second, sim.CauseProvisioner)
	case 3:
		down("default/b", 90*time.Second, sim.CauseGrowth)
	case 4:
		down("default/c", 20*time.Second, sim.CauseProvisioner)
	}
	return r, nil
}

// TestOutageFigures holds that what a run is short of is counted once and the same in
// metrics, words and JSON: on demand too, where none of it comes from Spot.
func TestOutageFigures(t *testing.T) {
	c := shown()
	c.Cases, c.Seeds = cases(1, "web-week"), eval.DefaultSeeds(4)
	c.Gates = []eval.Gate{mustGate(t, "on-demand:outage_longest_s.max<=60"),
		mustGate(t, "on-demand:outage_spot_minutes.max<=0"), mustGate(t, "on-demand:outage_pods.max<=1"),
		mustGate(t, "on-demand:outage_spot_delta.max<=0")}
	r, err := eval.Run(context.Background(), c, hurt)
	if err != nil {
		t.Fatal(err)
	}
	p := policyReport(r, eval.OnDemand)
	for metric, want := range map[string]float64{"outage_minutes": 2, "outage_incidents": 2, "outage_longest_s": 90,
		"outage_pods": 2, "outage_spot_minutes": 0} {
		if got := p.Summary(metric).Max; got != want {
			t.Errorf("%s is at most %v, want %v", metric, got, want)
		}
	}
	if got := r.Runs[4].Value("outage_minutes"); got.V != 1 {
		t.Errorf("20 s and 25 s are %v min, want 1", got.V)
	}
	if o := p.Outage; p.Outages.Count != 3 || o.Outage != 155*time.Second || o.OutageMinutes != 3 || o.Incidents != 4 ||
		r.Runs[o.LongestRun].Seed != 3 {
		t.Errorf("%d runs with incidents, %+v in all", p.Outages.Count, o)
	}
	for i, want := range []bool{false, true, false, true} {
		if r.Gates[i].Pass != want {
			t.Errorf("gate %v passes: %v, want %v", r.Gates[i].Gate, r.Gates[i].Pass, want)
		}
	}
	const words = "on-demand: any in 3 of 4 runs; in all runs 3 min in 4 incidents, 4 pods; none from Spot (provisioner 1m5s, growth 1m30s); " +
		"longest 1m30s of default/b from 2026-01-05 00:00:00 (1 pod, growth), seed 3"
	if got := outageLines(r, &r.Groups[0])[0]; got != words {
		t.Errorf("in words: %q, want %q", got, words)
	}
	if line := gateLine(r, &r.Gates[0]); !strings.Contains(line,
		"; it has 2 min in 1 incident, 1 pod; none from Spot (growth 1m30s); longest 1m30s of default/b") {
		t.Errorf("the gate says %q", line)
	}
	var out bytes.Buffer
	if err := writeJSON(&out, r); err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Runs []eval.RunReport
	}
	if err := json.Unmarshal(out.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	if doc.Runs[0].Outage != nil {
		t.Errorf("a run without an incident has %+v", doc.Runs[0].Outage)
	}
	o := doc.Runs[4].Outage
	if o == nil || o.Seconds != 45 || len(o.Workloads) != 2 || o.Workloads[0].Seconds != 20 ||
		o.Workloads[0].Minutes != 0 || o.Longest.Workload != "default/b" {
		t.Errorf("the run of seed 2 has %+v", o)
	}
}
