package market

import (
	"slices"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
)

// A refusal with a scope counts in each market that the scope selects and in no other.
func TestRefusalsOfAScope(t *testing.T) {
	for name, c := range map[string]struct {
		scope backend.Scope
		want  []string // types and zones of the Spot markets
	}{
		"a family":          {backend.Scope{Provider: "azure", Region: "westeurope", Family: "Dsv5", Capacity: policy.Spot}, []string{"D4 1", "D4 2", "D8 1", "D8 2"}},
		"a type":            {backend.Scope{Provider: "azure", Region: "westeurope", Type: "Standard_D8s_v5", Capacity: policy.Spot}, []string{"D8 1", "D8 2"}},
		"a type in a zone":  {backend.Scope{Provider: "azure", Zone: "westeurope-2", Type: "Standard_D8s_v5", Capacity: policy.Spot}, []string{"D8 2"}},
		"a region":          {backend.Scope{Provider: "azure", Region: "westeurope", Capacity: policy.Spot}, []string{"D4 1", "D4 2", "D8 1", "D8 2", "E8 1", "E8 2"}},
		"another region":    {backend.Scope{Provider: "azure", Region: "eastus", Capacity: policy.Spot}, nil},
		"another capacity":  {backend.Scope{Provider: "azure", Region: "westeurope", Capacity: policy.OnDemand}, nil}, // no Spot market
		"another provider":  {backend.Scope{Provider: "aws", Capacity: policy.Spot}, nil},
		"without provider":  {backend.Scope{Capacity: policy.Spot}, nil},
		"an unknown family": {backend.Scope{Provider: "azure", Family: "Zsv9", Capacity: policy.Spot}, nil},
	} {
		d := newBookFixture(t, nil)
		var u Update
		for _, kind := range []string{"Standard_D4s_v5", "Standard_D8s_v5", "Standard_E8s_v5"} {
			u.OnDemand = append(u.OnDemand, OnDemandPrice{Provider: "azure", Region: "westeurope", Type: kind, Price: policy.Dollars(0.4)})
			for _, zone := range []string{"westeurope-1", "westeurope-2"} {
				u.Spot = append(u.Spot, Price{Provider: "azure", Region: "westeurope", Zone: zone, Type: kind, Price: policy.Dollars(0.1)})
			}
		}
		d.report(t, u)
		d.clock.Step(time.Minute)
		d.Meet(backend.Event{Kind: backend.MetRefusal, Scope: c.scope})
		var got []string
		s := d.fill(t)
		for i := range s.Markets {
			m := &s.Markets[i]
			if m.Experience.Refused == 0 {
				continue
			}
			if m.Capacity != c.scope.Capacity || m.Experience.Refused != s.Now || m.Experience.Refusals != 1 {
				t.Errorf("%s: %s: %+v", name, m.Name, m.Experience)
			}
			zone := s.Zones[m.Zone]
			if m.Capacity == policy.Spot {
				got = append(got, s.Types[m.Type].Name[9:11]+" "+zone[len(zone)-1:])
			}
		}
		if slices.Sort(got); !slices.Equal(got, c.want) {
			t.Errorf("%s: refused %v, want %v", name, got, c.want)
		}
	}
}
