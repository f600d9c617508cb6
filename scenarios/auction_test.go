package scenarios

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

// auctionScenario is one deployment and one Rackspace pool for a day.
const auctionScenario = `
apiVersion: spotter.dev/v1alpha1
kind: CapacityPool
metadata: {name: main}
spec:
  backend: {rackspace: {cloudspace: shop, org: acme, credentialsSecretRef: {name: rackspace}}}
  markets: %s
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: main, resources: {requests: {cpu: 1}}}]}}
---
apiVersion: spotter.dev/v1alpha1
kind: Scenario
metadata: {name: test}
spec: {duration: 24h, warmUp: 6h, market: %s}
`

// classes returns a trace of three classes of Ashburn, two of Sydney, and an AWS
// market.
func classes() *trace.Trace {
	var all []trace.Series
	for _, x := range [][2]string{
		{"aus-syd-1", "ch.vs1.large-syd"}, {"aus-syd-1", "gp.vs1.large-syd"},
		{"us-east-iad-1", "ch.vs1.large-iad"}, {"us-east-iad-1", "gp.vs1.large-iad"}, {"us-east-iad-1", "gp.vs1.xlarge-iad"},
	} {
		s := series(x[0], x[1], []policy.Time{0, 24}, 1000, 12_000)
		s.Provider, s.Region, s.Product = policy.Rackspace, x[0], ""
		all = append(all, s)
	}
	return fourDays(append(all, series("us-east-1a", "m5.large", []policy.Time{0}, 30_000))...)
}

func bindAuction(t *testing.T, markets, market string) (*BoundScenario, error) {
	t.Helper()
	sc, err := Parse("test.yaml", fmt.Appendf(nil, auctionScenario, markets, market))
	if err != nil {
		return nil, err
	}
	return Bind(sc, classes(), BindOptions{From: newDay + 24*hours})
}

// TestBindAuctions binds a pool to the region with the most classes: a
// cloudspace has one. Nothing of what is modelled goes unsaid.
func TestBindAuctions(t *testing.T) {
	w, err := bindAuction(t, "{}", "{}")
	if err != nil {
		t.Fatal(err)
	}
	if len(w.Zones) != 1 || w.Zones[0] != "us-east-iad-1" || len(w.Markets) != 6 {
		t.Fatalf("zones %v, %d markets; want us-east-iad-1 and 6", w.Zones, len(w.Markets))
	}
	p := &w.Pools[0]
	if p.Provisioner != policy.ProvisionerNone || !p.Levers.Launch || len(p.Markets) != 6 {
		t.Errorf("pool %+v", p)
	}
	for i := range w.Markets {
		m := &w.Markets[i]
		reserve := policy.Money(0)
		if m.Capacity == policy.Spot {
			reserve = policy.BidStep
		}
		if m.Reserve != reserve || !m.OnDemandModelled || m.OnDemand < 10*policy.BidStep || m.Auction() != (m.Capacity == policy.Spot) {
			t.Errorf("%s: reserve %v, on-demand %v (modelled: %v)", m.Name, m.Reserve, m.OnDemand, m.OnDemandModelled)
		}
	}
	said := strings.Join(w.Warnings, "\n")
	for _, part := range []string{"on-demand prices of 3 instance types are modelled",
		"the reserve is $0.005 an hour, modelled", "cloudspace shop is in us-east-iad-1"} {
		if !strings.Contains(said, part) {
			t.Errorf("no warning says %q:\n%s", part, said)
		}
	}
}

// TestBindAuctionChoices reads the region and the reserve price that are stated.
func TestBindAuctionChoices(t *testing.T) {
	w, err := bindAuction(t, "{regions: [aus-syd-1]}", "{reserve: 0.01}")
	if err != nil {
		t.Fatal(err)
	}
	if len(w.Markets) != 4 || w.Zones[0] != "aus-syd-1" {
		t.Errorf("%d markets in %v, want 4 in aus-syd-1", len(w.Markets), w.Zones)
	}
	for i := range w.Markets {
		if m := &w.Markets[i]; m.Auction() && (m.Reserve != 10_000 || m.Charge() != 10_000) {
			t.Errorf("%s: reserve %v, charge %v; want $0.01 of both", m.Name, m.Reserve, m.Charge())
		}
	}
	if said := strings.Join(w.Warnings, "\n"); !strings.Contains(said, "$0.01 an hour, as the scenario states") {
		t.Errorf("warnings:\n%s", said)
	}
	var bad *FieldError
	if _, err := bindAuction(t, "{}", "{reserve: -1}"); !errors.As(err, &bad) || !strings.Contains(err.Error(), "market.reserve") {
		t.Errorf("a reserve below 0: %v", err)
	}
}

// TestReclaimsOfAuctions says that an auction is neither recorded nor modelled.
func TestReclaimsOfAuctions(t *testing.T) {
	aws, auction := policy.Market{Provider: "aws", Capacity: policy.Spot}, policy.Market{Provider: policy.Rackspace, Capacity: policy.Spot}
	up := AvailabilityCurve{At: []policy.Time{1}, Available: []bool{true}}
	for want, w := range map[string]BoundScenario{
		"modelled": {Markets: []policy.Market{aws}},
		"recorded": {Markets: []policy.Market{aws}, Available: []AvailabilityCurve{up}},
		"recorded in part and modelled elsewhere":            {Markets: []policy.Market{aws, aws}, Available: []AvailabilityCurve{up, {}}},
		"decided by price and bid":                           {Markets: []policy.Market{auction}},
		"modelled, and in auctions decided by price and bid": {Markets: []policy.Market{aws, auction}},
	} {
		if got := w.Reclaims(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
