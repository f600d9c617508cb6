package metrics

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/expfmt"

	"github.com/spotter-dev/spotter/live/limit"
	"github.com/spotter-dev/spotter/live/steady"
	"github.com/spotter-dev/spotter/policy"
)

func newStep() *Step {
	s := &policy.Snapshot{
		Now:   policy.TimeOf(time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)),
		Types: []policy.InstanceType{{Name: "m5.large", VCPU: 2}}, Zones: []string{"use1-az1"},
		Markets: []policy.Market{
			{Name: "od", Offered: true, Price: 100_000, OnDemand: 100_000},
			{ID: 1, Name: "spot", Capacity: policy.Spot, Offered: true, Price: 40_000, OnDemand: 100_000,
				Forecast: policy.Forecast{Hazard: 0.25, Capacity: 0.5}},
		},
		Pools: []policy.Pool{{Name: "web", Markets: []policy.MarketID{0, 1}}},
		Nodes: []policy.Node{
			{Name: "a", Phase: policy.NodeInitialized}, {ID: 1, Name: "b", Market: 1, Phase: policy.NodeDraining}, {ID: 2},
		},
		Templates: []policy.Template{{Namespace: "ml", GPUResource: "nvidia.com/gpu", Requests: policy.Resources{GPU: 1},
			Labels: []policy.Label{{Key: "team", Value: "a"}}}},
		Pods: []policy.Pod{{Name: "ml/p", Phase: policy.PodReady, Node: 1}},
		Budgets: []policy.Budget{{
			Name: "ml/team", Namespace: "ml", Resource: "nvidia.com/gpu", GPUHours: 10, HasGPUHours: true, Closed: true,
			Selector: policy.Selector{Everything: true},
		}},
		Sources: []policy.Source{{Name: "prices", At: policy.TimeOf(time.Date(2026, 3, 2, 7, 59, 0, 0, time.UTC))}},
	}
	left := -0.5
	return &Step{
		Snapshot: s, Plan: &policy.Plan{Holds: []policy.Hold{{Why: policy.Why{Reason: "cooldown"}}}, Evicts: []policy.Evict{{Budget: "ml/team"}}},
		Memory: &policy.Memory{Pools: []policy.PoolMemory{{Name: "web", Target: 0.6, HasTarget: true}},
			Budgets: []policy.BudgetMemory{{Name: "ml/team", Used: 2500 * 3_600_000}}},
		Pools: []Pool{{
			Name: "web", Active: true, Share: 0.5, Spot: 1, OnDemand: 1, SavingPerHour: 60_000, Paid: 1_000_000, AtOnDemand: 3_000_000,
			Saved: map[string]policy.Money{"on-demand": 2_000_000}, Namespaces: map[string]policy.Money{"ml": 500_000}, ShadowMoves: 3,
			LossLeft: &left, LossUsedUp: true,
		}},
		Took: 20 * time.Millisecond, Wakes: []string{"plan"}, Active: true,
	}
}

