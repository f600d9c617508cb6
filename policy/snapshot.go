package policy

// A Snapshot is the complete known state at one time. It is built by an observer and completed with
// forecasts by a forecaster, and read-only after that. Its slices are shared with the observer's
// next snapshots and with every reader.
//
// IDs are dense indices into the tables below: Nodes[i].ID == i, and so on. Nodes and Pods are
// tables of slots: an entry whose Phase is NodeGone or PodGone is empty and must be skipped, and
// another node or pod may reuse its slot later. State that outlives a snapshot (Memory) therefore
// refers to objects by Name.
//
// A snapshot never contains information that only the simulator has, such as true hazards or future
// prices.
type Snapshot struct {
	// Now is the time of the decision. Policies have no other clock.
	Now Time

	// Types, Markets and Pools are ascending by name.
	Types   []InstanceType
	Markets []Market
	Pools   []Pool

	// Zones are the names of the zones, indexed by Market.Zone and Pod.VolumeZone.
	Zones []string

	Nodes []Node

	// Templates are the distinct pod specifications; Workloads own them.
	Templates []Template
	Workloads []Workload
	PDBs      []PDB
	Pods      []Pod

	// Budgets limit the usage of accelerators by pods, ascending by name.
	Budgets []Budget

	// Ended are the pods that ended since the previous snapshot, in the order in which they ended.
	Ended []EndedPod

	// Quotas are the remaining quotas of the provider.
	Quotas []Quota

	// Commitments are capacity paid for in advance, ascending by name. See billing.Coverage.
	Commitments []Commitment

	// Sources describe the age of each part of the snapshot.
	Sources []Source

	// Use is set by [Snapshot.EstimateUse], after the observer has run.
	Use CPUUse

	// changes is zero if the observer does not report changes; see [Changes].
	changes changesOf
}

// Dense identifiers, each an index into a table of the Snapshot. A negative value means that there
// is no such object.
type (
	// TypeID is an index into Snapshot.Types.
	TypeID int32

	// MarketID is an index into Snapshot.Markets.
	MarketID int32

	// PoolID is an index into Snapshot.Pools.
	PoolID int32

	// ZoneID is an index into Snapshot.Zones.
	ZoneID int32

	// NodeID is an index into Snapshot.Nodes.
	NodeID int32

	// TemplateID is an index into Snapshot.Templates.
	TemplateID int32

	// WorkloadID is an index into Snapshot.Workloads.
	WorkloadID int32

	// PDBID is an index into Snapshot.PDBs.
	PDBID int32

	// PodID is an index into Snapshot.Pods.
	PodID int32
)

// None is the value of an identifier that refers to no object.
const None = -1

// A Label is a key and a value of Kubernetes metadata. Lists of labels are ascending by key, with
// unique keys.
type Label struct{ Key, Value string }

// AnyValue is the value of a pool's label whose nodes take the value that their pods select. A node
// that replaces another takes the value of the replaced node.
const AnyValue = "*"

// A Source is an origin of data, with the age of the data.
type Source struct {
	// Name identifies the data: "aws-spot-prices", "nodes", "metrics"…
	Name string

	// Prices reports whether it provides Spot prices.
	Prices bool `json:",omitempty"`

	// At is the time of its newest data.
	At Time

	// Stale reports whether it has provided no data for too long. Guardrails then hold voluntary
	// changes.
	Stale bool `json:",omitempty"`
}

// A Quota is the remaining capacity of one kind that the provider allows.
type Quota struct {
	// Name is the provider's name of the quota.
	Name   string
	Region string

	// Capacity is the capacity type that the quota limits.
	Capacity CapacityType

	// Families are the instance families that count against the quota; empty means all.
	Families []string

	// VCPU is the remainder in vCPUs.
	VCPU int64
}
