package sim

import (
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/billing"
	"github.com/spotter-dev/spotter/scenarios"
)

// Three incidents of 20 s are a minute, though none of them is; half a minute is one too.
func TestOutagesRoundOnce(t *testing.T) {
	window := billing.Span{From: testStart, To: testStart.Add(time.Hour)}
	g := readiness{since: testStart, desired: 1, required: 1, ready: 1}
	for i, want := range []int64{0, 1, 1, 1, 2} { // 20, 40, 60, 80, 100 s
		for k, ready := range []int32{0, 1} {
			g.advance(testStart.Add(time.Duration(10*i)*time.Minute+time.Duration(20*k)*time.Second), window)
			g.ready = ready
		}
		past := g // what is in hand goes on
		past.advance(testStart.Add(time.Duration(10*i+9)*time.Minute), window)
		past.close()
		if o := past.outages; o.OutageMinutes != want || o.Incidents != int64(i+1) || o.Outage != time.Duration(20*(i+1))*time.Second {
			t.Errorf("%d incidents of 20 s are %+v, want %d min", i+1, o, want)
		}
	}
	for outage, want := range map[time.Duration]int64{0: 0, 29_999 * time.Millisecond: 0, 30 * time.Second: 1, 89_999 * time.Millisecond: 1, 90 * time.Second: 2} {
		if got := OutageMinutes(outage); got != want {
			t.Errorf("%v are %d min, want %d", outage, got, want)
		}
	}
}

// The longest incident is the one that has most of the outage, of equal ones the first.
func TestLongestIncident(t *testing.T) {
	var a, b, all Outages
	a.incident(at(2*time.Hour), &[OutageCauses]int64{CauseMove: 40_000, CauseReclaim: 20_000}, 1)
	a.incident(at(3*time.Hour), &[OutageCauses]int64{CauseGrowth: 60_000}, 3)
	b.incident(at(time.Hour), &[OutageCauses]int64{CauseReclaim: 60_000}, 2)
	a.Longest.Workload, b.Longest.Workload = "a", "b"
	all.Add(&a)
	all.Add(&b)
	if want := (Incident{"a", at(2 * time.Hour), time.Minute, 1, CauseMove}); a.Longest != want {
		t.Errorf("the longest of a is %+v, want %+v", a.Longest, want)
	}
	if want := (Incident{"b", at(time.Hour), time.Minute, 2, CauseReclaim}); all.Longest != want {
		t.Errorf("the longest of all is %+v, want %+v", all.Longest, want)
	}
	spot := all.Causes.Spot()
	if all.PodsAffected != 6 || spot != (CauseOutage{80 * time.Second, 1}) || all.Causes[CauseMove] != (CauseOutage{40 * time.Second, 1}) || all.Causes[CauseGrowth].Incidents != 1 {
		t.Errorf("all are %+v, of Spot %+v", all, spot)
	}
}

