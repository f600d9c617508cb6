package placement

import (
	"math"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/share"
)

// A Balance is what a pool holds on spot and in all, with the moves under way counted
// as done.
type Balance struct {
	// Spot and Total are in units of the share.
	Spot, Total int64

	// Nodes is the number of nodes that Total counts and that are initialized.
	Nodes int

	// Moving is the number of moves under way of which only the new node can be seen,
	// since no node is marked as waiting for it.
	Moving int
}

// BalanceOf returns the balance of pool.
func BalanceOf(s *policy.Snapshot, pool policy.PoolID) Balance {
	h := share.Of(s, pool)
	spot := h.Spot + h.Arriving[policy.Spot]
	fixed := h.Fixed + h.Arriving[policy.OnDemand] + h.Arriving[policy.Reserved]
	// A node that we bought replaces one that will be drained. Where that one is not
	// yet marked as waiting, it is subtracted here.
	unmarked := h.ArrivingOurs[policy.Spot] + h.ArrivingOurs[policy.OnDemand] -
		h.Waiting[policy.Spot] - h.Waiting[policy.OnDemand] - h.Waiting[policy.Reserved]
	if unmarked > 0 {
		fixed -= min(fixed, unmarked, h.ArrivingOurs[policy.Spot])
		spot -= min(spot, unmarked, h.ArrivingOurs[policy.OnDemand])
	}
	return Balance{Spot: spot, Total: spot + fixed, Nodes: h.Nodes, Moving: max(0, h.ArrivingNodes-h.WaitingNodes)}
}

// rounding is the part of what a pool holds that is more than all that is lost to rounding: a
// pool that is one node away exactly is Off, whatever its share times its size is rounded to.
const rounding = 1e-9

// Off reports whether the pool is away from share by at least one of its nodes
// of mean size. A nearer pool is left alone so that it does not oscillate, except at a
// share of 0 or 1, which no move can pass.
func (b Balance) Off(share float64) bool {
	if share == 0 || share == 1 {
		return b.Nodes > 0 && b.Away(share) > 0
	}
	return b.Nodes > 0 && b.Away(share)*float64(b.Nodes) >= float64(float64(b.Total)*(1-rounding))
}

// Away returns the distance to share in units of it.
func (b Balance) Away(share float64) float64 { return math.Abs(b.Missing(share)) }

// Missing returns how much Spot capacity is wanted, negative if too much.
func (b Balance) Missing(share float64) float64 {
	return float64(share*float64(b.Total)) - float64(b.Spot)
}
