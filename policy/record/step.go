package record

import (
	"github.com/spotter-dev/spotter/policy"
)

// A Step is one recorded decision.
type Step struct {
	// Number is the number of the step in the recording, starting at 1. Numbers of steps that were
	// not recorded are skipped.
	Number int64

	// Meta is the metadata of the segment that contains the step. Steps share it.
	Meta *Meta

	// Snapshot and Memory are the input of the decision, and Plan is its result. They belong to the
	// caller and are not modified when the next step is read.
	Snapshot *policy.Snapshot
	Memory   policy.Memory
	Plan     policy.Plan
}

// A stepRow is one decision. The counts are the lengths of the tables, including empty slots.
type stepRow struct {
	Step      int64  `parquet:"step,delta"`
	Now       int64  `parquet:"now,timestamp(millisecond)"`
	Wake      int64  `parquet:"wake,timestamp(millisecond)"`
	Memory    string `parquet:"memory,json"`
	Types     int32  `parquet:"types"`
	Markets   int32  `parquet:"markets"`
	Pools     int32  `parquet:"pools"`
	Nodes     int32  `parquet:"nodes"`
	Templates int32  `parquet:"templates"`
	Workloads int32  `parquet:"workloads"`
	PDBs      int32  `parquet:"pdbs"`
	Pods      int32  `parquet:"pods"`
	Zones     string `parquet:"zones,json,dict"`
	Quotas    string `parquet:"quotas,json,dict"`
	Commits   string `parquet:"commitments,json,dict"`
	Sources   string `parquet:"sources,json"`
	Budgets   string `parquet:"budgets,json,dict"`
}

func toStepRow(step int64, s *policy.Snapshot, m *policy.Memory, wake policy.Time) (stepRow, error) {
	r := stepRow{
		Step: step, Now: int64(s.Now), Wake: int64(wake),
		Types: int32(len(s.Types)), Markets: int32(len(s.Markets)), Pools: int32(len(s.Pools)),
		Nodes: int32(len(s.Nodes)), Templates: int32(len(s.Templates)), Workloads: int32(len(s.Workloads)),
		PDBs: int32(len(s.PDBs)), Pods: int32(len(s.Pods)),
	}
	for _, c := range []struct {
		to *string
		v  any
	}{{&r.Memory, m}, {&r.Zones, s.Zones}, {&r.Quotas, s.Quotas}, {&r.Commits, s.Commitments}, {&r.Sources,
		s.Sources}, {&r.Budgets, s.Budgets}} {
		var err error
		if *c.to, err = toJSON(c.v); err != nil {
			return r, err
		}
	}
	return r, nil
}
