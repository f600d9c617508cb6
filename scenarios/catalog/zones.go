package catalog

import (
	"slices"
)

// Zones returns the usual names of the zones of a region of provider, ascending; nil for a region
// that is not in the catalog. On AWS and Azure, accounts differ in which zone a name refers to. A
// region of AWS or Google whose number of zones is not listed has three. A region of Azure without
// availability zones and every region of Rackspace is its own and only zone.
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

// azureZonal lists the regions of Azure with availability zones (Azure documentation, "List of
// Azure regions").
var azureZonal = []string{
	"australiaeast", "brazilsouth", "canadacentral", "centralindia", "centralus", "eastasia", "eastus", "eastus2",
	"francecentral", "germanywestcentral", "israelcentral", "italynorth", "japaneast", "koreacentral",
	"mexicocentral", "northeurope", "norwayeast", "polandcentral", "qatarcentral", "southafricanorth",
	"southcentralus", "southeastasia", "spaincentral", "swedencentral", "switzerlandnorth", "uaenorth", "uksouth",
	"usgovvirginia", "westeurope", "westus2", "westus3",
}
