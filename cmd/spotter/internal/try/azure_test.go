package try

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/spotter-dev/spotter/live/azure"
	"github.com/spotter-dev/spotter/live/azure/fake"
	"github.com/spotter-dev/spotter/policy"
)

// onAKS moves the nodes of a shelf to Azure, with a NodePool of AKS that allows no Spot.
func onAKS() shelf {
	s := shop()
	for _, o := range s.objects {
		switch x := o.(type) {
		case *corev1.Node:
			x.Labels[corev1.LabelInstanceTypeStable], x.Labels[corev1.LabelTopologyRegion] = "Standard_D8s_v5", "westeurope"
			x.Labels[corev1.LabelTopologyZone] = "westeurope-" + string("123"[len(x.Name)%3])
			x.Spec.ProviderID = "azure:///subscriptions/x/virtualMachines/" + x.Name
		case *karpv1.NodePool:
			x.Spec.Template.Spec.NodeClassRef = &karpv1.NodeClassReference{Group: "karpenter.azure.com", Kind: "AKSNodeClass", Name: "default"}
			x.Spec.Template.Spec.Requirements = []karpv1.NodeSelectorRequirementWithMinValues{
				{Key: karpv1.CapacityTypeLabelKey, Operator: corev1.NodeSelectorOpIn, Values: []string{karpv1.CapacityTypeOnDemand}},
				{Key: "karpenter.azure.com/sku-family", Operator: corev1.NodeSelectorOpIn, Values: []string{"D"}},
			}
		}
	}
	return s
}

// TestAKS: a cluster of AKS is simulated with its own NodePool and the prices that Azure publishes,
// and the step that follows names the regions of Azure.
func TestAKS(t *testing.T) {
	alone(t)
	web := httptest.NewServer(fake.New(fake.Region("westeurope", 0.2, time.Now().AddDate(0, -2, 0))...))
	defer web.Close()
	t.Setenv("SPOTTER_AZURE_PRICES_URL", web.URL+fake.Path)
	out, log, dir, err := tried(t, few(), onAKS())
	if err != nil || !strings.Contains(out, "Simulated on recorded Spot prices") || strings.Contains(out, "synthetic") ||
		!strings.Contains(out, "your own NodePools, consolidated (as-is)") {
		t.Errorf("%v\n%s%s", err, log, out)
	}
	if strings.Contains(out, "azure.regions=") != strings.Contains(out, "helm install") || strings.Contains(out, "aws.regions") {
		t.Errorf("the next step names other regions:\n%s", out)
	}
	if text := read(t, dir, scenarioFile); !strings.Contains(text, "kind: NodePool") || !strings.Contains(text, "AKSNodeClass") {
		t.Errorf("the scenario lacks the NodePool:\n%.2000s", text)
	}
	web.Close()
	if out, _, _, err := tried(t, few(), onAKS()); err != nil || !strings.Contains(out, "Azure's price list cannot be read") {
		t.Errorf("without Azure's prices: %v\n%s", err, out)
	}
}

// TestSeriesOfAzure: each zone has the price of its region over the whole interval, and a change
// within it is counted. A region without zones is its own.
func TestSeriesOfAzure(t *testing.T) {
	from, to := policy.Time(1_000_000_000_000), policy.Time(1_000_600_000_000)
	l := azure.List{Prices: []azure.Price{
		{Type: "Standard_D8s_v5", Price: 460_000, Since: 1}, {Type: "Standard_D8s_v5", Spot: true, Price: 80_000, Since: 1},
		{Type: "Standard_E8s_v5", Spot: true, Price: 90_000, Since: from + 1}, {Type: "Standard_Z1_v9", Spot: true, Price: 1, Since: 1},
	}}
	for region, zones := range map[string]int{"westeurope": 3, "westus": 1} {
		all, changed := seriesOf(region, l, from, to)
		if len(all) != 2*zones || changed != 1 {
			t.Errorf("%s: %d series, %d changes", region, len(all), changed)
		}
		for _, s := range all {
			want := map[string][2]policy.Money{"Standard_D8s_v5": {80_000, 460_000}, "Standard_E8s_v5": {90_000, 0}}[s.Type]
			if s.At[0] != from || s.At[1] != to || s.Spot[0] != want[0] || s.Spot[1] != want[0] || s.OnDemand[0] != want[1] {
				t.Errorf("%+v", s)
			}
		}
	}
}