// TestMetrics shows what a step came to, by the names that alerts and dashboards read,
// and under those of the other systems.
func TestMetrics(t *testing.T) {
	r := prometheus.NewPedanticRegistry()
	m, err := New(r, Config{Compat: Systems, Writes: func() []limit.Count {
		return []limit.Count{{Verb: "PATCH",
			Writes: 7, Urgent: 2, Refused: 3}}
	}, Clock: func() steady.State { return steady.State{Local: time.Hour, Jumps: 2} }})
	if err != nil {
		t.Fatal(err)
	}
	m.Leads(true)
	m.Entry("drain", "web", "done")
	m.Evicted("web", "evicted")
	m.Drained("web", "a", "done", time.Minute)
	m.Step(newStep())
	m.Step(newStep())
	for name, want := range map[string]string{
		"spotter_leader":                              "spotter_leader 1",
		"spotter_decisions_total":                     `spotter_decisions_total{result="done"} 2`,
		"spotter_plan_entries_total":                  `spotter_plan_entries_total{kind="drain",outcome="done",pool="web"} 1`,
		"spotter_pool_spot_share":                     `spotter_pool_spot_share{pool="web"} 0.5`,
		"spotter_pool_saved_dollars":                  `spotter_pool_saved_dollars{against="on-demand",pool="web"} 2`,
		"spotter_pool_loss_budget_left_dollars":       `spotter_pool_loss_budget_left_dollars{pool="web"} -0.5`,
		"spotter_pool_loss_budget_used_up":            `spotter_pool_loss_budget_used_up{pool="web"} 1`,
		"spotter_namespace_saved_dollars":             `spotter_namespace_saved_dollars{namespace="ml",pool="web"} 0.5`,
		"spotter_market_hazard":                       "spotter_market_hazard{market=\"od\"} 0\nspotter_market_hazard{market=\"spot\"} 0.25",
		"spotter_source_age_seconds":                  `spotter_source_age_seconds{source="prices"} 60`,
		"spotter_budget_used_gpu_hours":               `spotter_budget_used_gpu_hours{budget="ml/team"} 2.5`,
		"spotter_budget_gate_closed":                  `spotter_budget_gate_closed{budget="ml/team"} 1`,
		"spotter_clock_jumps_total":                   "spotter_clock_jumps_total 2",
		"spotter_clock_ahead_seconds":                 "spotter_clock_ahead_seconds{clock=\"machine\"} 3600\nspotter_clock_ahead_seconds{clock=\"server\"} 0",
		"spotter_api_writes_total":                    `spotter_api_writes_total{verb="PATCH"} 7`,
		"spotter_api_writes_refused_total":            `spotter_api_writes_refused_total{verb="PATCH"} 3`,
		"spotter_api_writes_urgent_total":             `spotter_api_writes_urgent_total{verb="PATCH"} 2`,
		"spotvortex_savings_usd_hourly":               "spotvortex_savings_usd_hourly 0.06",
		"spotvortex_spot_ratio_target":                `spotvortex_spot_ratio_target{pool="web"} 0.6`,
		"spotvortex_potential_savings_hourly_usd":     `spotvortex_potential_savings_hourly_usd{instance_type="m5.large",node="a",pool="web"} 0.06`,
		"spotvortex_nodes_draining":                   "spotvortex_nodes_draining 1",
		"spotvortex_guardrail_blocked_total":          `spotvortex_guardrail_blocked_total{guardrail="cooldown"} 2`,
		"spotvortex_risk_score":                       `spotvortex_risk_score{pool="web",zone="use1-az1"} 0.5`,
		"spot_rescheduler_nodes_count":                "spot_rescheduler_nodes_count{node_type=\"on-demand\"} 1\nspot_rescheduler_nodes_count{node_type=\"spot\"} 1",
		"spot_rescheduler_node_pods_count":            "spot_rescheduler_node_pods_count{node=\"a\",node_type=\"on-demand\"} 0\nspot_rescheduler_node_pods_count{node=\"b\",node_type=\"spot\"} 1",
		"spot_rescheduler_node_drain_total":           `spot_rescheduler_node_drain_total{drain_state="Success",node="a"} 1`,
		"spot_rescheduler_evicted_pods_total":         "spot_rescheduler_evicted_pods_total 1",
		"gwb_consumed_gpu_hours":                      `gwb_consumed_gpu_hours{name="team",namespace="ml"} 2.5`,
		"gwb_remaining_gpu_hours":                     `gwb_remaining_gpu_hours{name="team",namespace="ml"} 7.5`,
		"gwb_tracked_pods":                            `gwb_tracked_pods{name="team",namespace="ml"} 1`,
		"gwb_enforcement_actions_total":               `gwb_enforcement_actions_total{action="Evict",name="team",namespace="ml"} 2`,
		"spotvortex_potential_savings_pool_total_usd": `spotvortex_potential_savings_pool_total_usd{pool="web"} 43.2`,
	} {
		if got := strings.Join(lines(t, r, name), "\n"); got != want {
			t.Errorf("%s is\n%s\nwant\n%s", name, got, want)
		}
	}
	if problems, err := testutil.GatherAndLint(r, "spotter_leader"); err != nil || len(problems) > 0 {
		t.Error(problems, err)
	}
}

