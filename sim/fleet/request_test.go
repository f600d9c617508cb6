package fleet_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/sim/fleet"
)

// TestRequest gives offerings as type, capacity type and price, and those that are kept.
// The type g is exotic.
func TestRequest(t *testing.T) {
	for _, c := range []struct {
		name       string
		have, want []string
	}{
		{"nothing", nil, nil},
		{"spot before on-demand", []string{"a spot 3", "b spot 4", "a od 9"}, []string{"a spot 3", "b spot 4"}},
		{"on-demand alone", []string{"a od 9", "b od 10"}, []string{"a od 9", "b od 10"}},
		{"spot as dear as on-demand", []string{"a spot 3", "b spot 9", "a od 9"}, []string{"a spot 3", "b spot 9"}},
		{"spot dearer than on-demand", []string{"a spot 3", "a od 9", "b spot 10", "b od 11"}, []string{"a spot 3"}},
		{"all spot dearer than on-demand", []string{"a od 9", "a spot 10", "b od 11"}, []string{"a od 9", "b od 11"}},
		{"dear spot alone", []string{"a spot 3", "b spot 90"}, []string{"a spot 3", "b spot 90"}},
		{"an accelerator beside another type", []string{"g spot 1", "a spot 3", "g od 4", "a od 9"}, []string{"a spot 3"}},
		{"accelerators alone", []string{"g spot 1", "g od 4"}, []string{"g spot 1"}},
		{"reserved before all", []string{"b reserved 1", "c reserved 1", "a spot 1", "a od 2"}, []string{"b reserved 1", "c reserved 1"}},
		{"a reservation before a block of its price", []string{"b block-reserved 1", "c reserved 1", "d reserved 2"},
			[]string{"c reserved 1", "d reserved 2"}},
		{"one block", []string{"b block-reserved 1", "c block-reserved 1", "d reserved 2"}, []string{"b reserved 1"}},
	} {
		var have []fleet.Offering
		for _, text := range c.have {
			have = append(have, offering(t, text))
		}
		var got []string
		for _, o := range fleet.Request(have, false) {
			got = append(got, fmt.Sprintf("%c %s %d", 'a'+rune(o.Type), map[policy.CapacityType]string{policy.Spot: "spot",
				policy.OnDemand: "od", policy.Reserved: "reserved"}[o.Capacity], o.Price))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

var capacities = map[string]policy.CapacityType{"spot": policy.Spot, "od": policy.OnDemand, "reserved": policy.Reserved}

func offering(t *testing.T, text string) fleet.Offering {
	t.Helper()
	var typ rune
	var capacity string
	var o fleet.Offering
	if _, err := fmt.Sscanf(text, "%c %s %d", &typ, &capacity, &o.Price); err != nil {
		t.Fatal(err)
	}
	o.Type, o.Capacity, o.Exotic = policy.TypeID(typ-'a'), capacities[strings.TrimPrefix(capacity, "block-")], typ == 'g'
	o.Block = strings.HasPrefix(capacity, "block-")
	return o
}

// TestRequestTypesMax offers 70 types in two zones each, more expensive in the second. The
// request names the sixty types that are cheapest anywhere, each with both zones.
func TestRequestTypesMax(t *testing.T) {
	const types = 70
	var list []fleet.Offering
	for zone := range policy.Money(2) {
		for k := range policy.TypeID(types) {
			list = append(list, fleet.Offering{Market: policy.MarketID(len(list)), Type: k, Price: policy.Money(k) + 1000*zone,
				Capacity: policy.Spot})
		}
	}
	got := fleet.Request(list, false)
	if len(got) != 120 || slices.ContainsFunc(got, func(o fleet.Offering) bool { return o.Type >= 60 }) {
		t.Errorf("%d offerings, want the 120 of the first 60 types: %v", len(got), got)
	}
	if !slices.IsSortedFunc(got, func(a, b fleet.Offering) int { return int(a.Price - b.Price) }) {
		t.Error("the offerings are not in order")
	}
}

// The first sixty types are on demand, so that Spot of the others, though allowed, is not
// requested.
func TestRequestCutsBeforeCapacityType(t *testing.T) {
	var list []fleet.Offering
	for k := range policy.TypeID(60) {
		list = append(list, fleet.Offering{Type: k, Price: 10})
	}
	list = append(list, fleet.Offering{Type: 60, Price: 10, Capacity: policy.Spot})
	if got := fleet.Request(list, false); len(got) != 60 || got[0].Capacity != policy.OnDemand {
		t.Errorf("%d offerings, want the 60 on demand", len(got))
	}
}

// For a NodeClaim with minValues everything that it allows is requested: types with accelerators,
// and Spot that costs more than on demand.
func TestRequestMinValues(t *testing.T) {
	var list []fleet.Offering
	for _, text := range []string{"g spot 1", "a spot 3", "a od 9", "b spot 10"} {
		list = append(list, offering(t, text))
	}
	if got := fleet.Request(list, true); len(got) != 3 || !got[0].Exotic || got[2].Price != 10 {
		t.Errorf("%+v, want all that is spot", got)
	}
}
