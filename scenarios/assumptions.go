package scenarios

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spotter-dev/spotter/policy"
)

// assumptions lists the market properties that are assumed instead of recorded, for the markets
// that the pools use.
func (x *selection) assumptions(sc *Scenario) []string {
	var all []string
	used := make(map[int]bool)
	for _, p := range x.pools {
		for _, i := range p {
			used[i] = true
		}
	}
	auctions := false
	counts := map[string]int{}
	for i := range x.offers {
		if o := &x.offers[i]; used[i] {
			auctions = auctions || o.series.Provider == policy.Rackspace
			if o.basis != "" {
				_, rule, _ := strings.Cut(o.basis, ", ") // skip the name of the substitute type
				counts[rule]++
			}
		}
	}
	for _, basis := range slices.Sorted(maps.Keys(counts)) {
		all = append(all, fmt.Sprintf("on-demand prices of %d instance types are modelled: %s", counts[basis], basis))
	}
	if auctions {
		from := "modelled as one bid step, since no trace records it (market.reserve of the scenario sets it)"
		if sc.reserveStated {
			from = "as the scenario states"
		}
		all = append(all,
			fmt.Sprintf("auctions: a node is charged the market price or the reserve price, whichever is more; the reserve is %s an hour, %s",
				sc.Reserve.Short(), from))
	}
	if sc.AzureAllocationFailures {
		all = append(all, "launches of nodes of Azure: attempts fail as modelled (market.azureAllocationFailures): "+
			"42% of them, nearly all for the quota of a family")
	}
	for _, cluster := range slices.Sorted(maps.Keys(x.places)) {
		at := x.places[cluster]
		switch {
		case cluster != "":
			all = append(all, fmt.Sprintf("cloudspace %s is in %s: a cloudspace has one region", cluster, at.Region))
		case slices.ContainsFunc(x.offers, func(o offer) bool { return o.series.Provider == at.Provider && o.series.Region != at.Region }):
			all = append(all,
				fmt.Sprintf("the cluster is in %s/%s, one of several regions of the trace: a cluster has one unless markets.regions lists more",
					at.Provider, at.Region))
		}
	}
	return all
}

// warnings returns one warning per reason for which markets are left out, then the notes.
func (x *selection) warnings() []string {
	var all []string
	for _, k := range [...]struct {
		names []string
		why   string
	}{
		{x.unknownType, "the catalog does not hold their instance type"},
		{x.tooSmall, "the kubelet leaves nothing of their memory for pods"},
		{x.unpriced, "neither the trace nor the catalog has an on-demand price"},
		{x.notOffered, "they have no Spot price in this window"},
		{x.halfPriced, "their recorded prices leave out their accelerators"},
		{x.otherProduct, "their prices are not only those of Linux nodes"},
	} {
		if len(k.names) == 0 {
			continue
		}
		shown := k.names[:min(3, len(k.names))]
		more := ""
		if len(shown) < len(k.names) {
			more = ", …"
		}
		all = append(all, fmt.Sprintf("markets not used: %d: %s (%s%s)", len(k.names), k.why,
			strings.Join(shown, ", "), more))
	}
	return append(all, x.notes...)
}
