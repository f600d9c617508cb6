package share_test

import (
	"testing"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/policytest"
	"github.com/spotter-dev/spotter/policy/share"
)

// TestHolding counts what a pool has in each state of its nodes.
func TestHolding(t *testing.T) {
	s, _, err := policytest.Parse(`type a.2 2
type b.4 4
market z a.2 spot 0.03
market z b.4 on-demand 0.20
market z b.4 spot 0.06
pool other
pool web
node n01 web z b.4 on-demand
node n02 web z a.2 spot
node n03 web z b.4 spot
node n04 web z b.4 spot notice
node n05 web z b.4 on-demand by=us
node n06 web z b.4 on-demand by=karpenter
node n07 web z b.4 spot draining
node n08 web z b.4 spot deleting
node n09 web z b.4 spot launching ours
node n10 web z a.2 spot registered
node n11 other z b.4 spot
`)
	if err != nil {
		t.Fatal(err)
	}
	h := share.Of(s, 1)
	want := share.Holding{
		Spot: 6, Fixed: 4, Nodes: 3, Arriving: [3]int64{policy.Spot: 6}, ArrivingOurs: [3]int64{policy.Spot: 4},
		Waiting: [3]int64{policy.OnDemand: 4}, WaitingNodes: 1, ArrivingNodes: 1,
	}
	if h != want {
		t.Errorf("got %+v, want %+v", h, want)
	}
	if h.Share() != 0.6 {
		t.Errorf("share %v, want 0.6", h.Share())
	}
	if none := (share.Holding{}); none.Share() != 0 {
		t.Errorf("nothing has a share of %v", none.Share())
	}
	for i := range s.Types {
		s.Types[i].Capacity.GPU = int64(8 >> i)
	}
	if h := share.Of(s, 1); h.Spot != 8+4 || h.Fixed != 4 {
		t.Errorf("in GPUs: %+v", h)
	}
}
