package karpetrack_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/policytest"
)

// large returns a cluster of 1,000 nodes, 10,000 pods and 300 markets, in which every fourth Spot
// market has become cheap enough to move to. In a pool without another provisioner several nodes
// are also replaced together.
func large(p policy.Provisioner, spread bool) *policy.Snapshot {
	s := &policy.Snapshot{Now: policytest.Epoch.Add(time.Hour), Zones: []string{"a", "b", "c"}}
	pool := policy.Pool{Name: "web", Provisioner: p, Mode: policy.ModeActive, Share: policy.ShareRange{Max: 1},
		Levers: policy.Levers{Launch: true}}
	for i := range 50 {
		vcpu := int64(4 << (i % 3))
		r := policy.Resources{CPU: vcpu * 1000, Memory: vcpu << 32, Pods: 110, Storage: 20 << 30}
		s.Types = append(s.Types, policy.InstanceType{
			ID: policy.TypeID(i), Provider: "aws", Arch: "amd64", Name: fmt.Sprintf("t%02d",
				i), VCPU: vcpu, Capacity: r, Allocatable: r, VolumesMax: 25,
		})
		for z := range s.Zones {
			for _, capacity := range []policy.CapacityType{policy.OnDemand, policy.Spot} {
				m := policy.Market{
					ID: policy.MarketID(len(s.Markets)), Name: fmt.Sprintf("m%04d", len(s.Markets)), Provider: "aws", Zone: policy.ZoneID(z),
					Type: policy.TypeID(i), Capacity: capacity, Offered: true, Price: policy.Money(vcpu) * 50_000, OnDemand: policy.Money(vcpu) * 50_000,
				}
				if capacity == policy.Spot {
					m.Price = m.OnDemand*policy.Money(3+i%4)/10 + policy.Money(i)
				}
				pool.Markets = append(pool.Markets, m.ID)
				s.Markets = append(s.Markets, m)
			}
		}
	}
	s.Pools = []policy.Pool{pool}
	for i := range 40 {
		name := fmt.Sprintf("default/w%02d", i)
		app := policy.Label{Key: "app", Value: name}
		s.Workloads = append(s.Workloads, policy.Workload{ID: policy.WorkloadID(i), Name: name, Kind: policy.KindDeployment, Replicas: 250})
		x := policy.Template{
			ID: policy.TemplateID(i), Workload: policy.WorkloadID(i), Name: name, Namespace: "default", Labels: []policy.Label{app},
			Requests: policy.Resources{CPU: 200 + int64(i%7)*20, Memory: 1 << 28, Pods: 1}, OutagePenalty: -1, MigrationTier: -1,
		}
		if spread {
			x.Spread = []policy.Spread{{TopologyKey: "topology.kubernetes.io/zone", MaxSkew: 100, Selector: policy.Selector{
				Requirements: []policy.Requirement{{Key: app.Key, Values: []string{app.Value}}},
			}}}
		}
		s.Templates = append(s.Templates, x)
	}
	for i := range 1000 {
		m := &s.Markets[i%len(s.Markets)]
		s.Nodes = append(s.Nodes, policy.Node{
			ID: policy.NodeID(i), Name: fmt.Sprintf("n%04d",
				i), Market: m.ID, Phase: policy.NodeInitialized, Allocatable: s.Types[m.Type].Allocatable,
			Labels:   []policy.Label{{Key: "topology.kubernetes.io/zone", Value: s.Zones[m.Zone]}},
			Launched: policytest.Epoch, Initialized: policytest.Epoch,
		})
	}
	for i := range 10_000 {
		s.Pods = append(s.Pods, policy.Pod{
			ID: policy.PodID(i), Name: fmt.Sprintf("default/p%d", i), Template: policy.TemplateID(i * 7 % 40), Phase: policy.PodReady,
			Node: policy.NodeID(i % 1000), Nominated: policy.None, VolumeZone: policy.None, Bound: policytest.Epoch, ReadySince: policytest.Epoch,
		})
	}
	return s
}

// BenchmarkDecide measures a decision on a large cluster: one with much to replace, and one in
// which the whole pool is repacked in vain.
func BenchmarkDecide(b *testing.B) {
	for name, p := range map[string]policy.Provisioner{"karpenter": policy.ProvisionerKarpenter, "none": policy.ProvisionerNone} {
		for _, spread := range []bool{false, true} {
			for _, spec := range []string{"threshold=0.2", "threshold=0.97"} {
				b.Run(fmt.Sprintf("%s/spread=%v/%s", name, spread, spec), func(b *testing.B) {
					e, err := build(spec)
					if err != nil {
						b.Fatal(err)
					}
					s := large(p, spread)
					b.ReportAllocs()
					for b.Loop() {
						e.Decide(s, policy.Memory{})
					}
				})
			}
		}
	}
}
