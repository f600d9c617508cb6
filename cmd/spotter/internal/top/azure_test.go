package top

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/spotter-dev/spotter/live/azure/fake"
)

// TestAzurePrices: Spot nodes of Azure have the price of their region, whatever their zone, and each
// size and region is requested once; what the list lacks has no price.
func TestAzurePrices(t *testing.T) {
	server := fake.New(append(fake.Size("westeurope", "Standard_D8s_v5", 0.46, 0.08, now.AddDate(0, -1, 0)),
		fake.Size("westus", "Standard_D8s_v5", 0.45, 0.07, now.AddDate(0, -1, 0))...)...)
	web := httptest.NewServer(server)
	defer web.Close()
	t.Setenv("SPOTTER_AZURE_PRICES_URL", web.URL+fake.Path)
	table := &Table{At: now}
	for _, x := range []struct{ region, zone, kind, capacity string }{
		{"westeurope", "westeurope-1", "Standard_D8s_v5", "spot"}, {"westeurope", "westeurope-3", "Standard_D8s_v5", "spot"},
		{"westus", "0", "Standard_D8s_v5", "spot"}, {"westeurope", "westeurope-1", "Standard_E8s_v5", "spot"},
		{"westeurope", "westeurope-1", "Standard_D8s_v5", "on-demand"},
	} {
		n, _ := nodeOf(object("n", "azure:///subscriptions/x", time.Hour, map[string]string{
			corev1.LabelInstanceTypeStable: x.kind, corev1.LabelTopologyRegion: x.region, corev1.LabelTopologyZone: x.zone,
			"karpenter.sh/capacity-type": x.capacity}), now)
		table.Nodes = append(table.Nodes, n)
	}
	var p Prices
	p.fill(t.Context(), table)
	for i, want := range []float64{0.08, 0.08, 0.07, 0, 0.46} {
		if got := table.Nodes[i].Price; (got == nil) != (want == 0) || got != nil && *got != want {
			t.Errorf("node %d costs %v, want %v", i, got, want)
		}
	}
	said := strings.Join(append(table.Sources, table.Notes...), "\n")
	for _, want := range []string{"Spot prices: live from Azure, read 0s ago", "On-demand prices: Azure, catalog of ",
		"Spot prices of Azure: it lists none for some nodes"} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is missing:\n%s", want, said)
		}
	}
	if calls := server.Calls(); len(calls) != 2 {
		t.Errorf("two regions take %q", calls)
	}
	p.fill(t.Context(), table)
	if calls := server.Calls(); len(calls) != 0 {
		t.Errorf("prices that were just read are requested again: %q", calls)
	}
	server.SetFaults(fake.Faults{Throttle: 1, RetryAfter: time.Hour})
	table.Sources, table.Notes, table.At = nil, nil, now.Add(time.Hour)
	p.fill(t.Context(), table)
	if said := strings.Join(table.Notes, "\n"); !strings.Contains(said, "Azure's price list cannot be read") || !strings.Contains(said, "429") {
		t.Errorf("while it refuses: %q", said)
	}
}
