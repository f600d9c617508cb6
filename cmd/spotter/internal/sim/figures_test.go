package sim

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/eval/format"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/sim"
)

// A run on demand reports the causes of its outages, of which Spot is not one. A workload that
// was down for 20 s is in the list, though that is less than a minute.
func TestOutageFigures(t *testing.T) {
	began := policy.TimeOf(time.Date(2026, 1, 5, 3, 4, 5, 0, time.UTC))
	down := func(name string, d time.Duration) (o sim.Outages) {
		o = sim.Outages{Outage: d, OutageMinutes: sim.OutageMinutes(d), Incidents: 1, PodsAffected: 2,
			Longest: sim.Incident{Workload: name, Began: began, Outage: d, Pods: 2, Cause: sim.CauseProvisioner}}
		o.Causes[sim.CauseProvisioner] = sim.CauseOutage{Outage: d, Incidents: 1}
		return o
	}
	r := &sim.Result{Workloads: []sim.WorkloadResult{{Name: "default/a", Kind: policy.KindDeployment,
		Outages: down("default/a", 20*time.Second)},
		{Name: "default/b", Kind: policy.KindDeployment, Outages: down("default/b", 70*time.Second)}, {Name: "default/quiet"}}}
	for i := range r.Workloads {
		r.Add(&r.Workloads[i].Outages)
	}
	var out bytes.Buffer
	if err := answer(&scenarios.BoundScenario{}, r, &sim.Result{Bill: 10 * policy.Dollar}).Write(&out, format.Options{}); err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{
		"outages 2 min in 2 incidents, 4 pods; none from Spot (provisioner 1m30s)",
		"longest 1m10s of default/b from 2026-01-05 03:04:05 (2 pods, provisioner)",
		"saves $10.00 (100.0%) against a bill of $10.00 on demand, outages deducted",
		"default/a Deployment 0 0 1 2 20s", "default/b Deployment 1 0 1 2 1m10s",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("it does not say %q:\n%s", want, out.String())
		}
	}
	if strings.Contains(text, "default/quiet") {
		t.Error("a workload without an incident is listed")
	}
}

// Queues of Kueue have a line each; a run without them has no table of them.
func TestQueueFigures(t *testing.T) {
	for queues, want := range map[int]bool{0: false, 1: true} {
		r := &sim.Result{Queues: []sim.QueueResult{{Name: "research", Admitted: 40, Preempted: 5, Pending: 1,
			WaitP50: 73 * time.Minute, WaitP95: 2 * time.Hour}}[:queues]}
		var out bytes.Buffer
		if err := answer(&scenarios.BoundScenario{}, r, nil).Write(&out, format.Options{}); err != nil {
			t.Fatal(err)
		}
		text := strings.Join(strings.Fields(out.String()), " ")
		if strings.Contains(text, "research 40 5 1 1h13m 2h") != want || strings.Contains(text, "QUEUE") != want {
			t.Errorf("%d queues, written %v:\n%s", queues, !want, out.String())
		}
	}
}
