package measure

import (
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/catalog"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

// OnDemand returns the catalog's on-demand price of s, for a trace without one, and whether it was
// modelled because no price is published. It returns 0 if the price is unknown. Runs use the same
// prices in the same order of precedence. The catalog contains prices of Linux only, so the price
// of a node that includes another licence cannot be compared with them.
func OnDemand(s *trace.Series) (price policy.Money, modelled bool) {
	switch s.Product {
	case "", trace.ProductLinux, trace.ProductLinux + " (Amazon VPC)":
	default:
		return 0, false
	}
	price, basis := catalog.OnDemandOrModelled(s.Provider, s.Region, s.Type)
	return price, basis != ""
}
