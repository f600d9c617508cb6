package v1alpha1

import (
	"slices"
	"testing"

	"github.com/spotter-dev/spotter/policy"
)

// TestChooseMaxPrice keeps what may cost no more than the bound: on demand, as spot
// now, or as spot at a tenth of the price on demand; where few types are wanted, those
// first that can be bought now.
func TestChooseMaxPrice(t *testing.T) {
	kind := func(name string, vcpu int64) *policy.InstanceType {
		return &policy.InstanceType{Name: name, Provider: "aws", Arch: "amd64", VCPU: vcpu, Capacity: policy.Resources{Memory: 1 << 34}}
	}
	large, big, huge := kind("m.large", 2), kind("m.4xlarge", 16), kind("m.24xlarge", 96)
	offer := func(of *policy.InstanceType, onDemand, spot policy.Money) Offer {
		return Offer{Provider: "aws", Region: "r", Zone: "a", Type: of, OnDemand: onDemand, Spot: spot, Score: -1}
	}
	modelled := offer(huge, 4_600_000, 460_000)
	modelled.Modelled = true
	for _, c := range []struct {
		max    float64
		types  int32
		offers []Offer
		want   []int
	}{
		{0.096, 9, []Offer{offer(large, 96_000, 120_000)}, []int{0}},                                       // on demand
		{0.06, 9, []Offer{offer(large, 96_000, 39_000), offer(big, 768_000, 300_000)}, []int{0}},           // spot of one now
		{0.08, 9, []Offer{offer(large, 96_000, 90_000), offer(big, 768_000, 300_000)}, []int{0, 1}},        // spot of both some time
		{0.06, 9, []Offer{offer(large, 96_000, policy.NoPrice), modelled}, []int{0, 1}},                    // what is not known
		{0.08, 1, []Offer{offer(large, 96_000, 39_000), offer(big, 700_000, 300_000)}, []int{0}},           // the other costs less per vCPU
		{0.31, 1, []Offer{offer(large, 96_000, 39_000), offer(big, 700_000, 300_000)}, []int{1}},           // and can be had
		{0.05, 9, []Offer{{Provider: "aws", Region: "r", Zone: "a", Type: large, Spot: 60_000}}, []int{0}}, // no price on demand
	} {
		p := &CapacityPool{}
		p.Spec.Backend.Karpenter = &KarpenterBackend{NodeClassName: "default"}
		p.Default()
		p.Spec.Markets.MaxPrice, p.Spec.Markets.MaxInstanceTypes = &c.max, &c.types
		if got := p.Choose(c.offers, map[string]Place{}); !slices.Equal(got, c.want) {
			t.Errorf("maxPrice %v, %d types of %+v: took %v, want %v", c.max, c.types, c.offers, got, c.want)
		}
	}
}
