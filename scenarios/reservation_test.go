package scenarios

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// reservedText is a scenario of ownNodePool whose class selects a reservation, of the given
// entry of its status.
func reservedText(requirement, entry string) string {
	text := fmt.Sprintf(ownNodePool, twoFamilies+requirement, "capacityReservationSelectorTerms: [{tags: {team: a}}]")
	return strings.Replace(text, "metadata: {name: c}\n", "metadata: {name: c}\nstatus: {capacityReservations: ["+entry+"]}\n", 1)
}

const wholeReservation = "{id: cr-1, instanceType: m5.xlarge, availabilityZone: us-east-1a, totalInstanceCount: 3, instanceMatchCriteria: targeted, ownerID: \"1\""

// TestReservation reads what a class selects as a market of its own, which its NodePool alone
// may buy and which is paid for.
func TestReservation(t *testing.T) {
	sc, err := Parse("s.yaml",
		[]byte(reservedText("", wholeReservation+`, reservationType: capacity-block, endTime: "2023-01-08T00:00:00Z", state: active}`)))
	if err != nil {
		t.Fatal(err)
	}
	w := boundOwn(t, sc)
	if len(w.Reservations) != 1 || len(w.NodePools[0].Reserved) != 1 || w.NodePools[0].OnlyReserved {
		t.Fatalf("reservations %+v of %+v, want one", w.Reservations, w.NodePools[0])
	}
	r, end := &w.Reservations[0], policy.TimeOf(time.Date(2023, 1, 8, 0, 0, 0, 0, time.UTC))
	m := &w.Markets[r.Market]
	if m.Capacity != policy.Reserved || w.Types[m.Type].Name != "m5.xlarge" || !strings.HasSuffix(m.Name, "/m5.xlarge/reserved/cr-1") {
		t.Errorf("its market is %+v", m)
	}
	if r.Count != 3 || !r.Block || r.Until != end || r.Ends() != end.Add(-40*time.Minute) {
		t.Errorf("it is %+v", r)
	}
	for _, id := range w.Pools[0].Markets {
		if id == r.Market {
			t.Error("other policies may launch into it")
		}
	}
	c := w.Commitments
	if len(c) != 1 || c[0].Name != "cr-1" || c[0].Amount != 3 || c[0].Until != end || c[0].Fee != policy.NoPrice ||
		c[0].Takes(m, &w.Types[m.Type], w.Zones[m.Zone]) != 1 {
		t.Errorf("it is paid for as %+v", c)
	}
}

// TestReservationTypes: a NodePool that names other capacity types does not launch into it,
// and one that names nothing else launches nowhere else.
func TestReservationTypes(t *testing.T) {
	for requirement, want := range map[string][]int{
		", {key: karpenter.sh/capacity-type, operator: In, values: [spot]}":     {0, 0},
		", {key: karpenter.sh/capacity-type, operator: In, values: [reserved]}": {1, 1},
		"": {1, 0},
	} {
		sc, err := Parse("s.yaml", []byte(reservedText(requirement, wholeReservation+"}")))
		if err != nil {
			t.Fatal(err)
		}
		w, only := boundOwn(t, sc), 0
		if w.NodePools[0].OnlyReserved {
			only = 1
		}
		if len(w.NodePools[0].Reserved) != want[0] || only != want[1] {
			t.Errorf("%q: reservations %v, alone %d, want %v", requirement, w.NodePools[0].Reserved, only, want)
		}
	}
}

// TestReservationMinValues warns of minValues that reservations do not have.
func TestReservationMinValues(t *testing.T) {
	for least, want := range map[string]int{"1": 0, "2": 1} {
		text := reservedText("", wholeReservation+"}")
		text = strings.Replace(text, twoFamilies, strings.TrimSuffix(twoFamilies, "}")+", minValues: "+least+"}", 1)
		sc, err := Parse("s.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(strings.Join(boundOwn(t, sc).Warnings, "\n"), "unless MIN_VALUES_POLICY is BestEffort"); n != want {
			t.Errorf("minValues %s: %d warnings, want %d", least, n, want)
		}
	}
}

// TestReservedNodes: nodes begin in the reservation that they name, if they are reserved.
func TestReservedNodes(t *testing.T) {
	node := func(more string) string {
		return strings.Replace(reservedText("", wholeReservation+"}, "+strings.Replace(wholeReservation, "cr-1", "cr-2", 1)+"}"),
			"spec: {duration: 24h}", "spec: {duration: 24h, nodes: [{pool: own, count: 2"+more+"}]}", 1)
	}
	sc, err := Parse("s.yaml", []byte(node(", capacityType: reserved, reservation: cr-2")))
	if err != nil {
		t.Fatal(err)
	}
	if w := boundOwn(t, sc); len(w.Seeds) != 1 || !strings.HasSuffix(w.Markets[w.Seeds[0].Market].Name, "/reserved/cr-2") {
		t.Errorf("nodes %+v", w.Seeds)
	}
	if _, err := Parse("s.yaml", []byte(node(", reservation: cr-2"))); err == nil ||
		!strings.Contains(err.Error(), `"spec.nodes[0].reservation": is for nodes of the capacityType reserved`) {
		t.Errorf("%v", err)
	}
}

func TestReservationProblems(t *testing.T) {
	for change, want := range map[string]string{
		"totalInstanceCount: 3|ownerID: x":               `"status.capacityReservations[0].totalInstanceCount": must say how many nodes`,
		"totalInstanceCount: 3|totalInstanceCount: 0":    `"status.capacityReservations[0].totalInstanceCount": 0 is not above 0`,
		"totalInstanceCount: 3|totalInstanceCount: many": `"status.capacityReservations[0].totalInstanceCount": "many" is not a number of nodes`,
		"id: cr-1, |": `"status.capacityReservations[0].id": must be set`,
		"targeted,|targeted, reservationType: future,":     `"status.capacityReservations[0].reservationType": "future" is not default or capacity-block`,
		"targeted,|targeted, endTime: soon,":               `"status.capacityReservations[0].endTime": "soon" is not a time`,
		"targeted,|targeted, interruptible: true,":         `"status.capacityReservations[0].interruptible": interruptible reservations are not simulated`,
		"[{id: cr-1|[" + wholeReservation + "}, {id: cr-1": `"status.capacityReservations[1].id": cr-1 is listed twice`,
	} {
		from, to, _ := strings.Cut(change, "|")
		text := reservedText("", wholeReservation+"}")
		if !strings.Contains(text, from) {
			t.Fatalf("there is no %q", from)
		}
		if _, err := Parse("s.yaml", []byte(strings.Replace(text, from, to, 1))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", change, err, want)
		}
	}
}
