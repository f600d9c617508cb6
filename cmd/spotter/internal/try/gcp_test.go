package try

import (
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/spotter-dev/spotter/live/gcp/fake"
	"github.com/spotter-dev/spotter/scenarios/catalog"
)

// onGKE moves the nodes of a shelf to Google Cloud. With karpenter their NodePool is one of its
// provider there and allows no Spot; otherwise they are in a node pool of GKE, which its own
// autoscaler serves.
func onGKE(karpenter bool) shelf {
	s := shop()
	var kept []client.Object
	for _, o := range s.objects {
		switch x := o.(type) {
		case *corev1.Node:
			zone := "us-central1-" + string("abc"[len(x.Name)%3])
			x.Labels[corev1.LabelInstanceTypeStable], x.Labels[corev1.LabelTopologyRegion] = "n2-standard-8", "us-central1"
			x.Labels[corev1.LabelTopologyZone] = zone
			x.Labels["cloud.google.com/machine-family"] = "n2"
			x.Spec.ProviderID = "gce://my-project/" + zone + "/" + x.Name
			if !karpenter {
				delete(x.Labels, karpv1.NodePoolLabelKey)
				delete(x.Labels, karpv1.CapacityTypeLabelKey)
				x.Labels["cloud.google.com/gke-nodepool"], x.Labels["cloud.google.com/gke-provisioning"] = "web", "standard"
			}
		case *karpv1.NodePool:
			if !karpenter {
				continue
			}
			x.Spec.Template.Spec.NodeClassRef = &karpv1.NodeClassReference{Group: "karpenter.k8s.gcp", Kind: "GCENodeClass", Name: "default"}
			x.Spec.Template.Spec.Requirements = []karpv1.NodeSelectorRequirementWithMinValues{
				{Key: karpv1.CapacityTypeLabelKey, Operator: corev1.NodeSelectorOpIn, Values: []string{karpv1.CapacityTypeOnDemand}},
				{Key: "karpenter.k8s.gcp/instance-family", Operator: corev1.NodeSelectorOpIn, Values: []string{"n2", "c3"}},
			}
		}
		kept = append(kept, o)
	}
	s.objects = kept
	return s
}

// TestSpotNodesOfGKE: GKE's own labels tell Spot nodes from others, with or without Karpenter, and a
// capture has both.
func TestSpotNodesOfGKE(t *testing.T) {
	alone(t)
	for label, value := range map[string]string{"cloud.google.com/gke-spot": "true", "cloud.google.com/gke-provisioning": "spot",
		"cloud.google.com/gke-preemptible": "true"} {
		s, nodes := onGKE(false), 0
		for _, o := range s.objects {
			if n, ok := o.(*corev1.Node); ok {
				if nodes++; nodes%3 == 0 {
					delete(n.Labels, "cloud.google.com/gke-provisioning")
					n.Labels[label] = value
				}
			}
		}
		seen := &sight{context: "shop", server: "https://shop.test"}
		if err := seen.take(t.Context(), s.reader(t.Context())); err != nil {
			t.Fatal(err)
		}
		if taken := seen.taken; taken.Nodes != nodes || taken.Spot != nodes/3 || taken.Spot == 0 ||
			!slices.Equal(taken.Regions(catalog.GCP), []string{"us-central1"}) {
			t.Errorf("%s: %d of %d nodes are Spot, want a third of %d, in %v", label, taken.Spot, taken.Nodes, nodes,
				taken.Regions(catalog.GCP))
		}
	}
}

// TestGKE: a cluster of GKE is simulated with the prices that Google publishes, with its own NodePool
// where Karpenter serves it; the step that follows names the regions of Google Cloud and its key.
func TestGKE(t *testing.T) {
	for _, karpenter := range []bool{true, false} {
		t.Run(fmt.Sprintf("karpenter=%v", karpenter), func(t *testing.T) {
			alone(t)
			web := httptest.NewServer(fake.New(fake.Region("us-central1", 0.25)...))
			defer web.Close()
			t.Setenv("SPOTTER_GCP_PRICES_URL", web.URL+fake.Path)
			plain := func(s string) string { return strings.Join(strings.Fields(s), " ") }
			if out, _, _, err := tried(t, few(), onGKE(karpenter)); err != nil || !strings.Contains(plain(out), "set SPOTTER_GCP_API_KEY") {
				t.Errorf("without a key: %v\n%s", err, out)
			}
			t.Setenv("SPOTTER_GCP_API_KEY", fake.Key)
			out, log, dir, err := tried(t, few(), onGKE(karpenter))
			if err != nil || !strings.Contains(out, "Simulated on recorded Spot prices") || strings.Contains(out, "synthetic") ||
				strings.Contains(out, "your own NodePools") != karpenter || strings.Contains(out, fake.Key) {
				t.Errorf("%v\n%s%s", err, log, out)
			}
			if strings.Contains(out, "gcp.regions={us-central1},gcp.apiKeySecret.name=") != strings.Contains(out, "helm install") ||
				strings.Contains(out, "aws.regions") {
				t.Errorf("the next step names other regions:\n%s", out)
			}
			text := read(t, dir, scenarioFile)
			if strings.Contains(text, "kind: NodePool") != karpenter || strings.Contains(text, "GCENodeClass") != karpenter {
				t.Errorf("the scenario:\n%.2000s", text)
			}
		})
	}
}
