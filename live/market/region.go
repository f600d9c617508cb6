package market

import (
	"cmp"
	"strings"
)

// A zoneAt names a zone of a provider.
type zoneAt struct{ provider, zone string }

// regionsOf returns the regions of zones that are in only one, and by an empty zone that of a
// provider with only one.
func regionsOf(keys []offerKey) map[zoneAt]string {
	regions := map[zoneAt]string{}
	for i := range keys {
		k := &keys[i]
		for _, at := range [...]zoneAt{{k.provider, k.zone}, {k.provider, ""}} {
			if before, known := regions[at]; known && before != k.region {
				regions[at] = "" // in several
			} else if !known {
				regions[at] = k.region
			}
		}
	}
	return regions
}

// regionOf returns the region of a node that does not say it: that in which its zone is
// known, that which the name of the zone says, or the only one there is; empty otherwise.
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

// RegionIn returns the region that is the prefix of the name of a zone; empty if the name is not in
// the provider's form.
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
