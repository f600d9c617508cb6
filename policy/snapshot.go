package policy

// A Snapshot is everything that may be known at one instant. It is built by an
// observer, has its forecasts written by a forecaster, and is from then on only
// read. Its slices are shared: with the observer's next snapshots and with
// every reader.
//
// Ids are dense indices into the tables below: Nodes[i].ID == i and so on.
// Nodes and Pods are tables of slots: an entry whose Phase is NodeGone or
// PodGone is empty and must be skipped, and its slot may be used again by
// another node or pod later. What must outlive a snapshot (Memory) therefore
// names things by Name.
//
// What the market process knows never enters: no true hazard, no future.
type Snapshot struct {
	// Now is the instant of the decision. There is no other clock.
	Now Time

	// Types, Markets and Pools are ordered by name.
	Types   []InstanceType
	Markets []Market
	Pools   []Pool

	// Zones names the zones; Market.Zone and Pod.VolumeZone index it.
	Zones []string

	Nodes []Node

	// Templates are the distinct pod specifications; Workloads own them.
	Templates []Template
	Workloads []Workload
	PDBs      []PDB
	Pods      []Pod

	// Budgets bound what pods may use, ascending by name.
	Budgets []Budget

	// Ended are the pods that went away since the snapshot before, in the
	// order in which they did.
	Ended []EndedPod

	// Quotas are what the provider still lets us buy.
	Quotas []Quota

	// Commitments are what was paid for in advance, ascending by name. See
	// billing.Coverage.
	Commitments []Commitment

	// Sources tell how old each part of the snapshot is.
	Sources []Source

	// Use is written by [Snapshot.EstimateUse], after the observer.
	Use CPUUse

	// changes is nothing where the observer does not say what changed; see [Changes].
	changes changesOf
}

// Dense identifiers, each an index into a table of the Snapshot. A negative
// value means none.
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

// None is the value of an identifier that names nothing.
const None = -1

// A Label is a key and a value of Kubernetes metadata. Lists of labels are
// ascending by key and hold each key once.
type Label struct{ Key, Value string }

// AnyValue is the value of a label of a pool whose nodes take that which their pods select. A node
// that replaces another has the value of that.
const AnyValue = "*"

// A Source is one origin of data and how fresh it was.
type Source struct {
	// Name says which part it fed: "prices", "nodes", "placement-scores"…
	Name string

	// At is the instant of the newest datum from it.
	At Time

	// Stale says that it has been silent for longer than it should be: guardrails hold what is done by choice.
	Stale bool `json:",omitempty"`
}

// A Quota is the capacity that the provider still lets us buy of one kind.
type Quota struct {
	// Name is the provider's own name of the quota.
	Name   string
	Region string

	// Capacity is the capacity type that the quota limits.
	Capacity CapacityType

	// Families are the instance families that count against it; none means all.
	Families []string

	// VCPU is what remains, in vCPUs.
	VCPU int64
}
