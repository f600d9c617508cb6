package market

import (
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/portable"
	"github.com/spotter-dev/spotter/scenarios/chance"
)

// The model of failed attempts to launch a node of Azure. The shares are published; that the state
// of a quota and of a market lasts for an hour, and that it is independent of the hour before, is
// modelled.
//
// Of the attempts of Karpenter's provider for Azure in 30 days, 58% succeeded, not counting those
// that failed for a transient error such as throttling (27% with these). Of the failures, 94.56%
// were for the quota of a family, 2.73% and 0.32% for the capacity of a zone, and 1.23%, 0.81% and
// 0.10% for the capacity of a region (Azure/karpenter-provider-azure,
// designs/0012-quota-fungibility-reactivity-improvements.md).
const (
	azureFailed = 0.42
	azureQuota  = azureFailed * 0.9456
	azureZone   = azureFailed * (0.0273 + 0.0032)
	azureRegion = azureFailed * (0.0123 + 0.0081 + 0.0010)

	// azureState is how long a state lasts. The provider requests a type again an hour after a
	// failure, the TTL of most of its refusals.
	azureState = policy.Time(time.Hour / time.Millisecond)
)

// attemptFails reports whether an attempt to launch a node in market id fails now, and closes the
// markets that the failure concerns until the state changes: all types of the family in the region
// for a quota, the type in the region, or the market alone. Without the setting of the scenario, no
// attempt fails.
func (m *Market) attemptFails(id policy.MarketID) bool {
	x := &m.scenario.Markets[id]
	if !m.scenario.AzureAllocationFailures || x.Provider != policy.Azure {
		return false
	}
	kind := &m.scenario.Types[x.Type]
	epoch := uint64(m.clock.Now / azureState)
	draw := func(stream, name string) float64 {
		return chance.Stream(m.Seed, stream).At2(portable.HashString(name), epoch).Float()
	}
	place := x.Region + "/" + x.Capacity.String() + "/"
	var same func(*policy.Market) bool
	// Each share is of the attempts that have not failed before.
	switch {
	case draw("azure-quota", place+kind.Family) < azureQuota:
		same = func(y *policy.Market) bool { return m.scenario.Types[y.Type].Family == kind.Family }
	case draw("azure-zone", x.Name) < azureZone/(1-azureQuota):
		same = func(y *policy.Market) bool { return y.ID == id }
	case draw("azure-region", place+kind.Name) < azureRegion/(1-azureQuota-azureZone):
		same = func(y *policy.Market) bool { return y.Type == x.Type }
	default:
		return false
	}
	until := policy.Time(epoch+1) * azureState
	for i := range m.scenario.Markets {
		y := &m.scenario.Markets[i]
		if y.Provider != x.Provider || y.Region != x.Region || y.Capacity != x.Capacity || !same(y) {
			continue
		}
		if s := &m.state[i]; s.unavailable < until {
			s.refuse(m.clock.Now)
			s.unavailable = until
		}
	}
	return true
}
