package leftover_test

import (
	"fmt"
	"testing"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/policytest"
)

// large returns a cluster of 1,000 nodes and 10,000 pods of 60 workloads in one
// pool of 300 markets: 50 types in three zones.
func large() *policy.Snapshot {
	now := policytest.Epoch + 1e8
	s := &policy.Snapshot{Now: now, Zones: []string{"a", "b", "c"}}
	for i := range 50 {
		vcpu := int64(4 << (i % 4))
		r := policy.Resources{CPU: vcpu * 1000, Memory: vcpu << 32, Pods: 110, Storage: 20 << 30}
		s.Types = append(s.Types, policy.InstanceType{
			ID: policy.TypeID(i), Name: fmt.Sprintf("t%02d.x", i), Arch: "amd64", VCPU: vcpu, Capacity: r, Allocatable: r, VolumesMax: 25,
		})
	}
	p := policy.Pool{Name: "web", Provisioner: policy.ProvisionerKarpenter, Mode: policy.ModeActive,
		Share: policy.ShareRange{Max: 1}, OnDemandFallback: true}
	for i := range 300 {
		typ := policy.TypeID(i / 6)
		onDemand := policy.Money(s.Types[typ].VCPU) * 50_000
		m := policy.Market{
			ID: policy.MarketID(i), Name: fmt.Sprintf("m%03d", i), Zone: policy.ZoneID(i / 2 % 3), Type: typ,
			Capacity: policy.CapacityType(i % 2), Offered: true, Price: onDemand, OnDemand: onDemand, PlacementScore: -1,
		}
		if m.Capacity == policy.Spot {
			m.Price = onDemand/3 + policy.Money(i*17%100)
		}
		s.Markets, p.Markets = append(s.Markets, m), append(p.Markets, m.ID)
	}
	s.Pools = []policy.Pool{p}
	for i := range 60 {
		name := fmt.Sprintf("default/w%02d", i)
		s.Workloads = append(s.Workloads, policy.Workload{ID: policy.WorkloadID(i), Name: name, Kind: policy.KindDeployment})
		s.Templates = append(s.Templates, policy.Template{
			ID: policy.TemplateID(i), Workload: policy.WorkloadID(i), Name: name, Requests: policy.Resources{CPU: int64(200 +
				10*i), Memory: 1 << 30, Pods: 1},
		})
	}
	for i := range 1000 {
		m := &s.Markets[i%300]
		s.Nodes = append(s.Nodes, policy.Node{
			ID: policy.NodeID(i), Name: fmt.Sprintf("n%04d",
				i), Market: m.ID, Phase: policy.NodeInitialized, Allocatable: s.Types[m.Type].Allocatable,
		})
	}
	for i := range 10_000 {
		s.Pods = append(s.Pods, policy.Pod{
			ID: policy.PodID(i), Template: policy.TemplateID(i % 60), Phase: policy.PodReady, Node: policy.NodeID(i % 1000),
			Nominated: policy.None, VolumeZone: policy.None,
		})
	}
	return s
}

func BenchmarkDecide(b *testing.B) {
	s, p := large(), must(b, "")
	_, m := p.Decide(s, policy.Memory{})
	b.ReportAllocs()
	for b.Loop() {
		p.Decide(s, m)
	}
}
