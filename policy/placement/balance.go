package placement

import (
	"math"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/share"
)

// A Balance is the Spot capacity and the total capacity of a pool, as they will be when all moves
// under way are finished.
type Balance struct {
	// Spot and Total are in the units of the share: vCPUs or accelerators.
	Spot, Total int64

	// Nodes is the number of initialized nodes included in Total.
	Nodes int

	// Moving is the number of moves under way in which only the new node is visible, because no
	// node is marked as waiting for it.
	Moving int
}

// BalanceOf returns the balance of pool.
func BalanceOf(s *policy.Snapshot, pool policy.PoolID) Balance {
	h := share.Of(s, pool)
	spot := h.Spot + h.Arriving[policy.Spot]
	fixed := h.Fixed + h.Arriving[policy.OnDemand] + h.Arriving[policy.Reserved]
	// A node that Spotter bought replaces one that will be drained. If that one is not yet marked
	// as waiting, it is subtracted here.
	unmarked := h.ArrivingOurs[policy.Spot] + h.ArrivingOurs[policy.OnDemand] -
		h.Waiting[policy.Spot] - h.Waiting[policy.OnDemand] - h.Waiting[policy.Reserved]
	if unmarked > 0 {
		fixed -= min(fixed, unmarked, h.ArrivingOurs[policy.Spot])
		spot -= min(spot, unmarked, h.ArrivingOurs[policy.OnDemand])
	}
	return Balance{Spot: spot, Total: spot + fixed, Nodes: h.Nodes, Moving: max(0, h.ArrivingNodes-h.WaitingNodes)}
}

// rounding is a relative tolerance, larger than all rounding errors: a pool that is exactly one
// node away from its share is Off, however the product of share and size is rounded.
const rounding = 1e-9

// Off reports whether the pool is away from share by at least one of its nodes of mean size. A
// smaller distance is ignored to avoid oscillation, except at a share of 0 or 1, which no move can
// overshoot.
func (b Balance) Off(share float64) bool {
	if share == 0 || share == 1 {
		return b.Nodes > 0 && b.Away(share) > 0
	}
	return b.Nodes > 0 && b.Away(share)*float64(b.Nodes) >= float64(float64(b.Total)*(1-rounding))
}

// Away returns the distance from share in the units of the share.
func (b Balance) Away(share float64) float64 { return math.Abs(b.Missing(share)) }

// Missing returns the Spot capacity to add in order to reach share, in the units of the share. It
// is negative if there is too much Spot.
func (b Balance) Missing(share float64) float64 {
	return float64(share*float64(b.Total)) - float64(b.Spot)
}
