package karpenter

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/spotter-dev/spotter/policy"
)

// TestRule06Divide reads the effect of a steer off weights and limits. The nodes have 4 vCPUs, pods
// 2 each, and types 2 or 4. Without pods Spot may grow until it is 2 vCPUs, half of the largest
// node, above its share of the pool.
func TestRule06Divide(t *testing.T) {
	cfg := DefaultConfig()
	for _, c := range []struct {
		why         string
		steer       policy.Steer
		spot, od    int // nodes
		limit       int64
		pending     int64 // vCPU
		refused     bool
		wantSpot    string
		wantOD      string
		empty       bool
		emptyOD     bool
		odFirst     bool
		onDemandMin float64
	}{
		{why: "all spot, on-demand is the fallback", steer: policy.Steer{Share: 1, Fallback: true}, spot: 2, wantSpot: "", wantOD: ""},
		{why: "all spot without a fallback", steer: policy.Steer{Share: 1}, spot: 2, wantSpot: "", wantOD: "0"},
		{why: "no spot: what is there stays, nothing is bought", steer: policy.Steer{Share: 0, Fallback: true}, spot: 2,
			od: 1, wantSpot: "0", wantOD: "", odFirst: true},
		{why: "half of 16 vCPU and a node of 4 is 10: with it Spot has 8", steer: policy.Steer{Share: 0.5, Fallback: true},
			spot: 1, od: 3, pending: 4, wantSpot: "8", wantOD: ""},
		{why: "half of 4 vCPU and two nodes of 4 is 6: Spot of 8 is as near as 4",
			steer: policy.Steer{Share: 0.5, Fallback: true}, spot: 1, pending: 8, wantSpot: "8", wantOD: ""},
		{why: "a node of 2 may be one of 4 until it is launched", steer: policy.Steer{Share: 0.5, Fallback: true}, od: 1,
			pending: 2, wantSpot: "4", wantOD: ""},
		{why: "of 24 vCPU on demand Spot may have as much and 4, which is 2 above half",
			steer: policy.Steer{Share: 0.5, Fallback: true}, od: 6, wantSpot: "28", wantOD: ""},
		{why: "of a pool that is empty the first node is spot at a half: 2 above it",
			steer: policy.Steer{Share: 0.5, Fallback: true}, wantSpot: "4", wantOD: ""},
		{why: "and at a quarter none of 4: 2666m is 2 above it", steer: policy.Steer{Share: 0.25, Fallback: true}, wantSpot: "2666m", wantOD: ""},
		{why: "an exact ratio leaves consolidation to the policy: 6666m of 18666m is 2 above a quarter",
			steer: policy.Steer{Share: 0.25, Exact: true,
				Fallback: true}, spot: 1, od: 3, wantSpot: "6666m", wantOD: "", empty: true, emptyOD: true},
		{why: "a floor of on-demand does so for on-demand", steer: policy.Steer{Share: 0.5, Fallback: true}, spot: 1, od: 1,
			wantSpot: "8", wantOD: "", emptyOD: true, onDemandMin: 0.5},
		{why: "the policy tidies itself", steer: policy.Steer{Share: 1, Fallback: true, EmptyOnly: true}, wantSpot: "",
			wantOD: "", empty: true, emptyOD: true},
		{why: "of 12 vCPU left in a limit of 20 on-demand keeps 6", steer: policy.Steer{Share: 1, Fallback: true}, spot: 2,
			limit: 20, wantSpot: "14", wantOD: "6"},
		{why: "once spot was refused it keeps the 10 that are asked for", steer: policy.Steer{Share: 1, Fallback: true},
			spot: 2, limit: 20, pending: 10, refused: true, wantSpot: "10", wantOD: "10"},
		{why: "a share takes of the room no more than it may grow by", steer: policy.Steer{Share: 0.5, Fallback: true},
			spot: 1, od: 1, limit: 40, wantSpot: "8", wantOD: "32"},
		{why: "a limit of the steer below the user's", steer: policy.Steer{Share: 0, Limits: policy.Resources{CPU: 16_000}},
			spot: 1, od: 1, limit: 40, wantSpot: "0", wantOD: "12", odFirst: true},
	} {
		s := newSnapshot(1)
		for i := range c.spot + c.od {
			k := policy.Spot
			if i >= c.spot {
				k = policy.OnDemand
			}
			withNode(s, fmt.Sprint("n", i), market(s, 1, 0, k))
		}
		if c.pending > 0 {
			s.Templates = []policy.Template{
				{Workload: policy.None, Requests: policy.Resources{CPU: 2000, Pods: 1}},
				{ID: 1, Workload: policy.None, Requests: policy.Resources{CPU: 4000, Pods: 1}},
			}
			for i := range s.Nodes { // full, so that the pods need new nodes
				s.Pods = append(s.Pods, policy.Pod{ID: policy.PodID(i), Template: 1, Phase: policy.PodReady,
					Node: policy.NodeID(i), Nominated: policy.None})
			}
		}
		for range c.pending / 2 {
			s.Pods = append(s.Pods, policy.Pod{ID: policy.PodID(len(s.Pods)), Phase: policy.PodPending, Node: policy.None, Nominated: policy.None})
		}
		s.Pools[0].Limits.CPU = c.limit * 1000
		s.Pools[0].Share.Max = 1 - c.onDemandMin
		st := steeringOf(s, &c.steer)
		h := holdingsOf(s, &s.Pools[0], &st)
		spot, od := cfg.divide(&s.Pools[0], &st, &h, c.refused)
		if got := cpuOf(spot); got != c.wantSpot {
			t.Errorf("%s: spot is limited to %q, want %q", c.why, got, c.wantSpot)
		}
		if got := cpuOf(od); got != c.wantOD {
			t.Errorf("%s: on-demand is limited to %q, want %q", c.why, got, c.wantOD)
		}
		if spot.emptyOnly != c.empty || od.emptyOnly != c.emptyOD {
			t.Errorf("%s: empty nodes only %v and %v, want %v and %v", c.why, spot.emptyOnly, od.emptyOnly, c.empty, c.emptyOD)
		}
		if (od.weight > spot.weight) != c.odFirst {
			t.Errorf("%s: weights %d and %d", c.why, spot.weight, od.weight)
		}
	}
}

