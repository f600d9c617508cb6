package top

import (
	"math"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/spotter-dev/spotter/live/gcp/fake"
	"github.com/spotter-dev/spotter/scenarios/catalog"
)

// TestGCPPrices: Spot nodes of GKE, by its own labels or Karpenter's, have the price of their machine
// type in their region; the list is read once for all regions. Without a key the reason is reported.
func TestGCPPrices(t *testing.T) {
	server := fake.New(append(append(fake.Part("us-central1", "N2 Instance", "Core", 0.031611, 0.007653),
		fake.Part("us-central1", "N2 Instance", "Ram", 0.004237, 0.001026)...), fake.Region("europe-west1", 0.25)...)...)
	web := httptest.NewServer(server)
	defer web.Close()
	t.Setenv("SPOTTER_GCP_PRICES_URL", web.URL+fake.Path)
	table := &Table{At: now}
	for _, x := range []struct{ zone, kind, key, value string }{
		{"us-central1-a", "n2-standard-8", "karpenter.sh/capacity-type", "spot"},
		{"us-central1-f", "n2-standard-8", "cloud.google.com/gke-spot", "true"},
		{"us-central1-b", "n2-standard-8", "cloud.google.com/gke-provisioning", "spot"},
		{"us-central1-b", "a3-highgpu-8g", "cloud.google.com/gke-spot", "true"},
		{"us-central1-b", "n2-standard-8", "cloud.google.com/gke-provisioning", "standard"},
	} {
		n, _ := nodeOf(object("n", "gce://my-project/"+x.zone+"/n", time.Hour, map[string]string{
			corev1.LabelInstanceTypeStable: x.kind, corev1.LabelTopologyRegion: "us-central1", corev1.LabelTopologyZone: x.zone,
			"cloud.google.com/gke-nodepool": "web", x.key: x.value}), now)
		table.Nodes = append(table.Nodes, n)
	}
	table.Nodes = append(table.Nodes, table.Nodes[0])
	table.Nodes[5].Region, table.Nodes[5].Zone = "europe-west1", "europe-west1-b"
	var p Prices
	p.fill(t.Context(), table)
	if said := strings.Join(table.Notes, "\n"); !strings.Contains(said, "set SPOTTER_GCP_API_KEY") || len(server.Calls()) != 0 {
		t.Errorf("without a key: %q", said)
	}
	t.Setenv("SPOTTER_GCP_API_KEY", fake.Key)
	table.Sources, table.Notes, p = nil, nil, Prices{}
	p.fill(t.Context(), table)
	belgium, _ := catalog.OnDemand(catalog.GCP, "europe-west1", "n2-standard-8")
	for i, want := range []float64{0.094056, 0.094056, 0.094056, 0, 0.388472, 0.25 * belgium.Float()} {
		if got := table.Nodes[i].Price; (got == nil) != (want == 0) || got != nil && math.Abs(*got-want) > 2e-6 {
			t.Errorf("node %d costs %v, want %v", i, got, want)
		}
	}
	said := strings.Join(append(table.Sources, table.Notes...), "\n")
	for _, want := range []string{"Spot prices: live from Google Cloud, read 0s ago", "On-demand prices: Google Cloud, catalog of ",
		"Spot prices of Google Cloud: it lists none for some nodes"} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is missing:\n%s", want, said)
		}
	}
	if calls := server.Calls(); len(calls) != 1 {
		t.Errorf("two regions take %q", calls)
	}
}
