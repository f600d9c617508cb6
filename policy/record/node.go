package record

import (
	"fmt"
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// A nodeRow is the content of a node's slot, starting at a step.
type nodeRow struct {
	Step         int64     `parquet:"step,delta"`
	Slot         int32     `parquet:"slot"`
	ID           int32     `parquet:"id"`
	Name         string    `parquet:"name,dict"`
	Pool         int32     `parquet:"pool"`
	Market       int32     `parquet:"market"`
	Phase        string    `parquet:"phase,dict"`
	Allocatable  resources `parquet:"allocatable"`
	VolumesMax   int32     `parquet:"volumes_max"`
	GPUResource  string    `parquet:"gpu_resource,dict"`
	Labels       string    `parquet:"labels,json,dict"`
	Taints       string    `parquet:"taints,json,dict"`
	NotReady     bool      `parquet:"not_ready"`
	ActedBy      string    `parquet:"acted_by,dict"`
	DoNotDisrupt bool      `parquet:"do_not_disrupt"`
	AtGroupMin   bool      `parquet:"at_group_min"`
	Token        string    `parquet:"token,dict"`
	Bid          int64     `parquet:"bid,decimal(6:18)"`
	Launched     int64     `parquet:"launched_at,optional,timestamp(millisecond)"`
	Registered   int64     `parquet:"registered_at,optional,timestamp(millisecond)"`
	Initialized  int64     `parquet:"initialized_at,optional,timestamp(millisecond)"`
	Deleting     int64     `parquet:"deleting_at,optional,timestamp(millisecond)"`
	NoticeAt     int64     `parquet:"notice_at,optional,timestamp(millisecond)"`
	ReclaimAt    int64     `parquet:"reclaim_at,optional,timestamp(millisecond)"`
	Recommended  int64     `parquet:"recommended_at,optional,timestamp(millisecond)"`
	Nominated    int64     `parquet:"nominated_at,optional,timestamp(millisecond)"`
}

func toNodeRow(step int64, slot int, n *policy.Node) (nodeRow, error) {
	labels, err := toJSON(n.Labels)
	if err != nil {
		return nodeRow{}, fmt.Errorf("labels of node %s: %w", n.Name, err)
	}
	taints, err := toJSON(n.Taints)
	if err != nil {
		return nodeRow{}, fmt.Errorf("taints of node %s: %w", n.Name, err)
	}
	return nodeRow{
		Step: step, Slot: int32(slot), ID: int32(n.ID), Name: n.Name,
		Pool: int32(n.Pool), Market: int32(n.Market), Phase: n.Phase.String(),
		Allocatable: toResources(n.Allocatable), VolumesMax: n.VolumesMax, GPUResource: n.GPUResource,
		Labels: labels, Taints: taints, NotReady: n.NotReady, ActedBy: n.ActedBy.String(),
		DoNotDisrupt: n.DoNotDisrupt, AtGroupMin: n.AtGroupMin, Token: n.Token, Bid: int64(n.Bid),
		Launched: int64(n.Launched), Registered: int64(n.Registered),
		Initialized: int64(n.Initialized), Deleting: int64(n.Deleting),
		NoticeAt: int64(n.NoticeAt), ReclaimAt: int64(n.ReclaimAt),
		Recommended: int64(n.Recommended), Nominated: int64(n.Nominated),
	}, nil
}

func (r *nodeRow) node() (policy.Node, error) {
	n := policy.Node{
		ID: policy.NodeID(r.ID), Name: r.Name, Pool: policy.PoolID(r.Pool), Market: policy.MarketID(r.Market),
		Allocatable: r.Allocatable.resources(), VolumesMax: r.VolumesMax, GPUResource: r.GPUResource,
		NotReady: r.NotReady, DoNotDisrupt: r.DoNotDisrupt, AtGroupMin: r.AtGroupMin, Token: r.Token, Bid: policy.Money(r.Bid),
		Launched: policy.Time(r.Launched), Registered: policy.Time(r.Registered),
		Initialized: policy.Time(r.Initialized), Deleting: policy.Time(r.Deleting),
		NoticeAt: policy.Time(r.NoticeAt), ReclaimAt: policy.Time(r.ReclaimAt),
		Recommended: policy.Time(r.Recommended), Nominated: policy.Time(r.Nominated),
	}
	var err error
	if n.Phase, err = parse(r.Phase, policy.NodeDeleting); err != nil {
		return n, err
	}
	if n.ActedBy, err = parse(r.ActedBy, policy.ActorPerson); err != nil {
		return n, err
	}
	if err := fromJSON(r.Labels, &n.Labels); err != nil {
		return n, fmt.Errorf("labels of node %s: %w", r.Name, err)
	}
	if err := fromJSON(r.Taints, &n.Taints); err != nil {
		return n, fmt.Errorf("taints of node %s: %w", r.Name, err)
	}
	return n, nil
}

func sameNode(a, b *policy.Node) bool {
	return a.ID == b.ID && a.Name == b.Name && a.Pool == b.Pool && a.Market == b.Market &&
		a.Phase == b.Phase && a.Allocatable == b.Allocatable && a.VolumesMax == b.VolumesMax &&
		a.GPUResource == b.GPUResource && a.NotReady == b.NotReady && a.ActedBy == b.ActedBy &&
		a.DoNotDisrupt == b.DoNotDisrupt && a.AtGroupMin == b.AtGroupMin && a.Token == b.Token && a.Bid == b.Bid &&
		a.Launched == b.Launched && a.Registered == b.Registered && a.Initialized == b.Initialized &&
		a.Deleting == b.Deleting && a.NoticeAt == b.NoticeAt && a.ReclaimAt == b.ReclaimAt &&
		a.Recommended == b.Recommended && a.Nominated == b.Nominated &&
		slices.Equal(a.Taints, b.Taints) && slices.Equal(a.Labels, b.Labels)
}

// keepNode returns a copy of n that does not share memory with lists that an observer may modify.
func keepNode(n *policy.Node) policy.Node {
	k := *n
	k.Labels, k.Taints = slices.Clone(n.Labels), slices.Clone(n.Taints)
	return k
}