func cpuOf(h target) string {
	if q, ok := h.limits["cpu"]; ok {
		return q.String()
	}
	return ""
}

// TestRule06LimitsKeepWhatIsThere: the two limits of a bounded pool never sum to more than what the
// user allows or the pool holds, and neither is below what its NodePool holds unless that NodePool
// must buy nothing.
func TestRule06LimitsKeepWhatIsThere(t *testing.T) {
	cfg := DefaultConfig()
	rapid.Check(t, func(t *rapid.T) {
		s := newSnapshot(1)
		for i := range rapid.IntRange(0, 12).Draw(t, "nodes") {
			k := policy.CapacityType(rapid.IntRange(0, 1).Draw(t, "capacity"))
			withNode(s, fmt.Sprint("n", i), market(s, rapid.IntRange(0, 2).Draw(t, "type"), 0, k))
		}
		bound := int64(rapid.IntRange(1, 60).Draw(t, "limit")) * 1000
		s.Pools[0].Limits.CPU = bound
		x := policy.Steer{Share: float64(rapid.IntRange(0, 4).Draw(t, "share")) / 4, Fallback: rapid.Bool().Draw(t, "fallback")}
		st := steeringOf(s, &x)
		h := holdingsOf(s, &s.Pools[0], &st)
		spot, od := cfg.divide(&s.Pools[0], &st, &h, rapid.Bool().Draw(t, "refused"))
		a, b := spot.limits["cpu"], od.limits["cpu"]
		total := h.total()
		if sum, most := a.MilliValue()+b.MilliValue(), max(bound, total.CPU); sum > most {
			t.Fatalf("limits %v and %v of a pool bounded by %dm that holds %dm", a.String(), b.String(), bound, total.CPU)
		}
		if x.Share >= 1 && total.CPU <= bound && a.MilliValue() < h.spot.CPU {
			t.Fatalf("spot is limited to %v and holds %dm", a.String(), h.spot.CPU)
		}
	})
}
