package scenarios

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// A Reservation is a capacity reservation of EC2 that a NodePool may launch into. It is a market of
// its own, with capacity type reserved.
type Reservation struct {
	ID     string
	Market policy.MarketID

	// Count is the maximum number of nodes in it at any time.
	Count int

	// Until is its end, 0 for never. The nodes of a Block then end; other nodes continue at the
	// on-demand price.
	Until policy.Time
	Block bool
}

// expiring is the time before the end of a capacity block at which Karpenter drains its nodes
// (capacityReservationExpirationPeriod in pkg/apis/v1/ec2nodeclass_status.go of
// karpenter-provider-aws 1.14.1).
const expiring = 40 * time.Minute

// Ends returns the time from which nothing is launched into r.
func (r *Reservation) Ends() policy.Time {
	switch {
	case r.Until == 0:
		return policy.Time(1<<63 - 1)
	case r.Block:
		return r.Until.Add(-expiring)
	}
	return r.Until
}

// A reservedSpec is an entry of status.capacityReservations of an EC2NodeClass, with the number of
// its instances, which EC2 reports and that status does not contain.
type reservedSpec struct {
	id, kind, zone string
	count          int
	until          policy.Time
	block          bool
}

// readReservations reads the reservations that a node class selects. Other fields of its status are
// ignored, so that fields of other Karpenter versions cause no errors.
func (c *nodeClass) readReservations() (errs []error) {
	all := c.doc.at([]string{"status", "capacityReservations"})
	if all == nil && c.doc.at([]string{"spec", "capacityReservationSelectorTerms"}) != nil {
		return []error{c.doc.problem([]string{"spec", "capacityReservationSelectorTerms"},
			"what it selects is known by status.capacityReservations alone, which is not there; an empty list there says that it selects nothing")}
	}
	for i := 0; c.doc.at([]string{"status", "capacityReservations", Index(i)}) != nil; i++ {
		at := func(field string) []string { return []string{"status", "capacityReservations", Index(i), field} }
		value := func(field string) string { return c.doc.scalar(at(field)...) }
		fail := func(field, format string, args ...any) {
			errs = append(errs, c.doc.problem(at(field), format, args...))
		}
		x := reservedSpec{id: value("id"), kind: value("instanceType"), zone: value("availabilityZone")}
		for _, field := range []string{"id", "instanceType", "availabilityZone"} {
			if value(field) == "" {
				fail(field, "must be set")
			}
		}
		if slices.ContainsFunc(c.reservations, func(y reservedSpec) bool { return y.id == x.id }) {
			fail("id", "%s is listed twice", x.id)
		}
		const total = "totalInstanceCount"
		if n, err := strconv.ParseInt(value(total), 10, 32); value(total) == "" {
			fail(total,
				"must say how many nodes this cluster may have in %s: add what `aws ec2 describe-capacity-reservations` prints as TotalInstanceCount, less what others use", x.id)
		} else if err != nil {
			fail(total, "%q is not a number of nodes", value(total))
		} else if why := outside(int32(n), 1, nodesMax); why != "" {
			fail(total, "%s", why)
		} else {
			x.count = int(n)
		}
		if text := value("endTime"); text != "" {
			end, err := time.Parse(time.RFC3339, text)
			if x.until = policy.TimeOf(end); err != nil {
				fail("endTime", "%q is not a time such as 2026-01-02T15:04:05Z", text)
			}
		}
		switch kind := value("reservationType"); kind {
		case "", "default", "capacity-block":
			x.block = kind == "capacity-block"
		default:
			fail("reservationType", "%q is not default or capacity-block", kind)
		}
		if value("interruptible") == "true" {
			fail("interruptible", "interruptible reservations are not simulated: when their owner takes them back is not known")
		}
		c.reservations = append(c.reservations, x)
	}
	return errs
}

// settleReserved removes the capacity type reserved from NodePools whose node class selects no
// reservation.
func (p *pool) settleReserved(sc *Scenario) []error {
	if p.own == nil {
		return nil
	}
	if p.own.class != nil && len(p.own.class.reservations) > 0 {
		p.warnStrict(sc)
		return nil
	}
	p.base.CapacityTypes = slices.DeleteFunc(p.base.CapacityTypes,
		func(c policy.CapacityType) bool { return c == policy.Reserved })
	if len(p.base.CapacityTypes) > 0 {
		if p.own.asksReserved {
			sc.warn("NodePool %s: there is no reserved capacity: its EC2NodeClass selects no capacity reservation", p.name)
		}
		return nil
	}
	return []error{p.doc.problem([]string{"spec", "template", "spec", "requirements"},
		"karpenter.sh/capacity-type allows reserved alone, and its EC2NodeClass selects no capacity reservation")}
}

