package portfolio_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/policy/policytest"
	"github.com/spotter-dev/spotter/policy/workload"
)

// TestLimits: no drain by choice, but towards a larger share of spot, leaves a workload that wants several pods with fewer
// than it must have after the loss of a market or a zone which it could bear, nor
// deepens the shortfall after a loss that it could not: there is a place for every pod,
// among the nodes that stay and those that the plan buys in any of their markets, with
// which it holds.
func TestLimits(t *testing.T) {
	moves := 0
	rapid.Check(t, func(t *rapid.T) {
		s := policytest.Snapshot().Draw(t, "snapshot")
		roomy(s)
		if err := s.Validate(); err != nil {
			t.Fatal(err)
		}
		p, err := build(rapid.SampledFrom([]string{"disturbance=0,edge=0.01", ""}).Draw(t, "policy"))
		if err != nil {
			t.Fatal(err)
		}
		plan, _ := p.Decide(s, policy.Memory{})
		h := newHouse(s, &plan)
		for _, d := range plan.Drains {
			toSpot := d.Why.Reason == policy.ReasonShare && s.Markets[s.Nodes[d.Node].Market].Capacity != policy.Spot
			if s.Nodes[d.Node].ReclaimAt == 0 && !toSpot {
				h.queue(d.Node)
			}
		}
		moves += len(h.leaving)
		if !h.settles(0, new(int)) {
			t.Fatalf("the moves leave a workload with less after a loss than before:\n%s%s", plan.Format(s), h.text())
		}
	})
	if moves == 0 {
		t.Error("no pod moved in any plan")
	}
}

// roomy brings s to rest, so that much may move in it at once.
func roomy(s *policy.Snapshot) {
	for i := range s.Pools {
		p := &s.Pools[i]
		p.Mode, p.Budgets, p.Consolidation, p.Cooldown = policy.ModeActive, nil, policy.WhenEmptyOrUnderutilized, 0
	}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		n.NotReady, n.DoNotDisrupt, n.ActedBy, n.NoticeAt, n.ReclaimAt = false, false, policy.ActorNone, 0, 0
		if n.Phase != policy.NodeGone {
			n.Phase, n.Pool = policy.NodeInitialized, 0
		}
	}
	for i := range s.Templates {
		s.Templates[i].NotSafeToEvict, s.Templates[i].Critical, s.Templates[i].Startup = false, false, 10*time.Second
	}
	for i := range s.Pods {
		p := &s.Pods[i]
		p.DoNotDisrupt, p.Gated = false, p.Phase == policy.PodPending
		if p.Phase == policy.PodStarting {
			p.Phase, p.ReadySince = policy.PodReady, p.Bound
			s.Workloads[s.Templates[p.Template].Workload].Ready++
		}
	}
	for i := range s.Templates {
		for _, id := range s.Templates[i].PDBs {
			b, w := &s.PDBs[id], &s.Workloads[s.Templates[i].Workload]
			b.Expected, b.Healthy = w.Replicas, w.Ready
			b.Desired = b.Required(b.Expected)
			b.Allowed = max(0, b.Healthy-b.Desired)
		}
	}
}

// A house is where pods go when a plan is carried out.
type house struct {
	s       *policy.Snapshot
	sp      *placement.Space
	before  []workload.Loss
	after   workload.Exposure
	nodes   []policy.NodeID
	markets [][]policy.MarketID // by node of nodes
	leaving []policy.PodID
}

func newHouse(s *policy.Snapshot, plan *policy.Plan) *house {
	h := &house{s: s, sp: placement.FromSnapshot(s), before: workload.Losses(s)}
	h.after.Read(s)
	for i := range s.Nodes {
		n := &s.Nodes[i]
		goes := false
		for _, d := range plan.Drains {
			goes = goes || d.Node == n.ID
		}
		if n.Usable() && n.Market >= 0 && !goes {
			h.nodes, h.markets = append(h.nodes, n.ID), append(h.markets, []policy.MarketID{n.Market})
		}
	}
	for i := range plan.Launches {
		l := &plan.Launches[i]
		for _, o := range append(placement.Offers(s, l.Pool, policy.Spot), placement.Offers(s, l.Pool, policy.OnDemand)...) {
			if o.Market != l.Markets[0] {
				continue
			}
			id := policy.NodeID(len(s.Nodes) + i)
			h.sp.SetNode(&policy.Node{
				ID: id, Name: l.Token, Pool: l.Pool, Market: o.Market, Phase: policy.NodeInitialized, VolumesMax: o.VolumesMax,
				Allocatable: o.Allocatable.Minus(h.sp.Daemons(o.Labels, o.Taints)), GPUResource: o.GPUResource, Labels: o.Labels, Taints: o.Taints,
			})
			h.nodes, h.markets = append(h.nodes, id), append(h.markets, l.Markets)
		}
	}
	return h
}

// queue takes the pods off node n.
func (h *house) queue(n policy.NodeID) {
	for _, id := range append([]policy.PodID(nil), h.sp.Pods(n)...) {
		p := &h.s.Pods[id]
		if p.Node == n && p.Phase != policy.PodTerminating && !h.s.Templates[p.Template].DaemonSet {
			h.sp.Unbind(p, n)
			h.leaving = append(h.leaving, id)
		}
	}
}

// settleMax bounds the places that are tried for the pods of one plan.
const settleMax = 20_000

// settles reports whether the pods from the k-th on can be placed so that every limit
// holds, whichever market of its launch a new node stands in, or too many places
// were tried to tell.
func (h *house) settles(k int, tried *int) bool {
	if *tried++; *tried > settleMax {
		return true
	}
	if k == len(h.leaving) {
		return h.holds()
	}
	p := &h.s.Pods[h.leaving[k]]
	w, room := h.s.Templates[p.Template].Workload, false
	for i, n := range h.nodes {
		if h.sp.Check(p, n) != placement.OK {
			continue
		}
		room = true
		h.sp.Bind(p, n)
		h.after.MoveOf(w, 1, p.Node, h.markets[i][0])
		ok := h.settles(k+1, tried)
		h.after.MoveOf(w, -1, p.Node, h.markets[i][0])
		h.sp.Unbind(p, n)
		if ok {
			return true
		}
	}
	return !room && h.settles(k+1, tried)
}

// holds reports whether no workload is worse off than before.
func (h *house) holds() bool {
	for _, was := range h.before {
		is := h.after.Loss(was.Workload)
		if was.Desired > 1 && (is.Short(is.Market) > was.Short(was.Market) || is.Short(is.Zone) > was.Short(was.Zone)) {
			return false
		}
	}
	return true
}

// text tells what leaves and where it may go.
func (h *house) text() string {
	text := ""
	for _, id := range h.leaving {
		p := &h.s.Pods[id]
		t := &h.s.Templates[p.Template]
		text += fmt.Sprintf("%s of %s, %+v, leaves %s in %s\n", p.Name, t.Name, t.Requests, h.s.Nodes[p.Node].Name, h.s.Markets[h.s.Nodes[p.Node].Market].Name)
	}
	for i, n := range h.nodes {
		text += fmt.Sprintf("node %d in %s has %+v free\n", n, h.s.Markets[h.markets[i][0]].Name, h.sp.Free(n))
	}
	for _, l := range h.before {
		text += fmt.Sprintf("%s: %+v\n", h.s.Workloads[l.Workload].Name, l)
	}
	return text
}
