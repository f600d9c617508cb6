package main

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/spotter-dev/spotter/live/azure/fake"
)

const aksSize = "Standard_D8s_v5"

// newAKS returns a cluster of AKS with node auto-provisioning, next to a server with Azure's prices.
func newAKS(t *testing.T) *cloudCluster {
	t.Helper()
	web := httptest.NewServer(fake.New(fake.Region("westeurope", 0.2, time.Now().AddDate(0, -2, 0))...))
	t.Cleanup(web.Close)
	t.Setenv("SPOTTER_AZURE_PRICES_URL", web.URL+fake.Path)
	return newCloudCluster(t, place{
		region: "westeurope", zone: "westeurope-2", size: aksSize, plural: "aksnodeclasses",
		class: nodeClassOf("karpenter.azure.com/v1beta1", "AKSNodeClass", map[string]any{"osDiskSizeGB": int64(128)}),
		required: karpv1.NodeSelectorRequirementWithMinValues{Key: "karpenter.azure.com/sku-family",
			Operator: corev1.NodeSelectorOpIn, Values: []string{"D"}},
		labels: map[string]string{"karpenter.azure.com/sku-family": "D", "karpenter.azure.com/sku-name": aksSize,
			"kubernetes.azure.com/scalesetpriority": "spot", "kubernetes.azure.com/mode": "user"},
		idPrefix: "azure:///subscriptions/x/resourceGroups/mc/providers/Microsoft.Compute/virtualMachines/",
		families: []string{"Dsv5", "Esv5"},
	})
}

const aksPrices = "prices: {azureRegions: [westeurope]}"

// TestAzureShadow: on AKS a controller in shadow decides with Azure's prices, finds the node class,
// and writes nothing but what shadow may; try reads the same.
func TestAzureShadow(t *testing.T) {
	out := newAKS(t).shadowed(t, "azure-prices", aksPrices)
	if !strings.Contains(out, "about $201 a month for 3 nodes, all Spot") {
		t.Errorf("try:\n%s", out)
	}
}

// TestAzureEvictionDrains: in active mode the pods of a node that Azure will take in 30 seconds leave
// it in that time, as those of a node under a notice do, and the other nodes keep theirs.
func TestAzureEvictionDrains(t *testing.T) {
	newAKS(t).drained(t, aksPrices, 30*time.Second, func(deadline time.Time) corev1.NodeCondition {
		return corev1.NodeCondition{Type: "PreemptionScheduled", Status: corev1.ConditionTrue,
			Reason: "SpotEvictionIncoming", LastTransitionTime: metav1.Now(), LastHeartbeatTime: metav1.Now(),
			Message: "Preempt Scheduled: " + deadline.UTC().Format("Mon, 02 Jan 2006 15:04:05 GMT") + ". DurationInSeconds: -1."}
	})
}