// A time below what is required comes of Spot where it would not be without Spot.
func TestCauseOfMissingPods(t *testing.T) {
	for name, c := range map[string]struct {
		ready, required int32
		missing         [OutageCauses]int32
		want            OutageCause
		early           int32 // pods wanted and not yet desired
	}{
		"one moved and one reclaimed, one to spare": {2, 3, [OutageCauses]int32{CauseReclaim: 1, CauseMove: 1}, CauseReclaim, 0},
		"two moved and one reclaimed":               {1, 3, [OutageCauses]int32{CauseReclaim: 1, CauseMove: 2}, CauseMove, 0},
		"one of each, none to spare":                {1, 3, [OutageCauses]int32{CauseReclaim: 1, CauseProvisioner: 1}, CauseProvisioner, 0},
		"both of Spot":                              {0, 3, [OutageCauses]int32{CauseReclaim: 1, CauseRefused: 2}, CauseRefused, 0},
		"as many moved as new":                      {1, 3, [OutageCauses]int32{CauseMove: 1, CauseGrowth: 1}, CauseMove, 0},
		"not made yet":                              {1, 3, [OutageCauses]int32{}, CauseGrowth, 0},
		"five more are not due yet":                 {2, 3, [OutageCauses]int32{CauseProvisioner: 1, CauseGrowth: 5}, CauseProvisioner, 5},
		"four of five are not due yet":              {0, 3, [OutageCauses]int32{CauseProvisioner: 2, CauseGrowth: 5}, CauseProvisioner, 4},
		"refused ones are not due yet":              {2, 3, [OutageCauses]int32{CauseMove: 1, CauseRefused: 2, CauseGrowth: 1}, CauseMove, 3},
	} {
		g := readiness{ready: c.ready, required: c.required, desired: c.required, wanted: c.required + c.early, missing: c.missing}
		if got := g.cause(); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// gaps returns how often and how long workloads of one pod each had none ready, by the
// log: from its eviction, or its loss, until another is ready.
func gaps(t *testing.T, log []string) (n int64, sum time.Duration) {
	t.Helper()
	down := map[string]time.Time{}
	for _, line := range log {
		words := strings.Fields(line)
		at, err := time.Parse(time.RFC3339, words[0])
		if err != nil {
			t.Fatal(err)
		}
		i := strings.LastIndexByte(words[2], '-')
		switch words[1] {
		case "evicted", "lost":
			if _, is := down[words[2][:i]]; !is {
				down[words[2][:i]] = at
			}
		case "ready":
			if from, is := down[words[2][:i]]; is {
				n, sum = n+1, sum+at.Sub(from)
				delete(down, words[2][:i])
			}
		}
	}
	if len(down) > 0 {
		t.Errorf("%v are down at the end", down)
	}
	return n, sum
}

// A service of one pod has none while it moves, whoever moves it and whether its new
// node is there before: its users miss it from the eviction until the next pod is ready.
func TestMoveOfTheOnlyPod(t *testing.T) {
	shrinks := newBuilder(12 * time.Hour) // to the smaller type, when its neighbour is gone
	shrinks.w.Intensity, shrinks.w.WarmUp = 0, time.Hour
	shrinks.markets(1, 2, false)
	shrinks.pool("p").Budgets = nil
	shrinks.workload("web", policy.KindDeployment, 1, policy.Resources{CPU: 1800, Memory: gib})
	shrinks.workload("big", policy.KindDeployment, 1, policy.Resources{CPU: 5000, Memory: gib})
	shrinks.w.Workloads[1].Schedule = append(shrinks.w.Workloads[1].Schedule, scenarios.ReplicaStep{At: at(6 * time.Hour), Replicas: 0})
	expires := one(1)
	expires.w.Pools[0].ExpireAfter = 2 * time.Hour
	replaced := one(1)
	replaced.w.Pools[0].Provisioner, replaced.w.Pools[0].Levers = policy.ProvisionerNone, policy.Levers{Launch: true}
	replaced.w.Pools[0].ExpireAfter = 4 * time.Hour
	drained := one(1)
	drained.w.Pools[0].Consolidation = policy.ConsolidateNever
	for name, c := range map[string]struct {
		b      *builder
		policy policy.Policy
		cause  OutageCause
		least  int64
	}{
		"consolidated":          {halves(at(time.Hour)), mustPolicy(t, "on-demand"), CauseProvisioner, 1},
		"replaced by Karpenter": {shrinks, mustPolicy(t, "on-demand"), CauseProvisioner, 1},
		"expired":               {expires, mustPolicy(t, "on-demand"), CauseProvisioner, 5},
		"replaced by us":        {replaced, mustPolicy(t, "karpetrack"), CauseMove, 3},
		"drained by us":         {drained, emptier{emptyOnly: true}, CauseMove, 1},
	} {
		res, log := playPolicy(t, c.b.scenario(), c.policy)
		n, sum := gaps(t, log)
		if n < c.least || res.Incidents != n || res.Outage != sum || res.OutageMinutes != OutageMinutes(sum) || res.PodsAffected != n {
			t.Errorf("%s: %+v; the log has %d gaps of %v in all, at least %d are expected", name, res.Outages, n, sum, c.least)
		}
		if got := res.Causes[c.cause]; got != (CauseOutage{sum, n}) || res.Causes.Spot() != (CauseOutage{}) {
			t.Errorf("%s: causes %+v, want all of %v", name, res.Causes, c.cause)
		}
		if want := res.Causes[CauseProvisioner].Outage; res.WithoutPDB != want {
			t.Errorf("%s: %v without a PDB, want %v", name, res.WithoutPDB, want)
		}
	}
}

// What the provisioner moves without a PodDisruptionBudget is counted, and said; with one it is not.
func TestOutageWithoutPDB(t *testing.T) {
	bare, guarded := one(2), one(2)
	guarded.budget(0, policy.Quantity{Set: true})
	var both Outages
	for _, c := range []struct {
		b    *builder
		want time.Duration
		says string
	}{
		{bare, time.Minute, "from Spot reclaim 20s, without it provisioner 1m0s without a PDB"},
		{guarded, 0, "from Spot reclaim 20s, without it provisioner 1m0s"},
	} {
		r, err := newRun(Config{Prepared: mustPrepare(t, c.b.scenario()), Policy: mustPolicy(t, "on-demand"), Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		var g readiness
		g.outages.incident(at(time.Hour), &[OutageCauses]int64{CauseProvisioner: 60_000, CauseReclaim: 20_000}, 1)
		o := r.serving.outages(0, &g)
		if o.WithoutPDB != c.want || o.Sources() != c.says || o.Longest.Workload != "default/web" {
			t.Errorf("%+v, %q; want %v, %q", o, o.Sources(), c.want, c.says)
		}
		both.Add(&o)
	}
	if want := "from Spot reclaim 40s, without it provisioner 2m0s of which 1m0s without a PDB"; both.Sources() != want || both.SpotMinutes() != 1 {
		t.Errorf("%q with %d min, want %q with 1", both.Sources(), both.SpotMinutes(), want)
	}
}

// Whatever takes the pods that a service must have is what its outage comes of.
func TestOutageCauses(t *testing.T) {
	fault := func(b *builder, f scenarios.Fault) *builder { b.w.Faults = append(b.w.Faults, f); return b }
	still := func(b *builder) *builder { b.w.Pools[0].Consolidation = policy.ConsolidateNever; return b }
	grows := func() *builder { return still(one(4, scenarios.ReplicaStep{At: at(6 * time.Hour), Replicas: 8})) }
	onSpot := func() *builder {
		b := still(one(4))
		b.w.StartCluster = scenarios.StartNodes
		b.w.Seeds = []scenarios.NodeSeed{{Pool: 0, Market: 1, Count: 2}} // in z0
		return b
	}
	limited := grows()
	limited.w.Pools[0].Limits = policy.Resources{CPU: 8000}
	refused := fault(grows(), scenarios.Fault{Kind: scenarios.FaultCapacityShortage, At: at(5 * time.Hour), Duration: 3 * time.Hour})
	refused.w.Pools[0].OnDemandFallback, refused.w.Pools[0].Share.Min = false, 1
	asked := fault(grows(), scenarios.Fault{Kind: scenarios.FaultCapacityShortage, At: at(5 * time.Hour), Duration: 3 * time.Hour})
	asked.w.Pools[0].Provisioner, asked.w.Pools[0].Levers = policy.ProvisionerNone, policy.Levers{Launch: true}
	asked.w.Pools[0].OnDemandFallback, asked.w.Pools[0].Share.Min = false, 1
	outranked := one(2)
	outranked.w.Pools[0].Limits = policy.Resources{CPU: 4000}
	outranked.budget(0, policy.Quantity{Set: true})
	outranked.workload("vip", policy.KindDeployment, 0, policy.Resources{CPU: 1800, Memory: gib}).Priority = 1000
	outranked.w.Workloads[1].Schedule = append(outranked.w.Workloads[1].Schedule, scenarios.ReplicaStep{At: at(time.Hour), Replicas: 1})
	taken := scenarios.Fault{Kind: scenarios.FaultCapacityShortage, At: at(6 * time.Hour), Duration: time.Hour, Share: 1}
	zone := scenarios.Fault{Kind: scenarios.FaultZoneOutage, At: at(6 * time.Hour), Duration: time.Hour, Zone: "z0"}
	for name, c := range map[string]struct {
		b      *builder
		policy string
		cause  OutageCause
	}{
		"spot nodes are taken":              {fault(onSpot(), taken), "spot", CauseReclaim},
		"a zone fails under spot nodes":     {fault(onSpot(), zone), "spot", CauseFault},
		"a zone fails under on-demand":      {fault(still(one(8)), zone), "on-demand", CauseFault},
		"the limits leave no room":          {limited, "on-demand", CauseGrowth},
		"spot is refused to Karpenter":      {refused, "spot", CauseRefused},
		"spot is refused to the policy":     {asked, "spot", CauseRefused},
		"a pod of higher priority needs it": {outranked, "on-demand", CausePreemption},
	} {
		res, _ := runScenario(t, c.b.scenario(), c.policy)
		if res.Longest.Cause != c.cause || res.Longest.Workload != "default/web" || res.Causes[c.cause].Outage < res.Longest.Outage {
			t.Errorf("%s: the longest incident is %+v of %+v, want one of %v", name, res.Longest, res.Outages, c.cause)
		}
	}
}

// A pod that comes to a node which is lost, before anybody notices, is lost with it.
func TestPodComesToALostNode(t *testing.T) {
	r, err := newRun(Config{Prepared: mustPrepare(t, one(1).startOnDemand().scenario()), Policy: mustPolicy(t, "on-demand"), Seed: 1, Check: true})
	if err != nil {
		t.Fatal(err)
	}
	r.begin()
	r.reclaims.reclaim(0)
	r.serving.of[0].wanted = 2
	r.workloads.reconcile(0)
	came := false
	for {
		e, ok := r.q.Next(r.q.Now.Add(time.Minute))
		if !ok {
			t.Fatal("the loss goes unnoticed")
		}
		r.handle(&e)
		came = came || r.workloads.state[0].active == 2 && r.pods.all[1].Phase == policy.PodStarting && r.pods.state[1].lost
		if r.nodes.all[0].Phase == policy.NodeGone {
			break
		}
	}
	if want := ([OutageCauses]int32{CauseFault: 2}); !came || r.serving.of[0].missing != want {
		t.Errorf("the second pod came to the lost node: %v; missing %v, want %v", came, r.serving.of[0].missing, want)
	}
}
