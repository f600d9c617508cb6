package main

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/spotter-dev/spotter/live/gcp/fake"
)

// newGKE returns a cluster of GKE with Karpenter's provider for Google Cloud, whose nodes requested
// a notice of 120 s, next to a server with Google's prices, and the settings of the prices.
func newGKE(t *testing.T) (c *cloudCluster, prices string) {
	t.Helper()
	web := httptest.NewServer(fake.New(fake.Region("us-central1", 0.25)...))
	t.Cleanup(web.Close)
	t.Setenv("SPOTTER_GCP_PRICES_URL", web.URL+fake.Path)
	t.Setenv("SPOTTER_GCP_API_KEY", fake.Key) // for try
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte(fake.Key+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const hash = "karpenter.k8s.gcp/gcenodeclass-hash"
	class := nodeClassOf("karpenter.k8s.gcp/v1alpha1", "GCENodeClass", map[string]any{"preemptionNoticeDuration": int64(120),
		"imageSelectorTerms": []any{map[string]any{"alias": "ContainerOptimizedOS@latest"}}})
	class.SetAnnotations(map[string]string{hash: "4711"})
	c = newCloudCluster(t, place{
		region: "us-central1", zone: "us-central1-b", size: "n2-standard-8", plural: "gcenodeclasses", class: class,
		required: karpv1.NodeSelectorRequirementWithMinValues{Key: "karpenter.k8s.gcp/instance-family",
			Operator: corev1.NodeSelectorOpIn, Values: []string{"n2", "n2d"}},
		labels: map[string]string{"karpenter.k8s.gcp/instance-family": "n2", "karpenter.k8s.gcp/instance-cpu": "8",
			"karpenter.k8s.gcp/gcenodeclass": "default", "cloud.google.com/gke-provisioning": "spot"},
		annotations: map[string]string{hash: "4711"}, idPrefix: "gce://my-project/us-central1-b/", families: []string{"n2", "n2d"},
	})
	return c, "prices: {gcpRegions: [us-central1], gcpKeyFile: " + key + "}"
}

// TestGCPShadow: on GKE a controller in shadow decides with the prices of Google's list, finds the
// node class, and writes nothing but what shadow may; try reads the same, with the notice that the
// class requests. Three n2-standard-8 at a quarter of $0.388472 cost $213 in 730 hours.
func TestGCPShadow(t *testing.T) {
	c, prices := newGKE(t)
	out := c.shadowed(t, "gcp-prices", prices)
	if !strings.Contains(out, "about $213 a month for 3 nodes, all Spot") || strings.Contains(out, fake.Key) {
		t.Errorf("try:\n%s", out)
	}
}

// TestGCPPreemptionDrains: in active mode the pods of a node whose preemption is announced leave it,
// and the reclaim is expected when the notice of the node's class ends, not after the usual 30 s.
func TestGCPPreemptionDrains(t *testing.T) {
	c, prices := newGKE(t)
	deadline, expected := c.drained(t, prices, 2*time.Minute, func(time.Time) corev1.NodeCondition {
		return corev1.NodeCondition{Type: "GCESpotPreempting", Status: corev1.ConditionTrue, Reason: "SpotPreempting",
			LastTransitionTime: metav1.Now(), LastHeartbeatTime: metav1.Now()}
	})
	if late := deadline.Sub(expected); late.Abs() > 5*time.Second {
		t.Errorf("the reclaim is expected at %v, %v before the notice of 120 s ends", expected, late)
	}
}
