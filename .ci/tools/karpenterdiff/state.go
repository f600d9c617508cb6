package main

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
)

// A State is a cluster at one instant, as both sides are given it. It is kept as a
// file where the two differ. Times are in seconds before now.
type State struct {
	// Seed is what the state was drawn from, and Features are those of the table that it has.
	Seed     uint64   `json:"seed"`
	Features []string `json:"features,omitempty"`

	Pools     []Pool     `json:"pools"`
	Types     []Type     `json:"types"`
	Nodes     []Node     `json:"nodes,omitempty"`
	Workloads []Workload `json:"workloads"`
	Pods      []Pod      `json:"pods"`
	PDBs      []PDB      `json:"pdbs,omitempty"`
}

// A Pool is a NodePool.
type Pool struct {
	Name         string            `json:"name"`
	Weight       int32             `json:"weight,omitempty"`
	CPUMax       int64             `json:"cpuMax,omitempty"`    // in cores, 0 for no limit
	MemoryMax    int64             `json:"memoryMax,omitempty"` // in GiB
	NodesMax     int64             `json:"nodesMax,omitempty"`
	GPUMax       int64             `json:"gpuMax,omitempty"`
	Labels       map[string]string `json:"labels,omitempty"`
	Taints       []Taint           `json:"taints,omitempty"`
	Requirements []Requirement     `json:"requirements,omitempty"`

	// StartupTaints are on nodes until they are initialized.
	StartupTaints []Taint `json:"startupTaints,omitempty"`

	// Policy is WhenEmpty, WhenEmptyOrUnderutilized or Balanced.
	Policy           string   `json:"policy"`
	ConsolidateAfter int64    `json:"consolidateAfter"` // in seconds, -1 for Never
	TerminationGrace int64    `json:"terminationGrace,omitempty"`
	ExpireAfter      int64    `json:"expireAfter,omitempty"`
	Budgets          []Budget `json:"budgets,omitempty"`
}

// A Budget is a disruption budget of a NodePool, always in force where it has no schedule.
type Budget struct {
	Nodes    string   `json:"nodes"` // a count or a percentage
	Reasons  []string `json:"reasons,omitempty"`
	Schedule string   `json:"schedule,omitempty"` // cron, in UTC
	Duration int64    `json:"duration,omitempty"` // in seconds
}

// A Taint keeps pods away; Effect as in Kubernetes.
type Taint struct {
	Key    string `json:"key"`
	Value  string `json:"value,omitempty"`
	Effect string `json:"effect"`
}

// A Requirement is one of node labels; Op as in Kubernetes.
type Requirement struct {
	Key       string   `json:"key"`
	Op        string   `json:"op"`
	Values    []string `json:"values,omitempty"`
	MinValues int      `json:"minValues,omitempty"`
}

// A Type is an instance type.
type Type struct {
	Name      string     `json:"name"`
	Arch      string     `json:"arch"`
	Family    string     `json:"family"`
	CPU       int64      `json:"cpu"`               // in cores
	Memory    int64      `json:"memory"`            // in GiB
	Storage   int64      `json:"storage,omitempty"` // ephemeral, in GiB
	Pods      int64      `json:"pods"`
	Offerings []Offering `json:"offerings"`

	GPUs        int64  `json:"gpus,omitempty"`
	GPUResource string `json:"gpuResource,omitempty"`

	// VolumesMax is how many volumes a node can attach, 0 for no limit.
	VolumesMax int `json:"volumesMax,omitempty"`
}

// An Offering is where a type is sold.
type Offering struct {
	Zone      string `json:"zone"`
	Capacity  string `json:"capacity"` // spot, on-demand or reserved
	Price     int64  `json:"price"`    // in millionths of a dollar an hour
	Available bool   `json:"available"`

	// Reservation and Left are those of reserved capacity: its id, and how many nodes it
	// has left.
	Reservation string `json:"reservation,omitempty"`
	Left        int    `json:"left,omitempty"`
}

