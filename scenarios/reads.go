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

// CoveredBy returns [ErrTooShort] if a run metered from start is not within the span of the trace
// called name.
func (sc *Scenario) CoveredBy(name string, from, to, start policy.Time) error {
	if end := start.Add(sc.Duration); start < from || end > wholeDay(to) {
		return fmt.Errorf("%w: %s needs %v to %v, and %s covers %v to %v", ErrTooShort, sc.Name, start, end, name, from, to)
	}
	return nil
}

// Reads returns the part of a trace that a run metered from start requires: its time span and,
// where manifest and catalog determine them, the markets that its pools may buy in. Binding to this
// part results in the same markets as binding to the whole trace.
func (sc *Scenario) Reads(start policy.Time) trace.ReadOptions {
	o := trace.ReadOptions{From: start.Add(-sc.WarmUp), To: start.Add(sc.Duration)}
	types := map[string]bool{}
	places := map[string]string{} // the only region of each cluster
	allRegions, allZones := false, false
	for i := range sc.pools {
		p := &sc.pools[i]
		regions, zones := p.places()
		cluster := ""
		if p.capacity != nil {
			cluster = p.capacity.Cluster()
		}
		// A pool without regions buys in the region of its cluster, which an earlier pool may
		// state.
		if at := places[cluster]; len(regions) == 0 && at != "" {
			regions = []string{at}
		}
		if len(regions) == 1 && places[cluster] == "" {
			places[cluster] = regions[0]
		}
		allRegions, allZones = allRegions || len(regions) == 0, allZones || len(zones) == 0
		o.Regions, o.Zones = append(o.Regions, regions...), append(o.Zones, zones...)
		p.types(types)
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

// places returns the regions and zones that the pool states; empty means any.
func (p *pool) places() (regions, zones []string) {
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

// types adds to into the types of the catalog that the pool may buy in some market, and those for
// which this is unknown.
func (p *pool) types(into map[string]bool) {
	var anywhere ownPool
	if p.own != nil {
		anywhere = *p.own
		anywhere.class = nil
		anywhere.Requirements = slices.DeleteFunc(slices.Clone(anywhere.Requirements), func(r policy.Requirement) bool {
			return r.Key == corev1.LabelTopologyZone || r.Key == corev1.LabelTopologyRegion
		})
	}
	for _, provider := range catalog.Providers() {
		for _, name := range catalog.Types(provider) {
			t, known := catalog.Lookup(provider, name)
			switch {
			case !known:
			case p.own == nil:
				if p.capacity.BuysFrom(provider) && p.capacity.Spec.Markets.TakeType(&t) {
					into[name] = true
				}
			default:
				if ok, unknown := anywhere.takes(&v1alpha1.Offer{Provider: provider, Type: &t}); ok || unknown != "" {
					into[name] = true
				}
			}
		}
	}
}
