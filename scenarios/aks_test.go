package scenarios

import (
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/scenarios/catalog"
)

// aksPool is a NodePool as AKS node auto-provisioning creates one, with more requirements.
const aksPool = `
apiVersion: spotter.dev/v1alpha1
kind: Scenario
metadata: {name: s}
spec: {duration: 1h}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default}
spec:
  template:
    spec:
      nodeClassRef: {group: GROUP, kind: KIND, name: default}
      startupTaints: [{key: node.cilium.io/agent-not-ready, effect: NoExecute, value: "true"}]
      requirements: [{key: kubernetes.io/os, operator: In, values: [linux]}, MORE]
`

// TestNodePoolsOfAzureAndGoogle: a NodePool buys the types of its node class's provider alone, and
// those that its requirements on VM sizes allow.
func TestNodePoolsOfAzureAndGoogle(t *testing.T) {
	parse := func(group, kind, more string) (*Scenario, error) {
		text := strings.NewReplacer("GROUP", group, "KIND", kind, "MORE", more).Replace(aksPool)
		return Parse("s.yaml", []byte(text))
	}
	for name, c := range map[string]struct {
		group, kind, more string
		takes, leaves     []string
	}{
		"AKS": {"karpenter.azure.com", "AKSNodeClass", "{key: kubernetes.io/arch, operator: In, values: [amd64]}",
			[]string{"azure/westeurope/westeurope-1/Standard_D8s_v5", "azure/westus/westus/Standard_E8s_v5"},
			[]string{"aws/us-east-1/us-east-1a/m5.large", "gcp/us-central1/us-central1-a/n2-standard-8",
				"azure/westeurope/westeurope-1/Standard_D8ps_v5"}},
		"a family": {"karpenter.azure.com", "AKSNodeClass", "{key: karpenter.azure.com/sku-family, operator: In, values: [D]}",
			[]string{"azure/westeurope/westeurope-1/Standard_D8s_v5"}, []string{"azure/westeurope/westeurope-1/Standard_E8s_v5"}},
		"sizes": {"karpenter.azure.com", "AKSNodeClass", `{key: karpenter.azure.com/sku-cpu, operator: Gt, values: ["7"]}`,
			[]string{"azure/westeurope/westeurope-1/Standard_D8s_v5"}, []string{"azure/westeurope/westeurope-1/Standard_D4s_v5"}},
		"a generation": {"karpenter.azure.com", "AKSNodeClass", `{key: karpenter.azure.com/sku-version, operator: In, values: ["6"]}`,
			[]string{"azure/westeurope/westeurope-1/Standard_D8s_v6"}, []string{"azure/westeurope/westeurope-1/Standard_D8s_v5"}},
		"a zone": {"karpenter.azure.com", "AKSNodeClass", "{key: topology.kubernetes.io/zone, operator: In, values: [westeurope-2]}",
			[]string{"azure/westeurope/westeurope-2/Standard_D8s_v5"}, []string{"azure/westeurope/westeurope-1/Standard_D8s_v5"}},
		"Google": {"karpenter.k8s.gcp", "GCENodeClass", "{key: kubernetes.io/arch, operator: In, values: [amd64]}",
			[]string{"gcp/us-central1/us-central1-a/n2-standard-8"}, []string{"azure/westeurope/westeurope-1/Standard_D8s_v5",
				"aws/us-east-1/us-east-1a/m5.large"}},
	} {
		sc, err := parse(c.group, c.kind, c.more)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for want, markets := range map[bool][]string{true: c.takes, false: c.leaves} {
			for _, m := range markets {
				p := strings.Split(m, "/")
				if _, known := catalog.Lookup(p[0], p[3]); !known {
					t.Fatalf("%s is not in the catalog", m)
				}
				if got := sc.Takes(p[0], p[1], p[2], p[3]); got != want {
					t.Errorf("%s: takes %s: %v, want %v", name, m, got, want)
				}
			}
		}
	}
	if _, err := parse("karpenter.azure.com", "AKSNodeClass", "{key: karpenter.azure.com/sku-warp, operator: Exists}"); err == nil ||
		!strings.Contains(err.Error(), "the catalog does not know this of instance types") {
		t.Errorf("a label that the catalog has not: %v", err)
	}
	for kind, group := range map[string]string{"AKSNodeClass": "karpenter.azure.com/v1beta1", "GCENodeClass": "karpenter.k8s.gcp/v1alpha1"} {
		text := strings.NewReplacer("GROUP", strings.Split(group, "/")[0], "KIND", kind, ", MORE", "").Replace(aksPool)
		sc, err := Parse("s.yaml", []byte(text+"---\napiVersion: "+group+"\nkind: "+kind+"\nmetadata: {name: default}\nspec: {}\n"))
		if err != nil || !strings.Contains(strings.Join(sc.Warnings, "\n"), "its settings are not simulated") {
			t.Errorf("with its %s: %v", kind, err)
		}
	}
}

// TestAzureAllocationFailuresSetting: nothing fails unless the scenario states it, and then the
// report calls it modelled.
func TestAzureAllocationFailuresSetting(t *testing.T) {
	for text, want := range map[string]bool{"{duration: 1h}": false, "{duration: 1h, market: {azureAllocationFailures: false}}": false,
		"{duration: 1h, market: {azureAllocationFailures: true}}": true} {
		sc, err := Parse("s.yaml", []byte("apiVersion: spotter.dev/v1alpha1\nkind: Scenario\nmetadata: {name: s}\nspec: "+text+"\n"))
		if err != nil || sc.AzureAllocationFailures != want {
			t.Errorf("%s: %v", text, err)
			continue
		}
		said := strings.Join((&selection{}).assumptions(sc), "\n")
		if strings.Contains(said, "as modelled (market.azureAllocationFailures)") != want {
			t.Errorf("%s: assumptions %q", text, said)
		}
	}
}
