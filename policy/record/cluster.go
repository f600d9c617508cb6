package record

import (
	"fmt"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// A specRow is an entry of the table types or templates, starting at a step. The entries are few
// and seldom change, so each is stored as a whole in one JSON column, next to the fields that
// queries need.
type specRow struct {
	Step int64  `parquet:"step,delta"`
	Slot int32  `parquet:"slot"`
	Name string `parquet:"name,dict"`
	Spec string `parquet:"spec,json,dict"`
}

func toSpecRow(step int64, slot int, name string, spec any) (specRow, error) {
	s, err := toJSON(spec)
	if err != nil {
		return specRow{}, fmt.Errorf("%s: %w", name, err)
	}
	return specRow{Step: step, Slot: int32(slot), Name: name, Spec: s}, nil
}

func readSpec[E any](r *specRow) (E, error) {
	var e E
	if err := fromJSON(r.Spec, &e); err != nil {
		return e, fmt.Errorf("%s: %w", r.Name, err)
	}
	return e, nil
}

// A poolRow is a pool, starting at a step. PoolSpec contains the whole pool except the fields that
// change often, which have their own columns.
type poolRow struct {
	Step     int64     `parquet:"step,delta"`
	Slot     int32     `parquet:"slot"`
	Name     string    `parquet:"name,dict"`
	Used     resources `parquet:"used"`
	Steered  bool      `parquet:"steered"`
	Share    float64   `parquet:"steered_share"`
	Exact    *bool     `parquet:"steered_exact,optional"`
	Fallback *bool     `parquet:"steered_fallback,optional"`
	SteerAt  int64     `parquet:"steered_at,optional,timestamp(millisecond)"`
	Refused  int64     `parquet:"refused_at,optional,timestamp(millisecond)"`
	PoolSpec string    `parquet:"spec,json,dict"`
}

func toPoolRow(step int64, slot int, p *policy.Pool) (poolRow, error) {
	spec := *p
	spec.Used, spec.Steer, spec.Refused = policy.Resources{}, policy.SteerState{}, 0
	s, err := toJSON(&spec)
	if err != nil {
		return poolRow{}, fmt.Errorf("pool %s: %w", p.Name, err)
	}
	return poolRow{
		Step: step, Slot: int32(slot), Name: p.Name, Used: toResources(p.Used),
		Steered: p.Steer.Set, Share: p.Steer.Share, Exact: &p.Steer.Exact, Fallback: &p.Steer.Fallback,
		SteerAt: int64(p.Steer.Since),
		Refused: int64(p.Refused), PoolSpec: s,
	}, nil
}

func (r *poolRow) pool() (policy.Pool, error) {
	var p policy.Pool
	if err := fromJSON(r.PoolSpec, &p); err != nil {
		return p, fmt.Errorf("pool %s: %w", r.Name, err)
	}
	p.Used = r.Used.resources()
	p.Steer = policy.SteerState{Set: r.Steered, Share: r.Share, Since: policy.Time(r.SteerAt)}
	if p.Steer.Exact = p.Share.Exact; r.Exact != nil { // earlier versions did not record it
		p.Steer.Exact = *r.Exact
	}
	if p.Steer.Fallback = p.OnDemandFallback; r.Fallback != nil {
		p.Steer.Fallback = *r.Fallback
	}
	p.Refused = policy.Time(r.Refused)
	return p, nil
}

// keepPool returns a copy of p that does not share memory with lists that an observer may modify.
func keepPool(p *policy.Pool) policy.Pool {
	k := *p
	k.Markets, k.Budgets = slices.Clone(p.Markets), slices.Clone(p.Budgets)
	k.Labels, k.Taints, k.Actions = slices.Clone(p.Labels), slices.Clone(p.Taints), slices.Clone(p.Actions)
	return k
}

// A workloadRow is a workload, starting at a step.
type workloadRow struct {
	Step     int64  `parquet:"step,delta"`
	Slot     int32  `parquet:"slot"`
	ID       int32  `parquet:"id"`
	Name     string `parquet:"name,dict"`
	Kind     string `parquet:"kind,dict"`
	Replicas int32  `parquet:"replicas"`
	Ready    int32  `parquet:"ready"`
	Deadline int64  `parquet:"deadline,optional,timestamp(millisecond)"`
	Work     int64  `parquet:"work_ns"`
	Stopped  bool   `parquet:"suspended"`
	PausedBy string `parquet:"paused_by,dict"`
	UID      string `parquet:"uid,dict"`
}

func toWorkloadRow(step int64, slot int, w *policy.Workload) workloadRow {
	return workloadRow{
		Step: step, Slot: int32(slot), ID: int32(w.ID), Name: w.Name, Kind: w.Kind.String(),
		Replicas: w.Replicas, Ready: w.Ready, Deadline: int64(w.Deadline), Work: int64(w.Work), Stopped: w.Suspended, PausedBy: w.PausedBy, UID: w.UID,
	}
}

func (r *workloadRow) workload() (policy.Workload, error) {
	kind, err := parse(r.Kind, policy.KindDaemonSet)
	return policy.Workload{
		ID: policy.WorkloadID(r.ID), Name: r.Name, Kind: kind, Replicas: r.Replicas, Ready: r.Ready,
		Deadline: policy.Time(r.Deadline), Work: time.Duration(r.Work), Suspended: r.Stopped, PausedBy: r.PausedBy, UID: r.UID,
	}, err
}

// A pdbRow is a PodDisruptionBudget, starting at a step. Spec contains everything except the
// status, which has its own columns.
type pdbRow struct {
	Step     int64  `parquet:"step,delta"`
	Slot     int32  `parquet:"slot"`
	Name     string `parquet:"name,dict"`
	Allowed  int32  `parquet:"disruptions_allowed"`
	Healthy  int32  `parquet:"current_healthy"`
	Desired  int32  `parquet:"desired_healthy"`
	Expected int32  `parquet:"expected_pods"`
	Spec     string `parquet:"spec,json,dict"`
}

func toPDBRow(step int64, slot int, p *policy.PDB) (pdbRow, error) {
	spec := *p
	spec.Allowed, spec.Healthy, spec.Desired, spec.Expected = 0, 0, 0, 0
	s, err := toJSON(&spec)
	if err != nil {
		return pdbRow{}, fmt.Errorf("disruption budget %s: %w", p.Name, err)
	}
	return pdbRow{
		Step: step, Slot: int32(slot), Name: p.Name, Allowed: p.Allowed, Healthy: p.Healthy,
		Desired: p.Desired, Expected: p.Expected, Spec: s,
	}, nil
}

func (r *pdbRow) pdb() (policy.PDB, error) {
	var p policy.PDB
	if err := fromJSON(r.Spec, &p); err != nil {
		return p, fmt.Errorf("disruption budget %s: %w", r.Name, err)
	}
	p.Allowed, p.Healthy, p.Desired, p.Expected = r.Allowed, r.Healthy, r.Desired, r.Expected
	return p, nil
}
