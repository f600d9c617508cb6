package scenarios

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
	"github.com/spotter-dev/spotter/scenarios/catalog"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

// CheckCovered returns [ErrTooShort] if a run metered from start is not within a trace, given by its
// name and its first and last time. The warm-up may begin before the trace.
func (sc *Scenario) CheckCovered(start policy.Time, name string, from, to policy.Time) error {
	if end := start.Add(sc.Duration); start < from || end > wholeDay(to) {
		return fmt.Errorf("%w: %s needs %v to %v, and %s covers %v to %v", ErrTooShort, sc.Name, start, end, name, from, to)
	}
	return nil
}

// ReadOptions returns the part of a trace that a run metered from start requires: its time span and,
// where manifest and catalog determine them, the markets that its pools may buy in. Binding to this
// part results in the same markets as binding to the whole trace.
func (sc *Scenario) ReadOptions(start policy.Time) trace.ReadOptions {
	o := trace.ReadOptions{From: start.Add(-sc.WarmUp), To: start.Add(sc.Duration)}
	types := map[string]bool{}
	regionOf := map[string]string{} // by cluster, the only region of its first pool that states one
	allRegions, allZones := false, false
	for i := range sc.pools {
		p := &sc.pools[i]
		regions, zones := p.statedRegionsAndZones()
		cluster := ""
		if p.capacity != nil {
			cluster = p.capacity.Cluster()
		}
		// As in binding (v1alpha1.InOnePlace), a pool without regions buys in the region of an
		// earlier pool of its cluster. Binding fails if that pool can buy nothing there.
		if region := regionOf[cluster]; len(regions) == 0 && region != "" {
			regions = []string{region}
		}
		if len(regions) == 1 && regionOf[cluster] == "" {
			regionOf[cluster] = regions[0]
		}
		allRegions = allRegions || len(regions) == 0
		allZones = allZones || len(zones) == 0
		o.Regions = append(o.Regions, regions...)
		o.Zones = append(o.Zones, zones...)
		p.addTypes(types)
	}
	if allRegions {
		o.Regions = nil
	}
	if allZones {
		o.Zones = nil
	}
	o.Types = slices.Sorted(maps.Keys(types))
	return o
}

// statedRegionsAndZones returns the regions and zones that the pool states; empty means any.
func (p *pool) statedRegionsAndZones() (regions, zones []string) {
	if p.own == nil {
		return p.capacity.Spec.Markets.Regions, p.capacity.Spec.Markets.Zones
	}
	for _, r := range p.own.Requirements {
		switch {
		case r.Op != policy.OpIn:
		case r.Key == corev1.LabelTopologyRegion:
			regions = r.Values
		case r.Key == corev1.LabelTopologyZone:
			zones = r.Values
		}
	}
	return regions, zones
}

// addTypes adds the types of the catalog that the pool may buy in some market, and those for which
// this is unknown.
func (p *pool) addTypes(to map[string]bool) {
	mayBuy := func(provider string, t *policy.InstanceType) bool {
		return p.capacity.BuysFrom(provider) && p.capacity.Spec.Markets.TakeType(t)
	}
	if p.own != nil {
		own := p.own.anywhere()
		mayBuy = func(provider string, t *policy.InstanceType) bool {
			ok, unknown := own.takes(&v1alpha1.Offer{Provider: provider, Type: t})
			return ok || unknown != ""
		}
	}
	for _, provider := range catalog.Providers() {
		for _, name := range catalog.Types(provider) {
			if t, _ := catalog.Lookup(provider, name); mayBuy(provider, &t) {
				to[name] = true
			}
		}
	}
}

// anywhere returns the NodePool without its restrictions of zones and regions.
func (o *ownPool) anywhere() *ownPool {
	unrestricted := *o
	unrestricted.class = nil
	unrestricted.Requirements = slices.DeleteFunc(slices.Clone(o.Requirements), func(r policy.Requirement) bool {
		return r.Key == corev1.LabelTopologyZone || r.Key == corev1.LabelTopologyRegion
	})
	return &unrestricted
}
