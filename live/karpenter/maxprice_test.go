package karpenter

import (
	"errors"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
)

// TestMaxPrice: no pair of type and zone that a NodePool allows costs more now than the pool may
// pay for a node, and the NodePool is rewritten as prices move. A NodePool with no such pair left
// buys nothing.
func TestMaxPrice(t *testing.T) {
	b := newBench(t, capacityPool(), nodeClass(true))
	s := newSnapshot(b.now())
	for i := range s.Markets {
		if s.Markets[i].Capacity == policy.Spot {
			s.Markets[i].Price = policy.Dollars(0.04)
		}
	}
	s.Pools[0].PriceMax = policy.Dollars(0.06)
	s.Markets[market(s, 2, 0, policy.Spot)].Price = policy.Dollars(0.07)
	check := func(what string, types, zones []string) {
		t.Helper()
		n := b.nodePool("web-spot")
		if got := valuesOf(n, corev1.LabelInstanceTypeStable); !slices.Equal(got, types) {
			t.Errorf("%s: it allows %v, want %v", what, got, types)
		}
		if got := valuesOf(n, corev1.LabelTopologyZone); !slices.Equal(got, zones) {
			t.Errorf("%s: it allows %v, want %v", what, got, zones)
		}
	}
	b.mustSteer(s, policy.Steer{Share: 0.5, Fallback: true})
	check("one type dear in one zone", []string{testTypes[0].name, testTypes[1].name}, testZones)
	if b.nodePool("web-od") != nil {
		t.Error("a node on demand costs $0.10, and there is a NodePool for it")
	}
	s.Markets[market(s, 2, 0, policy.Spot)].Price = policy.Dollars(0.06)
	b.clock.Step(11 * time.Minute)
	if err := b.Tend(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	check("all cheap", []string{testTypes[0].name, testTypes[1].name, testTypes[2].name}, testZones)
	for i := range s.Markets {
		s.Markets[i].Price = policy.Dollars(0.07)
	}
	b.clock.Step(11 * time.Minute)
	if err := b.Tend(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if !isClosed(b.nodePool("web-spot")) {
		t.Errorf("all are dear, and it is limited to %v", b.nodePool("web-spot").Spec.Limits)
	}
	l := &policy.Launch{Token: "t1", Replaces: policy.None, Markets: []policy.MarketID{market(s, 0, 0, policy.Spot)}}
	var held *backend.Held
	if err := b.Launch(t.Context(), s, l); !errors.As(err, &held) || held.Reason != "TooDear" {
		t.Errorf("a launch at $0.07: %v", err)
	}
}
