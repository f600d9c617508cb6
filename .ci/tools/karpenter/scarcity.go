package main

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	kwok "sigs.k8s.io/karpenter/kwok/cloudprovider"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/scheduling"
)

// A provider is the kwok provider with markets that refuse and prices that move.
type provider struct {
	*kwok.CloudProvider
	*scarcity
	tariff
	capacities

	// instances says that nodes go by the IDs of instances.
	instances bool
}

// Create launches nodeClaim in a market that does not refuse.
func (p *provider) Create(ctx context.Context, nodeClaim *v1.NodeClaim) (*v1.NodeClaim, error) {
	launched, err := p.launch(ctx, nodeClaim)
	if err != nil {
		return nil, err
	}
	p.capacities.set(launched)
	if p.instances {
		rename(launched)
	}
	return launched, nil
}

func (p *provider) launch(ctx context.Context, nodeClaim *v1.NodeClaim) (*v1.NodeClaim, error) {
	types, err := p.CloudProvider.GetInstanceTypes(ctx, nil)
	if err != nil {
		return nil, err
	}
	wanted := scheduling.NewNodeSelectorRequirementsWithMinValues(nodeClaim.Spec.Requirements...)
	open, refused, closed := p.split(p.mark(p.price(types)), wanted)
	if len(open)+len(refused)+closed == 0 {
		return p.CloudProvider.Create(ctx, nodeClaim) // it says what is wrong with the claim
	}
	if len(open) == 0 {
		p.note(refused)
		return nil, cloudprovider.NewInsufficientCapacityError(fmt.Errorf("all %d markets refuse, or are not asked",
			len(refused)+closed))
	}
	if len(refused)+closed == 0 && len(p.tariff) == 0 {
		return p.CloudProvider.Create(ctx, nodeClaim)
	}
	// The launch is restricted to the cheapest open market: the kwok provider would
	// otherwise take the cheapest of all markets that the claim allows, at the prices that
	// it knows.
	claim := nodeClaim.DeepCopy()
	for key, value := range map[string]string{
		corev1.LabelInstanceTypeStable: open[0].typ, corev1.LabelTopologyZone: open[0].zone, v1.CapacityTypeLabelKey: open[0].capacity,
	} {
		claim.Spec.Requirements = slices.DeleteFunc(claim.Spec.Requirements,
			func(r v1.NodeSelectorRequirementWithMinValues) bool { return r.Key == key })
		claim.Spec.Requirements = append(claim.Spec.Requirements, v1.NodeSelectorRequirementWithMinValues{
			Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value},
		})
	}
	return p.CloudProvider.Create(ctx, claim)
}

// GetInstanceTypes returns all types at the prices of now; offerings that refused
// lately are not available.
func (p *provider) GetInstanceTypes(ctx context.Context, pool *v1.NodePool) ([]*cloudprovider.InstanceType, error) {
	types, err := p.CloudProvider.GetInstanceTypes(ctx, pool)
	if err != nil {
		return nil, err
	}
	return p.mark(p.price(types)), nil
}

// A market is one offering.
type market struct {
	typ, zone, capacity string
	price               float64
}

func (m market) name() string { return m.typ + "/" + m.zone + "/" + m.capacity }

// A scarcity knows which markets refuse.
type scarcity struct {
	file string
	keep time.Duration

	mu    sync.Mutex
	until map[string]time.Time // by market: shown as unavailable
}

func newScarcity(file, keep string) (*scarcity, error) {
	s := &scarcity{file: file, keep: 3 * time.Minute, until: map[string]time.Time{}}
	if keep == "" {
		return s, nil
	}
	d, err := time.ParseDuration(keep)
	if err != nil || d <= 0 {
		return nil, fmt.Errorf("REFUSED_FOR is %q, want a duration above 0", keep)
	}
	s.keep = d
	return s, nil
}

// refuses reports whether one of the patterns in force names m.
func (s *scarcity) refuses(patterns []string, m market) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		ok, err := path.Match(p, m.name())
		return ok && err == nil
	})
}

// patterns reads the file; without one nothing refuses.
func (s *scarcity) patterns() []string {
	if s.file == "" {
		return nil
	}
	text, err := os.ReadFile(s.file)
	if err != nil {
		return nil
	}
	return strings.Fields(string(text))
}

// split returns the markets that wanted allows: those that give, the cheapest
// first and those of one price in any order, those that refuse, and how many are not
// asked, since they are unavailable.
func (s *scarcity) split(types []*cloudprovider.InstanceType, wanted scheduling.Requirements) (open, refused []market,
	closed int) {
	patterns := s.patterns()
	for _, t := range types {
		if !wanted.Get(corev1.LabelInstanceTypeStable).Has(t.Name) {
			continue
		}
		for _, o := range t.Offerings.Compatible(wanted) {
			switch m := marketOf(t, o); {
			case !o.Available:
				closed++
			case s.refuses(patterns, m):
				refused = append(refused, m)
			default:
				open = append(open, m)
			}
		}
	}
	rand.Shuffle(len(open), func(i, j int) { open[i], open[j] = open[j], open[i] })
	slices.SortStableFunc(open, func(a, b market) int { return cmp.Compare(a.price, b.price) })
	return open, refused, closed
}

func marketOf(t *cloudprovider.InstanceType, o *cloudprovider.Offering) market {
	return market{typ: t.Name, zone: o.Zone(), capacity: o.CapacityType(), price: o.Price}
}

// note shows the markets as unavailable for a while.
func (s *scarcity) note(markets []market) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range markets {
		s.until[m.name()] = time.Now().Add(s.keep)
	}
}

// mark returns types with the offerings unavailable that refused lately. What it
// is given stays as it is.
func (s *scarcity) mark(types []*cloudprovider.InstanceType) []*cloudprovider.InstanceType {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	out := make([]*cloudprovider.InstanceType, 0, len(types))
	for _, t := range types {
		copied := &cloudprovider.InstanceType{Name: t.Name, Requirements: t.Requirements, Capacity: t.Capacity,
			Overhead: t.Overhead}
		for _, o := range t.Offerings {
			x := *o
			x.Available = o.Available && !now.Before(s.until[marketOf(t, o).name()])
			copied.Offerings = append(copied.Offerings, &x)
		}
		out = append(out, copied)
	}
	return out
}
