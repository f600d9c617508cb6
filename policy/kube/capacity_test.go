package kube

import (
	"testing"

	"github.com/spotter-dev/spotter/policy"
)

// TestCapacityType reads the labels of providers and tools, and those that a user
// names.
func TestCapacityType(t *testing.T) {
	labels := func(kv ...string) map[string]string {
		m := map[string]string{"kubernetes.io/os": "linux"}
		for i := 0; i < len(kv); i += 2 {
			m[kv[i]] = kv[i+1]
		}
		return m
	}
	for _, c := range []struct {
		name   string
		own    []string
		labels map[string]string
		want   policy.CapacityType
		known  bool
	}{
		{"Karpenter spot", nil, labels("karpenter.sh/capacity-type", "spot"), policy.Spot, true},
		{"Karpenter on demand", nil, labels("karpenter.sh/capacity-type", "on-demand"), policy.OnDemand, true},
		{"Karpenter reserved", nil, labels("karpenter.sh/capacity-type", "reserved"), policy.Reserved, true},
		{"EKS spot", nil, labels("eks.amazonaws.com/capacityType", "SPOT"), policy.Spot, true},
		{"EKS on demand", nil, labels("eks.amazonaws.com/capacityType", "ON_DEMAND"), policy.OnDemand, true},
		{"EKS block", nil, labels("eks.amazonaws.com/capacityType", "CAPACITY_BLOCK"), policy.Reserved, true},
		{"SpotVortex", nil, labels("spotvortex.io/capacity-type", "Spot"), policy.Spot, true},
		{"lifecycle", nil, labels("node.kubernetes.io/lifecycle", "Ec2Spot"), policy.Spot, true},
		{"lifecycle normal", nil, labels("node.kubernetes.io/lifecycle", "normal"), policy.OnDemand, true},
		{"rescheduler spot", nil, labels("kubernetes.io/role", "spot-worker"), policy.Spot, true},
		{"rescheduler on demand", nil, labels("kubernetes.io/role", "worker"), policy.OnDemand, true},
		{"rescheduler by its role", nil, labels("node-role.kubernetes.io/spot-worker", ""), policy.Spot, true},
		{"GKE spot", nil, labels("cloud.google.com/gke-spot", "true"), policy.Spot, true},
		{"GKE not spot", nil, labels("cloud.google.com/gke-spot", "false"), policy.OnDemand, true},
		{"GKE preemptible", nil, labels("cloud.google.com/gke-preemptible", "true"), policy.Spot, true},
		{"GKE provisioning", nil, labels("cloud.google.com/gke-provisioning", "standard"), policy.OnDemand, true},
		{"AKS", nil, labels("kubernetes.azure.com/scalesetpriority", "spot"), policy.Spot, true},
		{"Rackspace", nil, labels("spot.rackspace.com/capacity-type", "spot"), policy.Spot, true},
		{"Karpetrack", nil, labels("karpetrack.io/managed", "true"), policy.Spot, true},
		{"Karpetrack beside what says more", nil, labels("karpetrack.io/managed", "true",
			"spot.rackspace.com/capacity-type", "on-demand"), policy.OnDemand, true},
		{"Karpetrack beside a word that nobody knows", nil, labels("karpetrack.io/managed", "true", "lifecycle", "short"), policy.Spot, true},
		{"not of Karpetrack", nil, labels("karpetrack.io/managed", "false"), policy.OnDemand, false},
		{"none", nil, labels(), policy.OnDemand, false},
		{"a word that nobody knows", nil, labels("karpenter.sh/capacity-type", "cheap"), policy.OnDemand, false},
		{"the next label then counts", nil, labels("karpenter.sh/capacity-type", "cheap", "node.kubernetes.io/lifecycle",
			"spot"), policy.Spot, true},
		{"the more trusted counts", nil, labels("karpenter.sh/capacity-type", "on-demand", "node.kubernetes.io/lifecycle",
			"spot"), policy.OnDemand, true},
		{"a user's label", []string{"example.com/cheap"}, labels("example.com/cheap", ""), policy.Spot, true},
		{"a user's label that says no", []string{"example.com/cheap"}, labels("example.com/cheap", "false"), policy.OnDemand, true},
		{"a user's value", []string{"tier=cheap"}, labels("tier", "cheap", "karpenter.sh/capacity-type", "on-demand"), policy.Spot, true},
		{"another value than the user's", []string{"tier=cheap"}, labels("tier", "dear", "karpenter.sh/capacity-type",
			"spot"), policy.OnDemand, true},
		{"the user's second label", []string{"tier=cheap", "class=s"}, labels("class", "s"), policy.Spot, true},
		{"a node without the user's label", []string{"tier=cheap"}, labels("karpenter.sh/capacity-type", "spot"), policy.Spot, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			var r CapacityResolver
			for _, text := range c.own {
				l, err := ParseCapacityLabel(text)
				if err != nil {
					t.Fatal(err)
				}
				r.Own = append(r.Own, l)
			}
			if got, known := r.Resolve(c.labels); got != c.want || known != c.known {
				t.Errorf("%v, known %v; want %v, %v", got, known, c.want, c.known)
			}
		})
	}
	for _, text := range []string{"", "=x", "name=", "a b", "a,b=c"} {
		if l, err := ParseCapacityLabel(text); err == nil {
			t.Errorf("%q is read as %+v", text, l)
		}
	}
}
