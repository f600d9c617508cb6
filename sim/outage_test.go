package sim

import (
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios"
)

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
		if got := res.Causes[c.cause]; got != (CauseOutage{Outage: sum, Incidents: n}) || res.Causes.Spot() != (CauseOutage{}) {
			t.Errorf("%s: causes %+v, want all of %v", name, res.Causes, c.cause)
		}
		if want := res.Causes[CauseProvisioner].Outage; res.WithoutPDB != want {
			t.Errorf("%s: %v without a PDB, want %v", name, res.WithoutPDB, want)
		}
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

// A pod that is bound to a lost node before the loss is detected is lost with it.
func TestPodComesToALostNode(t *testing.T) {
	r, err := newRun(Config{Prepared: mustPrepare(t, one(1, scenarios.ReplicaStep{At: at(-time.Hour + time.Second),
		Replicas: 2}).startOnDemand().scenario()), Policy: mustPolicy(t, "on-demand"), Seed: 1, Check: true})
	if err != nil {
		t.Fatal(err)
	}
	r.begin(false)
	r.machines.Reclaims.Reclaim(0)
	came := false
	for {
		e, ok := r.Clock.Next(r.Clock.Now.Add(time.Minute))
		if !ok {
			t.Fatal("the loss goes unnoticed")
		}
		r.Clock.CarryOut(&e)
		came = came ||
			r.cluster.Workloads.State[0].Active == 2 && r.cluster.Pods.All[1].Phase == policy.PodStarting && r.cluster.Pods.State[1].Lost
		if r.cluster.Nodes.All[0].Phase == policy.NodeGone {
			break
		}
	}
	if want := ([OutageCauses]int32{CauseFault: 2}); !came || r.cluster.Serving.Of[0].Missing != want {
		t.Errorf("the second pod came to the lost node: %v; missing %v, want %v", came, r.cluster.Serving.Of[0].Missing, want)
	}
}
