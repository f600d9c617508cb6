package record

import "github.com/spotter-dev/spotter/policy"

// A podRow is the content of a pod's slot, starting at a step.
type podRow struct {
	Step         int64  `parquet:"step,delta"`
	Slot         int32  `parquet:"slot"`
	ID           int32  `parquet:"id"`
	Name         string `parquet:"name,dict"`
	Template     int32  `parquet:"template"`
	Phase        string `parquet:"phase,dict"`
	Gated        bool   `parquet:"gated"`
	DoNotDisrupt bool   `parquet:"do_not_disrupt"`
	Node         int32  `parquet:"node"`
	Nominated    int32  `parquet:"nominated"`
	VolumeZone   int32  `parquet:"volume_zone"`
	Created      int64  `parquet:"created_at,optional,timestamp(millisecond)"`
	Bound        int64  `parquet:"bound_at,optional,timestamp(millisecond)"`
	ReadySince   int64  `parquet:"ready_since,optional,timestamp(millisecond)"`
	Deleting     int64  `parquet:"deleting_at,optional,timestamp(millisecond)"`
	DeletionCost int32  `parquet:"deletion_cost"`
	CostFixed    bool   `parquet:"deletion_cost_fixed"`
	UID          string `parquet:"uid,dict"`
}

func toPodRow(step int64, slot int, p *policy.Pod) podRow {
	return podRow{
		Step: step, Slot: int32(slot), ID: int32(p.ID), Name: p.Name, Template: int32(p.Template),
		Phase: p.Phase.String(), Gated: p.Gated, DoNotDisrupt: p.DoNotDisrupt,
		Node: int32(p.Node), Nominated: int32(p.Nominated), VolumeZone: int32(p.VolumeZone),
		Created: int64(p.Created), Bound: int64(p.Bound),
		ReadySince: int64(p.ReadySince), Deleting: int64(p.Deleting),
		DeletionCost: p.DeletionCost, CostFixed: p.DeletionCostFixed, UID: p.UID,
	}
}

func (r *podRow) pod() (policy.Pod, error) {
	phase, err := parse(r.Phase, policy.PodTerminating)
	return policy.Pod{
		ID: policy.PodID(r.ID), Name: r.Name, Template: policy.TemplateID(r.Template), Phase: phase,
		Gated: r.Gated, DoNotDisrupt: r.DoNotDisrupt, Node: policy.NodeID(r.Node),
		Nominated: policy.NodeID(r.Nominated), VolumeZone: policy.ZoneID(r.VolumeZone),
		Created: policy.Time(r.Created), Bound: policy.Time(r.Bound),
		ReadySince: policy.Time(r.ReadySince), Deleting: policy.Time(r.Deleting),
		DeletionCost: r.DeletionCost, DeletionCostFixed: r.CostFixed, UID: r.UID,
	}, err
}

// An endedRow is a pod that ended before a step.
type endedRow struct {
	Step     int64  `parquet:"step,delta"`
	Name     string `parquet:"name,dict"`
	Template int32  `parquet:"template"`
	Node     string `parquet:"node,dict"`
	Start    int64  `parquet:"started_at,optional,timestamp(millisecond)"`
	End      int64  `parquet:"ended_at,optional,timestamp(millisecond)"`
	Cause    string `parquet:"cause,dict"`
}

func toEndedRow(step int64, e *policy.EndedPod) endedRow {
	return endedRow{
		Step: step, Name: e.Name, Template: int32(e.Template), Node: e.Node,
		Start: int64(e.Start), End: int64(e.End), Cause: e.Cause.String(),
	}
}

func (r *endedRow) ended() (policy.EndedPod, error) {
	cause, err := parse(r.Cause, policy.EndGang)
	return policy.EndedPod{
		Name: r.Name, Template: policy.TemplateID(r.Template), Node: r.Node,
		Start: policy.Time(r.Start), End: policy.Time(r.End), Cause: cause,
	}, err
}
