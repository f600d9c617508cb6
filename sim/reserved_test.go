package sim

import (
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// anyFamilies are the minValues of the scenario: with them Karpenter launches spot at any price, and
// replaces nothing by one type.
const anyFamilies = ", minValues: 4"

// reservedPools returns the embedded scenario of NodePools, whose general one may launch into
// a reservation, with more to say of it.
func reservedPools(t *testing.T, more string) *Prepared {
	t.Helper()
	return nodePools(t, anyFamilies, "", "values: [spot, on-demand]", "values: [reserved, spot, on-demand]",
		"kind: EC2NodeClass\nmetadata: {name: default}\n", "kind: EC2NodeClass\nmetadata: {name: default}\nstatus: {capacityReservations: [{id: cr-1, instanceType: m5.4xlarge, availabilityZone: us-east-1a, totalInstanceCount: 2"+more+"}]}\n")
}

// TestReserved plays NodePools with a reservation, of the size of nodes that the general one
// has in that zone: it is filled before anything else is bought there, never beyond its count,
// and its nodes cost nothing more.
func TestReserved(t *testing.T) {
	events, res := ownEvents(t, reservedPools(t, ""), "as-is")
	held, most, launches := 0, 0, 0
	for _, e := range events {
		if !strings.HasSuffix(e.market, "/reserved/cr-1") {
			if e.kind == "launch" && e.bought && e.zone == "us-east-1a" && strings.HasPrefix(e.node, "general-") && held < 2 {
				t.Errorf("%s was launched into %s while %d of the reservation were left", e.node, e.market, 2-held)
			}
			continue
		}
		switch e.kind {
		case "launch":
			held++
			launches++
			most = max(most, held)
		case "deleted":
			held--
		}
	}
	if most != 2 || launches == 0 {
		t.Errorf("%d nodes at most and %d launches in a reservation of 2", most, launches)
	}
	if res.Spared == 0 || res.CommitmentFee <= 0 {
		t.Errorf("spared are %v of a fee of %v", res.Spared, res.CommitmentFee)
	}
	for _, spec := range []string{"on-demand", "portfolio"} {
		events, _ := ownEvents(t, reservedPools(t, ""), spec)
		for _, e := range events {
			if strings.Contains(e.market, "/reserved/") {
				t.Errorf("%s launched %s", spec, e.market)
			}
		}
	}
}

// TestReservedEnds: the nodes of a capacity block are emptied from forty minutes before its
// end and gone ten minutes later; those of another reservation run on and cost what they do on
// demand.
func TestReservedEnds(t *testing.T) {
	p := nodePools(t)
	end := p.Scenario().Start.Add(20 * time.Hour)
	text := end.Std().Format(time.RFC3339)
	for _, block := range []bool{true, false} {
		more := `, endTime: "` + text + `"`
		if block {
			more += ", reservationType: capacity-block"
		}
		events, res := ownEvents(t, reservedPools(t, more), "as-is")
		ended, launched := 0, 0
		for _, e := range events {
			if !strings.HasSuffix(e.market, "/reserved/cr-1") {
				continue
			}
			at := policy.TimeOf(e.at)
			if e.kind == "launch" {
				if launched++; at >= end {
					t.Errorf("block %v: launched at %v, after the end", block, e.at)
				}
			}
			if block && e.kind == "draining" && at >= end.Add(-40*time.Minute) {
				ended++
			}
			if block && at > end.Add(-20*time.Minute) {
				t.Errorf("%s of a node of the block at %v", e.kind, e.at)
			}
		}
		if launched == 0 || block && ended == 0 {
			t.Errorf("block %v: %d launched and %d drained at its end", block, launched, ended)
		}
		if want := policy.NoPrice; block && res.CommitmentFee != want {
			t.Errorf("the fee of a block is %v, want none", res.CommitmentFee)
		}
	}
}

// TestNodeOverlay: Karpenter buys no Spot node where an overlay adds $10 to the Spot price.
func TestNodeOverlay(t *testing.T) {
	overlay := "---\napiVersion: karpenter.sh/v1alpha1\nkind: NodeOverlay\nmetadata: {name: dear}\nspec:\n  requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [spot]}]\n  priceAdjustment: \"+10\"\n"
	scale := "---\napiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\n"
	spot := func(p *Prepared) (n int) {
		events, _ := ownEvents(t, p, "as-is")
		for _, e := range events {
			if e.kind == "launch" && e.bought && strings.HasPrefix(e.node, "general-") && strings.HasSuffix(e.market, "/spot") {
				n++
			}
		}
		return n
	}
	if with, without := spot(nodePools(t, anyFamilies, "", scale, overlay+scale)), spot(nodePools(t, anyFamilies,
		"")); with > 0 || without == 0 {
		t.Errorf("%d spot nodes were bought where they are taken to cost 10 dollars more, and %d where not", with, without)
	}
}