// A Node is a machine of a pool.
type Node struct {
	Name     string `json:"name"`
	Pool     string `json:"pool"`
	Type     string `json:"type"`
	Zone     string `json:"zone"`
	Capacity string `json:"capacity"`

	// Phase is launching, registered or initialized.
	Phase string `json:"phase"`

	Age          int64 `json:"age"`
	Initialized  int64 `json:"initialized,omitempty"` // how long ago
	LastPodEvent int64 `json:"lastPodEvent,omitempty"`
	Consolidable bool  `json:"consolidable,omitempty"` // condition Consolidatable
	Drifted      bool  `json:"drifted,omitempty"`
	DoNotDisrupt bool  `json:"doNotDisrupt,omitempty"`
	Deleting     bool  `json:"deleting,omitempty"` // marked for deletion
	Nominated    bool  `json:"nominated,omitempty"`
	NotReady     bool  `json:"notReady,omitempty"` // the kubelet fails

	// Retainted reports that an initialized node has the startup taints of its pool again.
	Retainted bool `json:"retainted,omitempty"`

	// Labels are those whose values the pool leaves open.
	Labels map[string]string `json:"labels,omitempty"`
}

// A Workload is what pods have in common: those of a ReplicaSet or of a DaemonSet.
type Workload struct {
	Name   string            `json:"name"`
	Daemon bool              `json:"daemon,omitempty"`
	Labels map[string]string `json:"labels"`
	CPU    int64             `json:"cpu"`    // in thousandths
	Memory int64             `json:"memory"` // in MiB

	Storage     int64  `json:"storage,omitempty"` // ephemeral, in MiB
	GPUs        int64  `json:"gpus,omitempty"`
	GPUResource string `json:"gpuResource,omitempty"`

	Priority    int32             `json:"priority,omitempty"`
	Selector    map[string]string `json:"selector,omitempty"`
	Required    [][]Requirement   `json:"required,omitempty"`
	Preferred   []Preference      `json:"preferred,omitempty"`
	Affinity    []Term            `json:"affinity,omitempty"`
	Anti        []Term            `json:"anti,omitempty"`
	Spread      []Spread          `json:"spread,omitempty"`
	Tolerations []Toleration      `json:"tolerations,omitempty"`
	HostPorts   []HostPort        `json:"hostPorts,omitempty"`
	Volumes     []Volume          `json:"volumes,omitempty"`
}

// A HostPort is a port of the node. An empty address is every address.
type HostPort struct {
	IP       string `json:"ip,omitempty"`
	Port     int32  `json:"port"`
	Protocol string `json:"protocol"`
}

// A Volume is a claim of each pod of a workload, or one that all of them share. Zonal volumes
// are in one zone; of a claim that is Once no two pods may run.
type Volume struct {
	Zonal bool   `json:"zonal,omitempty"`
	Claim string `json:"claim,omitempty"`
	Once  bool   `json:"once,omitempty"`
}

// A Preference is a preferred term of node affinity.
type Preference struct {
	Weight int32         `json:"weight"`
	Term   []Requirement `json:"term"`
}

// A Term is one of pod affinity; a weight makes it a preferred one.
type Term struct {
	Weight int32             `json:"weight,omitempty"`
	Key    string            `json:"key"`
	Match  map[string]string `json:"match"`
}

// A Spread is a topology spread constraint.
type Spread struct {
	Key            string            `json:"key"`
	MaxSkew        int32             `json:"maxSkew"`
	MinDomains     int32             `json:"minDomains,omitempty"`
	Soft           bool              `json:"soft,omitempty"`
	Match          map[string]string `json:"match"`
	IgnoreAffinity bool              `json:"ignoreAffinity,omitempty"`
	HonorTaints    bool              `json:"honorTaints,omitempty"`
}

// A Toleration with an empty Op means Equal.
type Toleration struct {
	Key    string `json:"key,omitempty"`
	Op     string `json:"op,omitempty"`
	Value  string `json:"value,omitempty"`
	Effect string `json:"effect,omitempty"`
}

// A Pod is of a workload. Node is empty while it is pending.
type Pod struct {
	Workload     int    `json:"workload"`
	Node         string `json:"node,omitempty"`
	Age          int64  `json:"age"`
	DeletionCost int32  `json:"deletionCost,omitempty"`
	DoNotDisrupt bool   `json:"doNotDisrupt,omitempty"`
	Terminating  bool   `json:"terminating,omitempty"`

	// VolumeZone is the zone of its zonal volumes, empty while they are bound to none.
	VolumeZone string `json:"volumeZone,omitempty"`
}

