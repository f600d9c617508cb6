package scenarios

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spotter-dev/spotter/policy"
)

// A commitmentSpec is a commitment that an account has paid for in advance: reserved instances
// (instanceType and count) or a savings plan (spend and discount).
type commitmentSpec struct {
	Name string `json:"name"`

	// InstanceType and Count describe reserved instances. SizeFlexible lets them cover other sizes
	// of the family, as AWS does for regional reserved instances.
	InstanceType string `json:"instanceType"`
	Count        *int32 `json:"count"`
	SizeFlexible bool   `json:"sizeFlexible"`

	// Spend is the committed spend of a savings plan, in dollars per hour. Discount is its
	// reduction of the on-demand price, above 0 and below 1.
	Spend    *float64 `json:"spend"`
	Discount *float64 `json:"discount"`

	// Region, Zone and Family restrict the commitment; an empty one does not.
	Region string `json:"region"`
	Zone   string `json:"zone"`
	Family string `json:"family"`

	// Fee is the price of all the reserved instances together, in dollars per hour.
	Fee *float64 `json:"fee"`
}

const (
	// spendMost is the maximum spend or fee, in dollars per hour. A greater value is assumed to be
	// a typing error.
	spendMost = 10_000

	// discountMost is the maximum discount of a savings plan.
	discountMost = 0.95
)

// readCommitments reads and checks the commitments of a scenario.
func (sc *Scenario) readCommitments(specs []commitmentSpec, doc *document) []error {
	var errs []error
	for i := range specs {
		c := &specs[i]
		fail := func(field, format string, args ...any) {
			errs = append(errs, doc.problem([]string{"spec", "commitments", Index(i), field}, format, args...))
		}
		if c.Name == "" {
			fail("name", "must be set")
		} else if slices.ContainsFunc(specs[:i], func(x commitmentSpec) bool { return x.Name == c.Name }) {
			fail("name", "%q is listed twice", c.Name)
		}
		before := len(errs)
		switch plan := c.Spend != nil || c.Discount != nil; {
		case plan:
			c.checkPlan(fail)
		default:
			c.checkReserved(fail)
		}
		if len(errs) == before {
			sc.commitments = append(sc.commitments, c.commitment())
		}
	}
	slices.SortFunc(sc.commitments, func(a, b policy.Commitment) int { return cmp.Compare(a.Name, b.Name) })
	return errs
}

func (c *commitmentSpec) checkPlan(fail func(field, format string, args ...any)) {
	switch {
	case c.Spend == nil:
		fail("spend", "must be set for a savings plan, which has a discount")
	case !(*c.Spend > 0 && *c.Spend <= spendMost):
		fail("spend", "%v is not above 0 and at most %d dollars per hour", *c.Spend, spendMost)
	}
	switch {
	case c.Discount == nil:
		fail("discount", "must be set for a savings plan, which has a spend")
	case !(*c.Discount > 0 && *c.Discount <= discountMost):
		fail("discount", "%v is not above 0 and at most %v", *c.Discount, discountMost)
	}
	for _, x := range []struct {
		field string
		set   bool
	}{
		{"instanceType", c.InstanceType != ""}, {"count", c.Count != nil}, {"sizeFlexible", c.SizeFlexible},
		{"zone", c.Zone != ""}, {"fee", c.Fee != nil},
	} {
		if x.set {
			fail(x.field, "is for reserved instances, and this is a savings plan, which has a spend")
		}
	}
}

func (c *commitmentSpec) checkReserved(fail func(field, format string, args ...any)) {
	switch {
	case c.InstanceType == "" && c.Count == nil:
		fail("instanceType", "must be set with count for reserved instances, or spend with discount for a savings plan")
	case c.InstanceType == "":
		fail("instanceType", "must be set for reserved instances, which have a count")
	case c.Count == nil:
		fail("count", "must be set for reserved instances, which have an instanceType")
	}
	if c.Count != nil {
		if why := outside(*c.Count, 1, nodesMax); why != "" {
			fail("count", "%s", why)
		}
	}
	if c.Family != "" {
		fail("family", "is for savings plans; reserved instances are of instanceType, and with sizeFlexible of its family")
	}
	if c.SizeFlexible && c.Zone != "" {
		fail("sizeFlexible", "zone is set too, and only reserved instances of a region are flexible in size")
	}
	if c.SizeFlexible && c.InstanceType != "" && policy.SizeUnits(c.InstanceType) == 0 {
		fail("sizeFlexible", "%q has no size that can be compared", c.InstanceType)
	}
	if c.Fee != nil && !(*c.Fee >= 0 && *c.Fee <= spendMost) {
		fail("fee", "%v is not from 0 to %d dollars per hour", *c.Fee, spendMost)
	}
}

// commitment returns the commitment that a checked spec describes.
func (c *commitmentSpec) commitment() policy.Commitment {
	out := policy.Commitment{Name: c.Name, Region: c.Region, Zone: c.Zone, Family: c.Family, Type: c.InstanceType,
		Fee: policy.NoPrice}
	switch {
	case c.Spend != nil:
		out.Unit, out.Fee = policy.CoverDollars, policy.Dollars(*c.Spend)
		out.Amount = int64(policy.Dollars(*c.Spend / (1 - *c.Discount)))
	case c.SizeFlexible:
		out.Unit, out.Type = policy.CoverSizes, ""
		out.Family, _, _ = strings.Cut(c.InstanceType, ".")
		out.Amount = int64(*c.Count) * policy.SizeUnits(c.InstanceType)
	default:
		out.Amount = int64(*c.Count)
	}
	if c.Fee != nil {
		out.Fee = policy.Dollars(*c.Fee)
	}
	out.Unused = out.Amount
	return out
}

// commit copies the commitments of the scenario, and warns of those that cover no market of a pool.
func (w *BoundScenario) commit(sc *Scenario) {
	w.Commitments = append(w.Commitments, sc.commitments...)
	slices.SortFunc(w.Commitments, func(a, b policy.Commitment) int { return cmp.Compare(a.Name, b.Name) })
	for i := range w.Commitments {
		c := &w.Commitments[i]
		covers := slices.ContainsFunc(w.Markets, func(m policy.Market) bool {
			return c.Takes(&m, &w.Types[m.Type], w.Zones[m.Zone]) > 0
		})
		if !covers {
			w.Warnings = append(w.Warnings,
				fmt.Sprintf("commitment %s covers nothing: no pool may buy on demand what it is for (%s)", c.Name, c.Scope()))
		}
	}
}