// TestSeriesOfDeletedObjects: of a pool, a budget, a node and a market that are gone no series is left, in any metric
// but the one that keeps the last nodes, and what has no pool stays.
func TestSeriesOfDeletedObjects(t *testing.T) {
	r := prometheus.NewRegistry()
	m, err := New(r, Config{Compat: Systems})
	if err != nil {
		t.Fatal(err)
	}
	report := func(pool string) {
		m.Entry("drain", pool, "done")
		m.Entered(pool, "evicting")
		m.Evicted(pool, "evicted")
		m.Drained(pool, "a", "done", time.Minute)
	}
	report("web")
	report("")
	m.Draining([]Draining{{"web", "evicting", 1}})
	m.Step(newStep())
	report("web")
	gone := newStep()
	gone.Pools, gone.Snapshot.Pools, gone.Snapshot.Nodes, gone.Snapshot.Pods, gone.Snapshot.Budgets = nil, nil, nil, nil, nil
	gone.Memory, gone.Plan = &policy.Memory{}, &policy.Plan{}
	m.Draining(nil)
	m.Step(gone)
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	kept := 0
	for _, f := range families {
		for _, x := range f.GetMetric() {
			for _, l := range x.GetLabel() {
				of := slices.Contains([]string{"pool", "node", "market", "budget", "namespace", "name", "instance",
					"instance_type", "zone"}, l.GetName())
				if of && l.GetValue() != "" && f.GetName() != "spot_rescheduler_node_drain_total" {
					t.Errorf("%s still has %v", f.GetName(), x.GetLabel())
				}
				if l.GetName() == "pool" && l.GetValue() == "" {
					kept++
				}
			}
		}
	}
	if kept < 4 {
		t.Errorf("%d series of no pool are left, want those of entries, drains and evictions", kept)
	}
}

// lines returns what is reported one metric.
func lines(t *testing.T, r *prometheus.Registry, name string) []string {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, f := range families {
		if f.GetName() == name {
			if _, err := expfmt.MetricFamilyToText(&b, f); err != nil {
				t.Fatal(err)
			}
		}
	}
	var all []string
	for line := range strings.Lines(b.String()) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			all = append(all, line)
		}
	}
	return all
}

// TestUnknownSystem names what is known.
func TestUnknownSystem(t *testing.T) {
	if _, err := New(prometheus.NewRegistry(), Config{Compat: []string{"datadog"}}); err == nil ||
		!strings.Contains(err.Error(), "rescheduler") {
		t.Error(err)
	}
}

// TestManyBudgets: whoever may edit a namespace and creates budgets there does not fill the metrics.
func TestManyBudgets(t *testing.T) {
	r := prometheus.NewRegistry()
	m, err := New(r, Config{Compat: []string{"gpu-operator"}})
	if err != nil {
		t.Fatal(err)
	}
	x := newStep()
	for i := range 2 * budgetsMax {
		b := x.Snapshot.Budgets[0]
		b.Name = fmt.Sprintf("ml/team-%04d", i)
		x.Snapshot.Budgets = append(x.Snapshot.Budgets, b)
	}
	m.Step(x)
	for _, name := range []string{"spotter_budget_gate_closed", "gwb_tracked_pods"} {
		if n, err := testutil.GatherAndCount(r, name); err != nil || n != budgetsMax {
			t.Errorf("%d series of %s, %v", n, name, err)
		}
	}
}

// TestBoundedSeries keeps no series for each node that ever was.
func TestBoundedSeries(t *testing.T) {
	r := prometheus.NewRegistry()
	m, err := New(r, Config{Compat: []string{"rescheduler"}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 * nodesMax {
		m.Drained("web", time.Duration(i).String(), "done", time.Second)
	}
	if n, err := testutil.GatherAndCount(r, "spot_rescheduler_node_drain_total"); err != nil || n != nodesMax {
		t.Errorf("%d series, %v", n, err)
	}
}
