package kube

import (
	"strings"

	"github.com/spotter-dev/spotter/policy"
)

// zoneless is the value of the zone label of nodes of Azure outside availability zones. Karpenter's
// provider requires this value of them. In scale sets it is the fault domain, which may be another
// number (Azure/karpenter-provider-azure, pkg/utils/zones; kubernetes-sigs/cloud-provider-azure,
// pkg/provider/azure_standard.go).
const zoneless = "0"

// MarketZone returns the zone of the markets of nodes with a zone label. A region of Azure without
// availability zones is its own zone, and its nodes are labelled with a number.
func MarketZone(provider, region, label string) string {
	if provider == policy.Azure && region != "" && label != "" && strings.Trim(label, "0123456789") == "" {
		return region
	}
	return label
}

// ZoneLabel returns the zone label of nodes that are bought in a zone. It is the inverse of
// [MarketZone].
func ZoneLabel(provider, region, zone string) string {
	if provider == policy.Azure && zone == region {
		return zoneless
	}
	return zone
}
