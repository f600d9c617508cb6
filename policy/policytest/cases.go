package policytest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/spotter-dev/spotter/policy"
)

// Cases runs the test cases in the files of dir. Each "decide" names the policy to
// build and describes a snapshot a line at a time:
//
//	type NAME VCPU [gpus=N] [arch=ARCH] [allocatable=CPU] with 4 GiB for each vCPU; the family is the part before the dot
//	market ZONE TYPE spot|on-demand PRICE [closed] [confidence=X] [band=N] [hazard=X] [score=N] [refused=DURATION] [reclaimed=DURATION] [priced=DURATION] [auction] [bids=P20/P50/P80]
//	pool NAME [none] [off] [min=X] [max=X] [exact=X] [steer=X] [budget=N|N%] [frozen=REASON] [approve[=NODE|SHARE%,…]] [cooldown=DURATION] [fallback] [no-launch] [after=DURATION] [expire-after=DURATION] [threshold=X] [when-empty] [taint=KEY] [score=N] [types=N] [zones=N]
//	app NAME CPU [memory=GIB] [kind=KIND] [pdb=ALLOWED] [critical] [zone=ZONE] [on=KEY:VALUE] [priority=N] [priority-class=NAME] [preempts=never] [safe-to-evict[=false]] [gpus=N] [tolerates=KEY] [spread[=capacity]] [near=APP] [port=N] [replicas=N]
//	node NAME POOL ZONE TYPE spot|on-demand [PHASE] [notice] [recommended] [ours] [by=ACTOR] [do-not-disrupt] [not-ready] [label=KEY:VALUE] [age=DURATION] [token=NAME]
//	pod APP NODE|pending [COUNT [CREATED [DELETION-COST]]]
//	memory POOL [moved=DURATION] [backoff=NODE] [batched=DURATION] [packed=DURATION] [wave=DURATION/NODES/TOKENS] [steered=DURATION] [selected=ZONE/TYPE/CAPACITY,…] [kept=ZONE/TYPE/CAPACITY,…] [spot-only]
//	reserved NAME TYPE COUNT [zone=ZONE]   reserved instances
//	plan NAME DOLLARS                   an hour on demand that a savings plan covers
//	prices AGE                          since prices were last read
//	stale KIND AGE                      objects without an update for too long
//
// Durations are before now. The result is the plan, its bids, the text of each hold,
// and which pools were moved. After an intended change of behaviour run the test with
// -rewrite and read the difference.
func Cases(t *testing.T, dir string, build func(spec string) (policy.Policy, error)) {
	datadriven.Walk(t, dir, func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			spec := ""
			d.MaybeScanArgs(t, "policy", &spec)
			p, err := build(spec)
			if err != nil {
				return fmt.Sprintf("error: %v\n", err)
			}
			s, m, err := Parse(d.Input)
			if err != nil {
				d.Fatalf(t, "%v", err)
			}
			plan, next := p.Decide(s, m)
			if err := Check(s, &plan); err != nil {
				d.Fatalf(t, "%v", err)
			}
			return describe(s, &plan, &next)
		})
	})
}

// describe returns the plan and what it changed in the memory, a line each.
func describe(s *policy.Snapshot, plan *policy.Plan, next *policy.Memory) string {
	var b strings.Builder
	b.WriteString(plan.Format(s))
	for i, l := range plan.Launches {
		if l.Bid != 0 {
			fmt.Fprintf(&b, "  launch %d bids %s\n", i+1, l.Bid.Short())
		}
	}
	for _, h := range plan.Holds {
		fmt.Fprintf(&b, "  %s\n", h.Why.Text)
	}
	for _, p := range next.Pools {
		if p.Moved == s.Now {
			fmt.Fprintf(&b, "moved %s\n", p.Name)
		}
	}
	if b.Len() == 0 {
		return "nothing\n"
	}
	return b.String()
}