// A PDB is a PodDisruptionBudget with its status.
type PDB struct {
	Name    string            `json:"name"`
	Match   map[string]string `json:"match"`
	Allowed int32             `json:"allowed"`
}

func readState(file string) (*State, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	s := new(State)
	return s, json.Unmarshal(text, s)
}

func (s *State) write(file string) error {
	text, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}

func (s *State) typ(name string) *Type {
	for i := range s.Types {
		if s.Types[i].Name == name {
			return &s.Types[i]
		}
	}
	return nil
}

func (s *State) pool(name string) *Pool {
	for i := range s.Pools {
		if s.Pools[i].Name == name {
			return &s.Pools[i]
		}
	}
	return nil
}

// offering returns where a node was bought.
func (s *State) offering(n *Node) *Offering {
	t := s.typ(n.Type)
	for i := range t.Offerings {
		if o := &t.Offerings[i]; o.Zone == n.Zone && o.Capacity == n.Capacity {
			return o
		}
	}
	return nil
}

// The labels that states use in addition to those of Kubernetes.
const (
	labelFamily = "example.com/family" // of instance types, known to Karpenter as well-known
	labelTeam   = "example.com/team"   // of pools
	labelRack   = "example.com/rack"   // of pools
	labelType   = "node.kubernetes.io/instance-type"
	labelArch   = "kubernetes.io/arch"
)

const region = "region"

// labelsOf returns what a node of the pool and offering carries but for its host name.
func (s *State) labelsOf(p *Pool, t *Type, o *Offering) map[string]string {
	l := map[string]string{
		"karpenter.sh/nodepool": p.Name, "karpenter.sh/capacity-type": o.Capacity,
		"kubernetes.io/arch": t.Arch, "kubernetes.io/os": "linux", labelFamily: t.Family,
		"node.kubernetes.io/instance-type": t.Name, "topology.kubernetes.io/zone": o.Zone, "topology.kubernetes.io/region": region,
	}
	if o.Reservation != "" {
		l[labelReservation] = o.Reservation
	}
	for k, v := range p.Labels {
		l[k] = v
	}
	return l
}

// labelsOn returns the labels of a node but for its host name.
func (s *State) labelsOn(n *Node) map[string]string {
	l := s.labelsOf(s.pool(n.Pool), s.typ(n.Type), s.offering(n))
	maps.Copy(l, n.Labels)
	return l
}

// taintsOn returns the taints of a node, without those that Kubernetes puts there.
func (s *State) taintsOn(n *Node) []Taint {
	p := s.pool(n.Pool)
	if n.Phase == "initialized" && !n.Retainted {
		return p.Taints
	}
	return slices.Concat(p.Taints, p.StartupTaints)
}

// open returns the requirements of the pool that leave the value of a label open.
func (p *Pool) open() (list []Requirement) {
	for _, r := range p.Requirements {
		if r.Key == labelTeam || r.Key == labelRack {
			list = append(list, r)
		}
	}
	return list
}

// An Amount is of the resources that types have and pods request: CPU in thousandths, memory and
// storage in MiB.
type Amount struct {
	CPU, Memory, Storage, Pods, GPUs int64
	GPUResource                      string
}

// capacity returns what a type has.
func (t *Type) capacity() Amount {
	return Amount{CPU: t.CPU * 1000, Memory: t.Memory * 1024, Storage: t.Storage * 1024, Pods: t.Pods, GPUs: t.GPUs,
		GPUResource: t.GPUResource}
}

// allocatable returns what is left of a type for pods.
func (t *Type) allocatable() Amount {
	a := t.capacity()
	a.CPU, a.Memory = a.CPU-reservedCPU, a.Memory-reservedMemory
	return a
}

// requests returns what one pod of w requests, the pod itself not counted.
func (w *Workload) requests() Amount {
	return Amount{CPU: w.CPU, Memory: w.Memory, Storage: w.Storage, GPUs: w.GPUs, GPUResource: w.GPUResource}
}

// What the kubelet and the system keep of every type, as thousandths and MiB.
const (
	reservedCPU    = 100
	reservedMemory = 300
)
