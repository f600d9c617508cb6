package sim

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios"
)

// TestShortNoticeCutsDrains reclaims all Spot nodes of a service under a budget, at AWS with two
// minutes of notice and at Google with 30 seconds. A new node needs longer than 30 s to join, so
// that the budget allows fewer pods to move before their node is reclaimed: more pods go down
// with it, and are missing for longer.
func TestShortNoticeCutsDrains(t *testing.T) {
	lost, unserved := map[string]int{}, map[string]policy.Money{}
	for _, provider := range []string{policy.AWS, policy.GCP} {
		b := one(12).startOnDemand()
		b.budget(0, policy.Quantity{Set: true, N: 2})
		b.w.Faults = []scenarios.Fault{{Kind: scenarios.FaultCapacityShortage, At: at(2 * time.Hour), Duration: time.Hour, Share: 1, Zone: "z0"}}
		for i := range b.w.Markets {
			b.w.Markets[i].Provider = provider
		}
		res, log := runScenario(t, b.scenario(), "spot")
		lost[provider], unserved[provider] = count(log, " lost "), res.Unserved
		if res.Notices == 0 {
			t.Fatalf("%s: no node is taken\n%s", provider, strings.Join(log, "\n"))
		}
		for _, line := range log {
			if count([]string{line}, " notice ") == 0 {
				continue
			}
			said := when(t, []string{line}, " notice ")[0]
			if words := strings.Fields(line); !strings.HasSuffix(line, fmt.Sprint(" ", int64(said.Add(policy.NoticeLead(provider))))) {
				t.Errorf("%s: a notice at %v says that the node goes at %s ms", provider, said, words[len(words)-1])
			}
		}
	}
	if lost[policy.GCP] <= lost[policy.AWS] || unserved[policy.GCP] <= unserved[policy.AWS] {
		t.Errorf("pods lost %v, unserved %v: want more of both at Google", lost, unserved)
	}
}

// TestOnDemandIsRefused wants a node with an accelerator for ten minutes of each
// hour, on demand and in one zone: some launches find no capacity, and none where
// the scenario says so. No node is taken.
func TestOnDemandIsRefused(t *testing.T) {
	refused := map[bool]int64{}
	for _, shortages := range []bool{false, true} {
		for seed := uint64(1); seed <= 6; seed++ {
			b := newBuilder(20 * 24 * time.Hour)
			b.w.WarmUp, b.w.OnDemandShortages = time.Hour, shortages
			b.markets(1, 1, true)
			for i := range b.w.Markets {
				b.w.Markets[i].Band = 4
			}
			b.pool("p")
			b.workload("job", policy.KindJob, 1, policy.Resources{CPU: 3000, Memory: 8 * gib, GPU: 1})
			job := &scenarios.Job{Pods: 1, Completions: 1, Work: 10 * time.Minute}
			for h := range 19 * 24 {
				job.Releases = append(job.Releases, at(time.Duration(h)*time.Hour))
			}
			b.w.Workloads[0].Job, b.w.Workloads[0].Schedule = job, nil
			res := mustRun(t, Config{Prepared: mustPrepare(t, b.scenario()), Policy: mustPolicy(t, "on-demand"), Seed: seed, Check: true})
			refused[shortages] += res.Refusals
			if res.Reclaims != 0 || res.JobsDone != 19*24 {
				t.Errorf("seed %d: %d nodes on demand taken, %d jobs done; want 0 and all", seed, res.Reclaims, res.JobsDone)
			}
		}
	}
	if refused[false] != 0 || refused[true] == 0 {
		t.Errorf("%d launches on demand refused without shortages and %d with; want 0 and some", refused[false], refused[true])
	}
}
