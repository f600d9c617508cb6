// Package karpenterawsdiff compares what the simulator requests from EC2 Fleet with what
// Karpenter's provider for AWS requests, on random NodeClaims: capacity type, instance
// types, zones and allocation strategy.
package karpenterawsdiff

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	v1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/operator/options"
	"sigs.k8s.io/karpenter/pkg/scheduling"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/sim/fleet"
)

var (
	count = flag.Int("n", 1000, "number of random claims, half from fixed seeds")
	first = flag.Uint64("seed", 0, "try the claim of this seed alone")
)

// A state is a NodeClaim and what the provider has on offer.
type state struct {
	seed       uint64
	zones      []string // that there are
	wanted     []string // zones that the claim allows
	capacities []string // that the claim allows
	types      []instanceType
}

type instanceType struct {
	name      string
	exotic    bool
	offerings []offering
}

type offering struct {
	zone, capacity string
	price          policy.Money
	available      bool
}

// generate draws a state with few prices and many types, since ties find bugs. Only
// different types have different prices: Karpenter orders types of one price by chance.
func generate(seed uint64) *state {
	r := rand.New(rand.NewPCG(seed, 1))
	s := &state{seed: seed, zones: []string{"a", "b", "c"}[:1+r.IntN(3)]}
	s.wanted = s.zones[:1+r.IntN(len(s.zones))]
	s.capacities = [][]string{{"spot", "on-demand"}, {"spot", "on-demand"}, {"spot"}, {"on-demand"}}[r.IntN(4)]
	n, prices, exotics := 1+r.IntN(90), 1+r.IntN(40), r.IntN(3)
	for i := range n {
		t := instanceType{name: fmt.Sprintf("m%d.large", i), exotic: exotics == 2 || exotics == 1 && r.IntN(4) == 0}
		if t.exotic && r.IntN(2) == 0 {
			t.name = fmt.Sprintf("m%d.metal", i)
		}
		for _, z := range s.zones {
			for _, c := range []string{"spot", "on-demand"} {
				if r.IntN(6) > 0 {
					t.offerings = append(t.offerings, offering{z, c, policy.Money(1+r.IntN(prices))*10_000 + policy.Money(i), r.IntN(5) > 0})
				}
			}
		}
		s.types = append(s.types, t)
	}
	return s
}

// claim returns the state as Karpenter knows it.
func (s *state) claim() (*karpv1.NodeClaim, []*cloudprovider.InstanceType) {
	var names []string
	var types []*cloudprovider.InstanceType
	for _, t := range s.types {
		names = append(names, t.name)
		size := strings.SplitAfter(t.name, ".")[1]
		it := &cloudprovider.InstanceType{Name: t.name,
			Capacity: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourcePods: resource.MustParse("58")},
			Overhead: &cloudprovider.InstanceTypeOverhead{},
			Requirements: scheduling.NewRequirements(scheduling.NewRequirement(corev1.LabelInstanceTypeStable, corev1.NodeSelectorOpIn, t.name),
				scheduling.NewRequirement(v1.LabelInstanceSize, corev1.NodeSelectorOpIn, size))}
		if t.exotic && size != "metal" {
			it.Capacity[v1.ResourceNVIDIAGPU] = resource.MustParse("1")
		}
		for _, o := range t.offerings {
			it.Offerings = append(it.Offerings, &cloudprovider.Offering{Price: float64(o.price) / 1e6, Available: o.available,
				Requirements: scheduling.NewRequirements(
					scheduling.NewRequirement(karpv1.CapacityTypeLabelKey, corev1.NodeSelectorOpIn, o.capacity),
					scheduling.NewRequirement(corev1.LabelTopologyZone, corev1.NodeSelectorOpIn, o.zone))})
		}
		types = append(types, it)
	}
	in := func(key string, values []string) karpv1.NodeSelectorRequirementWithMinValues {
		return karpv1.NodeSelectorRequirementWithMinValues{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
	}
	c := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "claim"}}
	c.Spec.Requirements = []karpv1.NodeSelectorRequirementWithMinValues{in(corev1.LabelInstanceTypeStable, names),
		in(corev1.LabelTopologyZone, s.wanted), in(karpv1.CapacityTypeLabelKey, s.capacities)}
	c.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	return c, types
}