// warnStrict warns of cases in which Karpenter would not launch into reservations as simulated: its
// provider must satisfy minValues with the reservations alone (Truncate after the filters in
// instance.go of karpenter-provider-aws 1.14.1), unless MIN_VALUES_POLICY is BestEffort.
func (p *pool) warnStrict(sc *Scenario) {
	if !slices.Contains(p.base.CapacityTypes, policy.Reserved) {
		return
	}
	for _, x := range p.own.MinValues {
		if n := len(p.own.class.reservations); x.N > n {
			sc.warn("NodePool %s: minValues of %s is %d, and its EC2NodeClass selects %d reservations: unless MIN_VALUES_POLICY is BestEffort Karpenter fails to launch into these, and pods wait; here it launches",
				p.name, x.Key, x.N, n)
		}
	}
}

// A reservedOffer is a reservation in a selection: it has the type and zone of an offer. pools are
// the indices of the NodePools that may launch into it.
type reservedOffer struct {
	spec  *reservedSpec
	offer int
	pools []int
}

// takeReserved collects the reservations that NodePools may launch into.
func (x *selection) takeReserved(sc *Scenario) {
	for p := range sc.pools {
		own := sc.pools[p].own
		if own == nil || own.class == nil || !slices.Contains(sc.pools[p].base.CapacityTypes, policy.Reserved) {
			continue
		}
		for i := range own.class.reservations {
			r := &own.class.reservations[i]
			k := slices.IndexFunc(x.pools[p], func(k int) bool {
				o := &x.offers[k]
				return o.t.Name == r.kind && (o.series.Zone == r.zone || own.class.zones[o.series.Zone] == r.zone)
			})
			at := slices.IndexFunc(x.reserved, func(y reservedOffer) bool { return y.spec.id == r.id })
			switch {
			case k < 0:
				x.notes = append(x.notes,
					fmt.Sprintf("NodePool %s buys nothing of the reservation %s: it may not have %s in %s, or no price of that is known",
						sc.pools[p].name, r.id, r.kind, r.zone))
			case at < 0:
				x.reserved = append(x.reserved, reservedOffer{r, x.pools[p][k], []int{p}})
			default:
				x.reserved[at].pools = append(x.reserved[at].pools, p)
			}
		}
	}
}

// market returns the market of a reservation. Its price is the on-demand price, which a commitment
// pays until its end.
func (r *reservedOffer) market(all []listing) listing {
	l := all[slices.IndexFunc(all, func(l listing) bool {
		return l.offer == r.offer &&
			l.market.Capacity == policy.OnDemand
	})]
	l.market.Name = strings.TrimSuffix(l.market.Name, policy.OnDemand.String()) + policy.Reserved.String() + "/" +
		r.spec.id
	l.market.Capacity = policy.Reserved
	return l
}

// keepReserved records the reservations with their markets, allows NodePools to buy in them, and
// adds the commitments that pay for them.
func (w *BoundScenario) keepReserved(x *selection) {
	for i := range x.reserved {
		s := x.reserved[i].spec
		at := slices.IndexFunc(w.Markets, func(m policy.Market) bool {
			return m.Capacity == policy.Reserved && strings.HasSuffix(m.Name, "/"+s.id)
		})
		r := Reservation{ID: s.id, Market: policy.MarketID(at), Count: s.count, Until: s.until, Block: s.block}
		for _, p := range x.reserved[i].pools {
			w.NodePools[p].Reserved = append(w.NodePools[p].Reserved, r.Market)
		}
		m := &w.Markets[at]
		c := policy.Commitment{Name: s.id, Region: m.Region, Zone: w.Zones[m.Zone], Type: w.Types[m.Type].Name,
			Amount: int64(r.Count), Unused: int64(r.Count), Fee: m.OnDemand * policy.Money(r.Count), Until: r.Until}
		if r.Block {
			c.Fee = policy.NoPrice // paid at a separate price
		}
		if r.Until > 0 && r.Until <= w.Start.Add(-w.WarmUp) {
			w.Warnings = append(w.Warnings, fmt.Sprintf("reservation %s has no effect: it ended %v, before the run starts",
				r.ID, r.Until))
		}
		w.Reservations, w.Commitments = append(w.Reservations, r), append(w.Commitments, c)
	}
}
