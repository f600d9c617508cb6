package capture

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/spotter-dev/spotter/policy"
)

// labelReservation is the label of a node in a capacity reservation (pkg/apis/v1/labels.go of
// karpenter-provider-aws).
const labelReservation = "karpenter.k8s.aws/capacity-reservation-id"

// keyReservations is the status field of an EC2NodeClass with the capacity reservations that it
// selects.
const keyReservations = "capacityReservations"

// reservationsOf returns the capacity reservations that a node class selects. Its status does not
// contain their sizes, so each has the size of the number of nodes in it; one without nodes is left
// out.
func (c *poolSet) reservationsOf(class *unstructured.Unstructured) (out []any, found bool) {
	list, found, _ := unstructured.NestedSlice(class.Object, "status", keyReservations)
	out = make([]any, 0, len(list))
	for _, entry := range list {
		r, ok := entry.(map[string]any)
		if !ok {
			continue
		}
		id, _ := r["id"].(string)
		n := c.reservedNodes(id)
		if n == 0 {
			c.leave(1,
				"capacity reservations that no node is in, of which the cluster does not say how many nodes they hold: add them to status.capacityReservations of their EC2NodeClass, with totalInstanceCount")
			continue
		}
		delete(r, "ownerID")
		r["totalInstanceCount"] = n
		out = append(out, r)
		c.assume("capacity reservation %s holds the nodes that are in it, %d, and no more: totalInstanceCount says how many, which EC2 knows (aws ec2 describe-capacity-reservations)", c.names.of("reservation", id), n)
	}
	return out, found
}

// reservedNodes returns the number of nodes in a reservation, now or at the start of the history,
// whichever is larger.
func (c *poolSet) reservedNodes(id string) int64 {
	var now, then int64
	for i := range c.s.Nodes {
		n := &c.s.Nodes[i]
		if in, _ := n.Label(labelReservation); in != id || !n.Live() || c.o.Apart[n.Name] != "" {
			continue
		}
		if began, past := c.began[n.ID]; !past {
			now++
		} else if began {
			then++
		}
	}
	return max(now, then)
}

// settleReserved keeps a node in its reservation if its NodePool may launch there. Any other
// reserved node becomes an on-demand node that a commitment pays for.
func (c *poolSet) settleReserved(n *policy.Node, at *place) {
	if at.capacity != policy.Reserved {
		return
	}
	if x := at.pool.own; x != nil && x.selects(at.reservation) && Permits(c.nodePoolOf(n), karpv1.CapacityTypeReserved) {
		return
	}
	at.capacity, at.reservation, at.paid = policy.OnDemand, "", true
}

// selects reports whether the class of a NodePool selects a capacity reservation.
func (x *ownPool) selects(id string) bool {
	if x.class == nil || id == "" {
		return false
	}
	list, _ := x.class.Status[keyReservations].([]any)
	return slices.ContainsFunc(list, func(entry any) bool { return entry.(map[string]any)["id"] == id })
}

// hideReservations replaces the IDs of reservations.
func (c *source) hideReservations(class *nodeClass) {
	list, _ := class.Status[keyReservations].([]any)
	for _, entry := range list {
		r := entry.(map[string]any)
		r["id"] = c.names.of("reservation", r["id"].(string))
	}
}

// paidFor returns commitments that pay for the reserved nodes whose reservation is unknown, one for
// each type and zone. Types that already have a commitment are skipped.
func (c *poolSet) paidFor() (out []commitment) {
	all := int64(0)
	for i := range c.places {
		at := &c.places[i]
		if at.pool == nil || !at.paid || !c.seeded(policy.NodeID(i)) ||
			slices.ContainsFunc(c.s.Commitments, func(x policy.Commitment) bool { return x.Type == at.kind }) {
			continue
		}
		k := slices.IndexFunc(out, func(x commitment) bool { return x.InstanceType == at.kind && x.Zone == at.zone })
		if k < 0 {
			k = len(out)
			out = append(out, commitment{Name: fmt.Sprintf("reserved-%s-%s", at.kind, at.zone), InstanceType: at.kind,
				Count: new(int64), Region: at.region, Zone: at.zone})
		}
		*out[k].Count++
		all++
	}
	if all > 0 {
		c.assume("%d nodes of reserved capacity are nodes on demand that spec.commitments pays, without end: no NodePool and EC2NodeClass that are written say in which reservation they are", all)
	}
	slices.SortFunc(out, func(a, b commitment) int { return cmp.Compare(a.Name, b.Name) })
	return out
}
