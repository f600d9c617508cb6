package policy

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// NodeFees are costs of a node on top of its price: Fee is for what is charged per node,
// such as a licence or a monitoring agent, and Volumes for its root and data volumes. Credits
// are for CPU beyond the baseline of a burstable type; they depend on what its pods use, so
// that only what was charged has them, and no price per hour.
type NodeFees struct {
	Fee     Money `json:",omitempty"`
	Volumes Money `json:",omitempty"`
	Credits Money `json:",omitempty"`
}

// Total returns their sum.
func (f NodeFees) Total() Money { return f.Fee + f.Volumes + f.Credits }

// FeeMax is the greatest fee of a node per hour.
const FeeMax = 1000 * Dollar

// Fees returns what a node of pool in market m is expected to cost per hour on top of its
// price. None is the pool of a node that no pool holds, and the market of one of no market.
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

// WithoutFees returns s as a provisioner sees it that knows no fees and no CPU credits.
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