// A market is a type in a zone.
type market struct{ typ, zone string }

// ours returns what the simulator requests.
func (s *state) ours() (spot bool, markets []market) {
	var list []fleet.Offering
	var at []market
	for i, t := range s.types {
		for _, o := range t.offerings {
			if o.available && slices.Contains(s.wanted, o.zone) && slices.Contains(s.capacities, o.capacity) {
				list = append(list, fleet.Offering{Market: policy.MarketID(len(at)), Type: policy.TypeID(i), Price: o.price,
					Capacity: map[bool]policy.CapacityType{true: policy.Spot}[o.capacity == "spot"], Exotic: t.exotic})
				at = append(at, market{t.name, o.zone})
			}
		}
	}
	slices.SortFunc(list, func(a, b fleet.Offering) int {
		return cmp.Or(cmp.Compare(a.Price, b.Price), cmp.Compare(a.Market, b.Market))
	})
	for _, o := range fleet.Request(list, false) {
		spot = spot || o.Capacity == policy.Spot
		markets = append(markets, at[o.Market])
	}
	return spot, markets
}

// real returns what Karpenter's provider requests.
func (s *state) real(ctx context.Context) (spot bool, markets []market, err error) {
	claim, types := s.claim()
	in, err := request(ctx, s.zones, claim, types)
	if err != nil || in == nil {
		return false, nil, err
	}
	spot = in.TargetCapacitySpecification.DefaultTargetCapacityType == ec2types.DefaultTargetCapacityTypeSpot
	if spot && in.SpotOptions.AllocationStrategy != ec2types.SpotAllocationStrategyPriceCapacityOptimized ||
		!spot && in.OnDemandOptions.AllocationStrategy != ec2types.FleetOnDemandAllocationStrategyLowestPrice {
		return spot, nil, fmt.Errorf("another allocation strategy: %+v %+v", in.SpotOptions, in.OnDemandOptions)
	}
	for _, c := range in.LaunchTemplateConfigs {
		for _, o := range c.Overrides {
			markets = append(markets, market{string(o.InstanceType), *o.AvailabilityZone})
		}
	}
	return spot, markets, nil
}

// difference compares both sides; empty means equal.
func (s *state) difference(ctx context.Context) string {
	realSpot, realMarkets, err := s.real(ctx)
	if err != nil {
		return err.Error()
	}
	ourSpot, ourMarkets := s.ours()
	slices.SortFunc(realMarkets, byName)
	slices.SortFunc(ourMarkets, byName)
	if realSpot != ourSpot || !slices.Equal(ourMarkets, realMarkets) {
		return fmt.Sprintf("ours: spot %v, %v\nKarpenter's: spot %v, %v", ourSpot, ourMarkets, realSpot, realMarkets)
	}
	return ""
}

func byName(a, b market) int { return cmp.Or(cmp.Compare(a.typ, b.typ), cmp.Compare(a.zone, b.zone)) }

func TestRequests(t *testing.T) {
	log.SetLogger(logr.Discard())
	ctx, cancel := context.WithCancel(options.ToContext(context.Background(), &options.Options{}))
	defer cancel()
	seeds := []uint64{*first}
	if *first == 0 {
		fresh := uint64(time.Now().UnixNano())
		seeds = seeds[:0]
		for i := range uint64(*count) {
			if i%2 == 0 {
				seeds = append(seeds, 1+i/2)
			} else {
				seeds = append(seeds, fresh+i/2)
			}
		}
	}
	diffs := make([]string, len(seeds))
	var wait sync.WaitGroup
	turns := make(chan bool, 50) // a call waits for others to join it
	for i, seed := range seeds {
		turns <- true
		wait.Go(func() {
			defer func() { <-turns }()
			diffs[i] = generate(seed).difference(ctx)
		})
	}
	wait.Wait()
	for i, d := range diffs {
		if d != "" {
			t.Errorf("%s\nrepeat with: make karpenterawsdiff SEED=%d", d, seeds[i])
		}
	}
	equal := slices.DeleteFunc(diffs, func(d string) bool { return d != "" })
	t.Logf("%d of %d requests are equal", len(equal), len(seeds))
}
