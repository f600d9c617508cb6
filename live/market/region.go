package market

import (
	"cmp"
	"strings"
)

// A zoneAt identifies a zone of a provider.
type zoneAt struct{ provider, zone string }

// regionsOf returns the region of each zone, and, with an empty zone, the region of each provider.
// The region is empty if there are several.
func regionsOf(keys []offerKey) map[zoneAt]string {
	regions := map[zoneAt]string{}
	for i := range keys {
		k := &keys[i]
		for _, at := range [...]zoneAt{{k.provider, k.zone}, {k.provider, ""}} {
			if before, known := regions[at]; known && before != k.region {
				regions[at] = "" // there are several
			} else if !known {
				regions[at] = k.region
			}
		}
	}
	return regions
}

// regionOf returns the region of a node that does not report it: the region in which its zone is
// known, else the region in the name of the zone, else the only region of the provider. It is empty
// if all of these are unknown.
func (t *table) regionOf(regions []string, provider, zone string) string {
	only := t.regions[zoneAt{provider, ""}]
	if len(regions) == 1 {
		only = regions[0]
	}
	if zone == "" {
		return only
	}
	return cmp.Or(t.regions[zoneAt{provider, zone}], RegionIn(provider, zone), only)
}

// RegionIn returns the region that is a prefix of the name of a zone, or an empty string if the
// name does not have the provider's format.
func RegionIn(provider, zone string) string {
	switch i := strings.LastIndexByte(zone, '-'); provider {
	case "aws": // us-east-1a
		if r := strings.TrimRight(zone, "abcdefghijklmnopqrstuvwxyz"); r != zone && endsInDigit(r) {
			return r
		}
	case "gcp": // europe-west1-b
		if i > 0 && endsInDigit(zone[:i]) {
			return zone[:i]
		}
	case "azure": // westeurope-1
		if i > 0 && endsInDigit(zone) {
			return zone[:i]
		}
	}
	return ""
}

func endsInDigit(s string) bool { return s != "" && s[len(s)-1] >= '0' && s[len(s)-1] <= '9' }
