package policy

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// NodeFees are costs of a node on top of its price: Fee is for what is charged per node,
// such as a licence or a monitoring agent, and Volumes for its root and data volumes.
type NodeFees struct {
	Fee     Money `json:",omitempty"`
	Volumes Money `json:",omitempty"`
}

// Total returns the sum of both.
func (f NodeFees) Total() Money { return f.Fee + f.Volumes }

// FeeMax is the greatest fee of a node per hour.
const FeeMax = 1000 * Dollar

// Fees returns what a node of pool costs per hour on top of its price; 0 for a node
// that no pool holds.
func (s *Snapshot) Fees(pool PoolID) Money {
	if pool < 0 {
		return 0
	}
	return s.Pools[pool].Fees.Total()
}

// WithoutFees returns s as a provisioner sees it that knows no fees.
func (s *Snapshot) WithoutFees() *Snapshot {
	if !slices.ContainsFunc(s.Pools, func(p Pool) bool { return p.Fees != NodeFees{} }) {
		return s
	}
	x := *s
	x.Pools = slices.Clone(s.Pools)
	for i := range x.Pools {
		x.Pools[i].Fees = NodeFees{}
	}
	return &x
}

// ParseFee reads what a node costs per hour on top of its price: dollars per hour, as 0.02 or
// $0.02/h, or per month of [HoursPerMonth], as $15/month.
func ParseFee(text string) (Money, error) {
	amount, per, divided := strings.Cut(strings.TrimSpace(text), "/")
	hours := 1.0
	if divided {
		switch strings.ToLower(strings.TrimSpace(per)) {
		case "h", "hr", "hour":
		case "mo", "month":
			hours = HoursPerMonth
		default:
			return 0, fmt.Errorf("%q: %q is not h, hour, mo or month", text, per)
		}
	}
	x, err := strconv.ParseFloat(strings.TrimPrefix(strings.TrimSpace(amount), "$"), 64)
	if err != nil || math.IsNaN(x) {
		return 0, fmt.Errorf("%q is not dollars per hour or month, such as 0.02/h or $15/month", text)
	}
	if x < 0 || x/hours > statedFeeMax.Float() {
		return 0, fmt.Errorf("%q is not from 0 to %v dollars per hour", text, statedFeeMax.Float())
	}
	return Dollars(x / hours), nil
}

// statedFeeMax is the greatest fee that a user may state: a greater one is a typing error.
const statedFeeMax = 100 * Dollar
