package catalog

import (
	"slices"
)

// Zones returns the zones of a region of provider, in order, by their usual names. Which zone of
// AWS and Azure a name refers to differs by account. Where no list gives the number of zones of a
// region of AWS or Google, it has three. A region of Azure without zones and every region of
// Rackspace is its own and only zone. A region that is not in the catalog has no zones.
func Zones(provider, region string) []string {
	t := tableOf(provider)
	if t == nil {
		return nil
	}
	r, ok := slices.BinarySearch(t.regions, region)
	if !ok {
		return nil
	}
	separator, letters := "", "abc"
	switch provider {
	case Rackspace:
		return []string{region}
	case Azure:
		if !slices.Contains(azureZonal, region) {
			return []string{region}
		}
		separator, letters = "-", "123"
	case GCP:
		separator = "-"
	}
	if t.zones != nil && t.zones[r] != "" {
		letters = t.zones[r]
	}
	zones := make([]string, 0, len(letters))
	for _, letter := range letters {
		zones = append(zones, region+separator+string(letter))
	}
	return zones
}

// azureZonal are the regions of Azure with availability zones (Azure
// documentation, "List of Azure regions").
var azureZonal = []string{
	"australiaeast", "brazilsouth", "canadacentral", "centralindia", "centralus", "eastasia", "eastus", "eastus2",
	"francecentral", "germanywestcentral", "israelcentral", "italynorth", "japaneast", "koreacentral",
	"mexicocentral", "northeurope", "norwayeast", "polandcentral", "qatarcentral", "southafricanorth",
	"southcentralus", "southeastasia", "spaincentral", "swedencentral", "switzerlandnorth", "uaenorth", "uksouth",
	"usgovvirginia", "westeurope", "westus2", "westus3",
}
