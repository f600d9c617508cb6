package karpenter

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// An Offer is a market of a NodePool, whose provider, region and capacity type are fixed: an
// instance type in a zone. A field is empty if it is unknown.
type Offer struct{ Type, Zone string }

// Requirements returns the requirements of a NodePool of the capacity type that buys in the wanted
// markets and includes all markets with live nodes. A NodePool lists types and zones separately and
// buys in every pair of them, so it may buy in more markets than wanted if the zones have different
// types. The alternative, to list only types that are wanted in every zone, would prevent pods from
// being spread over zones.
//
// It returns nil if no types or no zones are known.
func Requirements(capacity string, wanted, live []Offer) []karpv1.NodeSelectorRequirementWithMinValues {
	var types, zones []string
	for _, o := range slices.Concat(wanted, live) {
		types, zones = with(types, o.Type), with(zones, o.Zone)
	}
	if len(types) == 0 || len(zones) == 0 {
		return nil
	}
	return []karpv1.NodeSelectorRequirementWithMinValues{
		in(karpv1.CapacityTypeLabelKey, capacity), in(corev1.LabelInstanceTypeStable,
			types...), in(corev1.LabelTopologyZone, zones...),
	}
}

// offersOf returns the types and zones in requirements of this package. Each Offer has only one of
// its two fields set.
func offersOf(reqs []karpv1.NodeSelectorRequirementWithMinValues) []Offer {
	var all []Offer
	for _, r := range reqs {
		for _, v := range r.Values {
			switch r.Key {
			case corev1.LabelInstanceTypeStable:
				all = append(all, Offer{Type: v})
			case corev1.LabelTopologyZone:
				all = append(all, Offer{Zone: v})
			}
		}
	}
	return all
}

// narrows reports whether next lacks a type or a zone that was includes.
func narrows(was, next []karpv1.NodeSelectorRequirementWithMinValues) bool {
	there := offersOf(next)
	return slices.ContainsFunc(offersOf(was), func(o Offer) bool { return !slices.Contains(there, o) })
}

func in(key string, values ...string) karpv1.NodeSelectorRequirementWithMinValues {
	return karpv1.NodeSelectorRequirementWithMinValues{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
}

// with returns the sorted list all with v inserted if it is missing. An empty v is not inserted.
func with(all []string, v string) []string {
	at, found := slices.BinarySearch(all, v)
	if found || v == "" {
		return all
	}
	return slices.Insert(all, at, v)
}

// product returns types and zones, in ascending order, whose pairs are all in offers. Of all such
// products it returns the one with the most pairs, and of equals the one with more zones. A claim
// that lists them requests no other market.
//
// The types of a largest product are the types that are sold in all of its zones, and its zones are
// an intersection of the zones of these types. A region has few zones, so all intersections can be
// enumerated.
func product(offers []Offer) (types, zones []string) {
	zonesOf := map[string]sets.Set[string]{}
	for _, o := range offers {
		if zonesOf[o.Type] == nil {
			zonesOf[o.Type] = sets.New[string]()
		}
		if o.Zone != "" {
			zonesOf[o.Type].Insert(o.Zone)
		}
	}
	names := slices.Sorted(maps.Keys(zonesOf))
	var all []sets.Set[string] // sets of zones, without duplicates
	add := func(set sets.Set[string]) {
		if len(set) > 0 && !slices.ContainsFunc(all, set.Equal) {
			all = append(all, set)
		}
	}
	for _, t := range names {
		for _, known := range slices.Clone(all) {
			add(known.Intersection(zonesOf[t]))
		}
		if add(zonesOf[t]); len(all) > zoneSetsMax {
			break
		}
	}
	best := 0
	slices.SortFunc(all, func(a, b sets.Set[string]) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), slices.Compare(sets.List(a), sets.List(b)))
	})
	for _, set := range all {
		sold := slices.DeleteFunc(slices.Clone(names), func(t string) bool { return !zonesOf[t].IsSuperset(set) })
		if n := len(sold) * len(set); n > best {
			best, types, zones = n, sold, sets.List(set)
		}
	}
	return types, zones
}

// zoneSetsMax limits the search: eight zones have 255 non-empty subsets.
const zoneSetsMax = 255

// liveOffers returns the markets in which the claims of a NodePool have or may get machines: a
// claim without a machine may still get any market that it requests.
func liveOffers(nodePool string, claims []karpv1.NodeClaim) []Offer {
	var live []Offer
	for i := range claims {
		c := &claims[i]
		if c.Labels[karpv1.NodePoolLabelKey] != nodePool {
			continue
		}
		if t, z := c.Labels[corev1.LabelInstanceTypeStable], c.Labels[corev1.LabelTopologyZone]; t != "" && z != "" {
			live = append(live, Offer{t, z})
			continue
		}
		for _, r := range c.Spec.Requirements {
			if r.Operator == corev1.NodeSelectorOpIn {
				live = append(live, offersOf([]karpv1.NodeSelectorRequirementWithMinValues{r})...)
			}
		}
	}
	return live
}

// launched reports whether a claim has a machine.
func launched(c *karpv1.NodeClaim) bool { return c.Status.ProviderID != "" }
