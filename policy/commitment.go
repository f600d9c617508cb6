package policy

import (
	"strconv"
	"strings"
)

// A Commitment is on-demand capacity that was paid for in advance: a reserved instance, a savings
// plan, or a capacity reservation. On-demand nodes that it covers cost nothing more, and it is paid
// for whether it covers any or not. So no decision saves its fee, and a decision that leaves it
// unused wastes it.
type Commitment struct {
	// Name is unique among the commitments of a snapshot.
	Name string

	// Region, Zone, Family and Type select the on-demand nodes that it covers. An empty field
	// matches all.
	Region, Zone, Family, Type string

	// Unit is the unit of Amount and Unused. Amount is the maximum that the commitment covers at
	// once for this cluster, which is less than all of it if the account has other uses for it.
	// Unused is the part that covers no node now.
	Unit           CoverUnit
	Amount, Unused int64

	// Until is when it ends; 0 means never. In snapshots after that its Amount is 0.
	Until Time `json:",omitempty"`

	// Fee is the cost of the commitment per hour, used or not; NoPrice if that is unknown. It is
	// for reports only: no price that is compared includes it.
	Fee Money
}

// CommitmentMax is the maximum amount of a commitment, a million dollars per hour: a larger amount
// must be a typing error, and sums would overflow.
const CommitmentMax = int64(1_000_000 * Dollar)

// A CoverUnit is the unit of the amount of a commitment.
type CoverUnit uint8

// The units of commitments.
const (
	// CoverNodes counts nodes: a reserved instance of one type.
	CoverNodes CoverUnit = iota

	// CoverSizes counts the provider's sizes within a family, sixteen for a "large": reserved
	// instances that are flexible in size. See SizeUnits.
	CoverSizes

	// CoverDollars counts micro-dollars per hour at the on-demand price: a savings plan. A plan
	// that commits to spend $7 per hour at a discount of 30% covers nodes that cost $10 per hour.
	CoverDollars
)

// String returns the name of u for output.
func (u CoverUnit) String() string { return [...]string{"nodes", "sizes", "dollars"}[u] }

// SizeUnits returns the size of an AWS instance type within its family, sixteen for a "large" (four
// times the normalisation factor that AWS publishes); 0 for a name without a size.
func SizeUnits(instanceType string) int64 {
	const large, xlarge = 16, 32
	_, size, _ := strings.Cut(instanceType, ".")
	size = strings.TrimPrefix(size, "metal-")
	switch size {
	case "nano":
		return large / 16
	case "micro":
		return large / 8
	case "small":
		return large / 4
	case "medium":
		return large / 2
	case "large":
		return large
	case "xlarge":
		return xlarge
	}
	n, ok := strings.CutSuffix(size, "xlarge")
	if !ok {
		n, ok = strings.CutSuffix(size, "xl")
	}
	times, err := strconv.ParseInt(n, 10, 16)
	if !ok || err != nil || times <= 0 {
		return 0
	}
	return times * xlarge
}

// Takes returns how many units of c one node of market m uses, of type t in the zone with the given
// name; 0 if c does not cover it.
func (c *Commitment) Takes(m *Market, t *InstanceType, zone string) int64 {
	if m.Capacity == Spot || c.Region != "" && c.Region != m.Region || c.Zone != "" && c.Zone != zone ||
		c.Family != "" && c.Family != t.Family || c.Type != "" && c.Type != t.Name {
		return 0
	}
	switch c.Unit {
	case CoverSizes:
		return SizeUnits(t.Name)
	case CoverDollars:
		return int64(m.OnDemand)
	}
	return 1
}

// Scope describes the nodes that c covers, such as "10 nodes of m5.large in zone use1-az1".
func (c *Commitment) Scope() string {
	var s string
	switch c.Unit {
	case CoverNodes:
		s = strconv.FormatInt(c.Amount, 10) + " node"
		if c.Amount != 1 {
			s += "s"
		}
	case CoverSizes:
		s = "the size of " + strconv.FormatFloat(float64(c.Amount)/16, 'f', -1, 64) + " large nodes"
	case CoverDollars:
		s = Money(c.Amount).Short() + " an hour on demand"
	}
	for _, x := range [...]struct{ word, value string }{{" of ", c.Type}, {" of family ", c.Family},
		{" in zone ", c.Zone}, {" in region ", c.Region}} {
		if x.value != "" {
			s += x.word + x.value
		}
	}
	return s
}
