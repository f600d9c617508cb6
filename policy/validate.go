package policy

import (
	"fmt"
	"slices"
	"time"
)

// Validate returns an error for the first invariant that s violates. Observers of a live cluster
// call it once per snapshot; policies assume that snapshots are valid.
func (s *Snapshot) Validate() error {
	if s.Now <= 0 {
		return fmt.Errorf("snapshot: now is not set")
	}
	for _, check := range [...]func() error{
		s.validateTypes, s.validateMarkets, s.validatePools, s.validateTemplates,
		s.validateNodes, s.validatePods, s.validatePDBs, s.validateBudgets, s.validateCommitments,
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (s *Snapshot) validateTypes() error {
	for i := range s.Types {
		t := &s.Types[i]
		switch {
		case t.ID != TypeID(i):
			return fmt.Errorf("snapshot: type %q has id %d in slot %d", t.Name, t.ID, i)
		case i > 0 && s.Types[i-1].Name >= t.Name:
			return fmt.Errorf("snapshot: type %q is not after %q", t.Name, s.Types[i-1].Name)
		case t.Allocatable.CPU <= 0 || t.Allocatable.Memory <= 0 || t.Allocatable.Pods <= 0:
			return fmt.Errorf("snapshot: type %q: allocatable %+v is not positive", t.Name, t.Allocatable)
		}
	}
	return nil
}

func (s *Snapshot) validateMarkets() error {
	for i := range s.Markets {
		m := &s.Markets[i]
		switch {
		case m.ID != MarketID(i):
			return fmt.Errorf("snapshot: market %q has id %d in slot %d", m.Name, m.ID, i)
		case i > 0 && s.Markets[i-1].Name >= m.Name:
			return fmt.Errorf("snapshot: market %q is not after %q", m.Name, s.Markets[i-1].Name)
		case !within(int(m.Type), len(s.Types)):
			return fmt.Errorf("snapshot: market %q: type %d is not in the table", m.Name, m.Type)
		case !within(int(m.Zone), len(s.Zones)):
			return fmt.Errorf("snapshot: market %q: zone %d is not in the table", m.Name, m.Zone)
		case m.Offered && m.Price <= 0:
			return fmt.Errorf("snapshot: market %q: price %v is not positive", m.Name, m.Price)
		case m.OnDemand <= 0:
			return fmt.Errorf("snapshot: market %q: on-demand price %v is not positive", m.Name, m.OnDemand)
		case m.PricedAt > s.Now:
			return fmt.Errorf("snapshot: market %q: price of %v is from after now, %v", m.Name, m.PricedAt, s.Now)
		case !(m.Forecast.Hazard >= 0): // also rejects NaN
			return fmt.Errorf("snapshot: market %q: hazard %v is not a rate", m.Name, m.Forecast.Hazard)
		case !isScore(m.Forecast.Capacity) || !isScore(m.Forecast.Runtime) || !isScore(m.Forecast.Confidence):
			return fmt.Errorf("snapshot: market %q: forecast %+v is not in [0, 1]", m.Name, m.Forecast)
		case m.Band < BandUnknown || m.Band > 4:
			return fmt.Errorf("snapshot: market %q: band %d is not in -1…4", m.Name, m.Band)
		}
	}
	return nil
}

func (s *Snapshot) validatePools() error {
	for i := range s.Pools {
		p := &s.Pools[i]
		switch {
		case p.ID != PoolID(i):
			return fmt.Errorf("snapshot: pool %q has id %d in slot %d", p.Name, p.ID, i)
		case i > 0 && s.Pools[i-1].Name >= p.Name:
			return fmt.Errorf("snapshot: pool %q is not after %q", p.Name, s.Pools[i-1].Name)
		case !isScore(p.Share.Min) || !isScore(p.Share.Max) || !isScore(p.Share.Target) || p.Share.Min > p.Share.Max:
			return fmt.Errorf("snapshot: pool %q: Spot share %+v is not a range in [0, 1]", p.Name, p.Share)
		case p.Fees.Fee < 0 || p.Fees.Volumes < 0 || p.Fees.Credits != 0 || p.Fees.Total() > FeeMax:
			return fmt.Errorf("snapshot: pool %q: fees of %v and %v per node and hour are not from 0 to %v", p.Name,
				p.Fees.Fee, p.Fees.Volumes, FeeMax)
		}
		for k, m := range p.Markets {
			if !within(int(m), len(s.Markets)) || k > 0 && p.Markets[k-1] >= m {
				return fmt.Errorf("snapshot: pool %q: markets are not ascending ids of the table", p.Name)
			}
		}
	}
	return nil
}

func (s *Snapshot) validateTemplates() error {
	for i := range s.Workloads {
		if s.Workloads[i].ID != WorkloadID(i) {
			return fmt.Errorf("snapshot: workload %q has id %d in slot %d", s.Workloads[i].Name, s.Workloads[i].ID, i)
		}
	}
	for i := range s.Templates {
		t := &s.Templates[i]
		switch {
		case t.ID != TemplateID(i):
			return fmt.Errorf("snapshot: template %q has id %d in slot %d", t.Name, t.ID, i)
		case t.Workload != None && !within(int(t.Workload), len(s.Workloads)):
			return fmt.Errorf("snapshot: template %q: workload %d is not in the table", t.Name, t.Workload)
		case t.Requests.Pods != 1:
			return fmt.Errorf("snapshot: template %q: a pod takes %d pod slots, want 1", t.Name, t.Requests.Pods)
		case t.Requests.CPU < 0 || t.Requests.Memory < 0 || t.Requests.Storage < 0 || t.Requests.GPU < 0:
			return fmt.Errorf("snapshot: template %q: requests %+v are negative", t.Name, t.Requests)
		case slices.ContainsFunc(t.Devices, func(d DeviceUse) bool { return d.Amount <= 0 }):
			return fmt.Errorf("snapshot: template %q: devices %+v are not above 0", t.Name, t.Devices)
		}
		for _, p := range t.PDBs {
			if !within(int(p), len(s.PDBs)) {
				return fmt.Errorf("snapshot: template %q: budget %d is not in the table", t.Name, p)
			}
		}
	}
	return nil
}

func (s *Snapshot) validateNodes() error {
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.Phase == NodeGone {
			continue
		}
		switch {
		case n.ID != NodeID(i):
			return fmt.Errorf("snapshot: node %q has id %d in slot %d", n.Name, n.ID, i)
		case n.Name == "":
			return fmt.Errorf("snapshot: node in slot %d has no name", i)
		case n.Pool != None && !within(int(n.Pool), len(s.Pools)):
			return fmt.Errorf("snapshot: node %q: pool %d is not in the table", n.Name, n.Pool)
		case n.Market != None && !within(int(n.Market), len(s.Markets)):
			return fmt.Errorf("snapshot: node %q: market %d is not in the table", n.Name, n.Market)
		case n.Launched > s.Now || n.NoticeAt > s.Now || n.Recommended > s.Now:
			return fmt.Errorf("snapshot: node %q is from after now, %v", n.Name, s.Now)
		case n.ReclaimAt != 0 && n.NoticeAt == 0:
			return fmt.Errorf("snapshot: node %q: reclaim at %v without a notice", n.Name, n.ReclaimAt)
		}
	}
	return nil
}

func (s *Snapshot) validatePods() error {
	for i := range s.Pods {
		p := &s.Pods[i]
		if p.Phase == PodGone {
			continue
		}
		switch {
		case p.ID != PodID(i):
			return fmt.Errorf("snapshot: pod %q has id %d in slot %d", p.Name, p.ID, i)
		case !within(int(p.Template), len(s.Templates)):
			return fmt.Errorf("snapshot: pod %q: template %d is not in the table", p.Name, p.Template)
		case p.Node != None && (!within(int(p.Node), len(s.Nodes)) || s.Nodes[p.Node].Phase == NodeGone):
			return fmt.Errorf("snapshot: pod %q: node %d is not there", p.Name, p.Node)
		case (p.Phase == PodStarting || p.Phase == PodReady) && p.Node == None:
			return fmt.Errorf("snapshot: pod %q is %v on no node", p.Name, p.Phase)
		case p.Created > s.Now || p.Bound > s.Now || p.ReadySince > s.Now:
			return fmt.Errorf("snapshot: pod %q is from after now, %v", p.Name, s.Now)
		}
	}
	return nil
}

func (s *Snapshot) validatePDBs() error {
	for i := range s.PDBs {
		p := &s.PDBs[i]
		switch {
		case p.ID != PDBID(i):
			return fmt.Errorf("snapshot: budget %q has id %d in slot %d", p.Name, p.ID, i)
		case p.MinAvailable.Set && p.MaxUnavailable.Set:
			return fmt.Errorf("snapshot: budget %q sets both minAvailable and maxUnavailable", p.Name)
		case p.Allowed < 0:
			return fmt.Errorf("snapshot: budget %q allows %d disruptions", p.Name, p.Allowed)
		}
	}
	return nil
}

func (s *Snapshot) validateCommitments() error {
	for i := range s.Commitments {
		c := &s.Commitments[i]
		switch {
		case c.Name == "":
			return fmt.Errorf("snapshot: commitment %d has no name", i)
		case i > 0 && s.Commitments[i-1].Name >= c.Name:
			return fmt.Errorf("snapshot: commitment %q is not after %q", c.Name, s.Commitments[i-1].Name)
		case c.Unit > CoverDollars:
			return fmt.Errorf("snapshot: commitment %q: unit %d is not known", c.Name, c.Unit)
		case c.Amount < 0 || c.Amount > CommitmentMax:
			return fmt.Errorf("snapshot: commitment %q: amount %d is not from 0 to %d", c.Name, c.Amount, CommitmentMax)
		case c.Unused < 0 || c.Unused > c.Amount:
			return fmt.Errorf("snapshot: commitment %q: %d unused is not from 0 to %d", c.Name, c.Unused, c.Amount)
		case c.Fee < 0 && c.Fee != NoPrice:
			return fmt.Errorf("snapshot: commitment %q: fee %v is negative", c.Name, c.Fee)
		}
	}
	return nil
}

func (s *Snapshot) validateBudgets() error {
	for i := range s.Budgets {
		b := &s.Budgets[i]
		switch {
		case i > 0 && s.Budgets[i-1].Name >= b.Name:
			return fmt.Errorf("snapshot: budget %q is not after %q", b.Name, s.Budgets[i-1].Name)
		case b.Invalid:
		case b.Window < time.Hour:
			return fmt.Errorf("snapshot: budget %q: window %v is less than an hour", b.Name, b.Window)
		case !b.HasGPUHours && !b.HasDollars:
			return fmt.Errorf("snapshot: budget %q has no quota", b.Name)
		case b.HasGPUHours && !(b.GPUHours >= 0) || b.HasDollars && b.Dollars < 0:
			return fmt.Errorf("snapshot: budget %q: quota %v, %v is negative", b.Name, b.GPUHours, b.Dollars)
		case b.OverQuotaDelay < 0 || b.PodGrace < 0:
			return fmt.Errorf("snapshot: budget %q: delay %v or grace %v is negative", b.Name, b.OverQuotaDelay, b.PodGrace)
		}
	}
	return nil
}

func within(i, n int) bool { return i >= 0 && i < n }

// isScore reports whether x is in [0, 1]. It returns false for NaN.
func isScore(x float64) bool { return x >= 0 && x <= 1 }
