package policy

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// NodeFees are the costs of a node in addition to its price. Fee is a charge per node, such as a
// licence or a monitoring agent, and Volumes the charge for its root and data volumes. Credits is
// the charge for CPU beyond the baseline of a burstable type; it depends on the usage of its pods,
// so it is set only in what was charged, and not in prices per hour.
type NodeFees struct {
	Fee     Money `json:",omitempty"`
	Volumes Money `json:",omitempty"`
	Credits Money `json:",omitempty"`
}

// Total returns the sum of the fees.
func (f NodeFees) Total() Money { return f.Fee + f.Volumes + f.Credits }

// FeeMax is the maximum fee of a node per hour.
const FeeMax = 1000 * Dollar

// Fees returns the expected hourly cost of a node of pool in market m in addition to its price.
// pool is None for a node without a pool, and m is None for a node without a market.
func (s *Snapshot) Fees(pool PoolID, m MarketID) Money {
	var fees Money
	if m >= 0 {
		fees = s.Use.surplus(&s.Types[s.Markets[m].Type])
	}
	if pool >= 0 {
		fees += s.Pools[pool].Fees.Total()
	}
	return fees
}

// WithoutFees returns s as a provisioner that ignores fees and CPU credits sees it.
func (s *Snapshot) WithoutFees() *Snapshot {
	fees := slices.ContainsFunc(s.Pools, func(p Pool) bool { return p.Fees != NodeFees{} })
	if !fees && s.Use == (CPUUse{}) {
		return s
	}
	x := *s
	if x.Use = (CPUUse{}); !fees {
		return &x
	}
	x.Pools = slices.Clone(s.Pools)
	for i := range x.Pools {
		x.Pools[i].Fees = NodeFees{}
	}
	return &x
}

// ParseFee parses a cost of a node in addition to its price: dollars per hour, such as 0.02 or
// $0.02/h, or dollars per month of [HoursPerMonth], such as $15/month. It returns the cost per
// hour.
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

// statedFeeMax is the maximum fee that a user may state: a larger one must be a typing error.
const statedFeeMax = 100 * Dollar
