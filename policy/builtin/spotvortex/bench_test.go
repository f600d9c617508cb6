package spotvortex_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/builtin/spotvortex"
)

// large returns a calm cluster of 2,000 nodes and 8,000 pods in three pools,
// with 60 types in three zones, at the share at which its pools are held.
func large() *policy.Snapshot {
	s := &policy.Snapshot{Now: epoch, Zones: []string{"a", "b", "c"}}
	for i := range 60 {
		vcpu := int64(2 << (i % 4))
		r := policy.Resources{CPU: vcpu * 1000, Memory: vcpu << 32, Pods: 110, Storage: 20 << 30}
		s.Types = append(s.Types, policy.InstanceType{
			ID: policy.TypeID(i), Name: fmt.Sprintf("t%02d", i), VCPU: vcpu, Capacity: r, Allocatable: r, VolumesMax: 25,
		})
	}
	for i := range s.Types {
		for z := range s.Zones {
			for _, capacity := range []policy.CapacityType{policy.OnDemand, policy.Spot} {
				od := policy.Money(s.Types[i].VCPU) * 50_000
				m := policy.Market{
					ID: policy.MarketID(len(s.Markets)), Name: fmt.Sprintf("m%04d", len(s.Markets)), Zone: policy.ZoneID(z),
					Type: policy.TypeID(i), Capacity: capacity, Offered: true, Price: od, OnDemand: od,
				}
				if capacity == policy.Spot {
					m.Price = od/3 + policy.Money(i)
				}
				s.Markets = append(s.Markets, m)
			}
		}
	}
	addPools(s)
	addPods(s)
	return s
}

// addPools adds three pools, and 2,000 nodes of all markets in them.
func addPools(s *policy.Snapshot) {
	for i := range 3 {
		p := policy.Pool{
			ID: policy.PoolID(i), Name: fmt.Sprintf("pool%d", i), Provisioner: policy.ProvisionerKarpenter,
			Mode: policy.ModeActive, Share: policy.ShareRange{Max: 1}, Steer: policy.SteerState{Set: true, Share: 0.5},
		}
		for m := range s.Markets {
			p.Markets = append(p.Markets, policy.MarketID(m))
		}
		s.Pools = append(s.Pools, p)
	}
	for i := range 2000 {
		market := policy.MarketID((i * 7) % len(s.Markets))
		t := &s.Types[s.Markets[market].Type]
		s.Nodes = append(s.Nodes, policy.Node{
			ID: policy.NodeID(i), Name: fmt.Sprintf("n%04d", i), Pool: policy.PoolID(i % 3), Market: market,
			Phase: policy.NodeInitialized, Allocatable: t.Allocatable, Launched: epoch - 1e6, Initialized: epoch - 9e5,
		})
	}
}

// addPods adds 8,000 pods of 40 workloads, each with a disruption budget.
func addPods(s *policy.Snapshot) {
	for i := range 40 {
		s.Workloads = append(s.Workloads, policy.Workload{
			ID: policy.WorkloadID(i), Name: fmt.Sprintf("default/w%02d", i), Kind: policy.KindDeployment, Replicas: 200,
		})
		s.PDBs = append(s.PDBs, policy.PDB{
			ID: policy.PDBID(i), Name: fmt.Sprintf("default/w%02d", i), Namespace: "default", Allowed: 20, Healthy: 200, Desired: 180, Expected: 200,
		})
		s.Templates = append(s.Templates, policy.Template{
			ID: policy.TemplateID(i), Workload: policy.WorkloadID(i), Name: fmt.Sprintf("default/w%02d", i), Namespace: "default",
			Requests: policy.Resources{CPU: 900, Memory: 1 << 30, Pods: 1}, OutagePenalty: -1, MigrationTier: -1,
			PDBs: []policy.PDBID{policy.PDBID(i)},
		})
	}
	for i := range 8000 {
		s.Pods = append(s.Pods, policy.Pod{
			ID: policy.PodID(i), Name: fmt.Sprintf("default/p%d", i), Template: policy.TemplateID(i % 40), Phase: policy.PodReady,
			Node: policy.NodeID(i % 2000), Nominated: policy.None, VolumeZone: policy.None,
			Bound: epoch - 5e5, ReadySince: epoch - 5e5 + policy.Time(20_000+i%20_000),
		})
	}
}

// BenchmarkDecide measures a decision that holds on a large cluster, as nearly
// all of a week's 1,008 are.
func BenchmarkDecide(b *testing.B) {
	s := large()
	if err := s.Validate(); err != nil {
		b.Fatal(err)
	}
	for _, compat := range []bool{false, true} {
		b.Run(fmt.Sprintf("compat=%v", compat), func(b *testing.B) {
			cfg := spotvortex.Shipped()
			cfg.Compat = compat
			p := spotvortex.New(cfg)
			_, m := p.Decide(s, policy.Memory{})
			b.ReportAllocs()
			start := cpuTime(b)
			for b.Loop() {
				p.Decide(s, m)
			}
			b.ReportMetric(float64((cpuTime(b)-start).Microseconds())/float64(b.N), "cpu-µs/op")
		})
	}
}

// cpuTime returns the processor time used so far: on a machine that others use
// too, the time on the clock says little.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
