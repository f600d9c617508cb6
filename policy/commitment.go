package policy

import (
	"strconv"
	"strings"
)

// A Commitment is capacity on demand that was paid for in advance: a reserved
// instance, a savings plan, or a capacity reservation. Nodes on demand that it covers cost nothing more,
// and it is paid for whether it covers any or not. So no decision saves its fee,
// and one that leaves it unused wastes it.
type Commitment struct {
	// Name is unique among the commitments of a snapshot.
	Name string

	// Region, Zone, Family and Type say which nodes on demand it covers. An
	// empty one matches all.
	Region, Zone, Family, Type string

	// Unit is what Amount counts; Amount is the most that it covers at once. It
	// is what this cluster may count on, less than all of it where an account
	// has other uses for it. Unused is the part that covers no node now.
	Unit           CoverUnit
	Amount, Unused int64

	// Until is when it ends, 0 for never. A snapshot after that has an Amount of 0.
	Until Time `json:",omitempty"`

	// Fee is what the commitment costs per hour, used or not; NoPrice where that
	// is not known. It is for reports: no price that is compared has it in it.
	Fee Money
}

// CommitmentMax is the greatest amount of a commitment, a million dollars an hour: a greater one
// must be a typing error, and sums would overflow.
const CommitmentMax = int64(1_000_000 * Dollar)

// A CoverUnit is what the amount of a commitment counts.
type CoverUnit uint8

// The units of commitments.
const (
	// CoverNodes counts nodes: a reserved instance of one type.
	CoverNodes CoverUnit = iota

	// CoverSizes counts the provider's sizes within a family, sixteen to a
	// "large": reserved instances that are flexible in size. See SizeUnits.
	CoverSizes

	// CoverDollars counts micro-dollars an hour at the on-demand price: a savings plan. One that
	// commits to spend 7 dollars an hour at a discount of 30% covers nodes that cost 10.
	CoverDollars
)

// String returns the word used in output.
func (u CoverUnit) String() string { return [...]string{"nodes", "sizes", "dollars"}[u] }

// SizeUnits returns how large an instance type of AWS is within its family,
// sixteen for a "large" (four times the factor that AWS publishes); 0 for a name
// without a size.
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

// Takes returns how much of c one node of market m takes, of type t in the zone
// of that name; 0 where c does not cover it.
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

// Scope says in words which nodes c covers, as in "10 nodes of m5.large in zone
// use1-az1".
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
