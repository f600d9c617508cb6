package policytest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// app reads a workload and the template of its pods.
func (p *parser) app(w []string) error {
	cpu, err := strconv.ParseFloat(w[1], 64)
	if err != nil {
		return err
	}
	id := policy.WorkloadID(len(p.s.Workloads))
	name := "default/" + w[0]
	x := policy.Workload{ID: id, Name: name, Kind: policy.KindDeployment}
	t := policy.Template{
		ID: policy.TemplateID(id), Workload: id, Name: name, Namespace: "default", Labels: []policy.Label{{Key: "app",
			Value: w[0]}},
		Requests: policy.Resources{CPU: int64(cpu * 1000), Memory: gib, Pods: 1}, OutagePenalty: -1, MigrationTier: -1,
	}
	for _, o := range options(w[2:]) {
		if err := p.appOption(&x, &t, o); err != nil {
			return err
		}
	}
	for _, b := range t.PDBs {
		if x.Replicas > 0 {
			p.s.PDBs[b].MaxUnavailable = policy.Quantity{Set: true, N: p.s.PDBs[b].Allowed}
		}
	}
	p.s.Workloads = append(p.s.Workloads, x)
	p.s.Templates = append(p.s.Templates, t)
	return nil
}

// appOption reads what a line says of the workload x and of the pods t of it.
func (p *parser) appOption(x *policy.Workload, t *policy.Template, o option) (err error) {
	switch o.key {
	case "kind":
		for x.Kind = policy.KindBare; x.Kind < policy.KindDaemonSet && x.Kind.String() != o.value; {
			x.Kind++
		}
		t.DaemonSet = x.Kind == policy.KindDaemonSet
	case "pdb":
		b := policy.PDB{ID: policy.PDBID(len(p.s.PDBs)), Name: x.Name}
		b.Allowed, err = count(o.value)
		p.s.PDBs = append(p.s.PDBs, b)
		t.PDBs = append(t.PDBs, b.ID)
	case "memory":
		t.Requests.Memory, err = strconv.ParseInt(o.value, 10, 64)
		t.Requests.Memory *= gib
	case "priority":
		t.Priority, err = count(o.value)
	case "priority-class":
		t.PriorityClass = o.value
	case "preempts":
		t.PreemptionNever = o.value == "never"
	case "safe-to-evict":
		t.SafeToEvict, t.NotSafeToEvict = o.value != "false", o.value == "false"
	case "critical":
		t.Critical = true
	case "replicas":
		x.Replicas, err = count(o.value)
	case "gpus":
		t.GPUResource = "nvidia.com/gpu"
		t.Requests.GPU, err = strconv.ParseInt(o.value, 10, 64)
	default:
		return whereOption(t, o)
	}
	return err
}

// whereOption reads what bounds the nodes on which the pods of t may run.
func whereOption(t *policy.Template, o option) error {
	switch o.key {
	case "on":
		key, value, _ := strings.Cut(o.value, ":")
		t.NodeSelector = append(t.NodeSelector, policy.Label{Key: key, Value: value})
	case "tolerates":
		t.Tolerations = append(t.Tolerations, policy.Toleration{Key: o.value, Exists: true})
	case "near":
		t.PodAffinity = append(t.PodAffinity, policy.PodTerm{
			TopologyKey: "topology.kubernetes.io/zone",
			Selector: policy.Selector{Requirements: []policy.Requirement{{Key: "app", Op: policy.OpIn,
				Values: []string{o.value}}}},
		})
	case "port":
		port, err := count(o.value)
		t.HostPorts = append(t.HostPorts, policy.HostPort{Port: port})
		return err
	case "spread":
		x := policy.Spread{TopologyKey: "topology.kubernetes.io/zone", MaxSkew: 1}
		if o.value == "capacity" {
			x.TopologyKey, x.Soft = "karpenter.sh/capacity-type", true
		}
		t.Spread = append(t.Spread, x)
	case "zone":
		t.NodeSelector = []policy.Label{{Key: "topology.kubernetes.io/zone", Value: o.value}}
	default:
		return fmt.Errorf("unknown option %q", o.key)
	}
	return nil
}

// node reads a node.
func (p *parser) node(w []string) error {
	name := strings.Join([]string{"aws", "region", w[2], w[3], w[4]}, "/")
	market := slices.IndexFunc(p.s.Markets, func(m policy.Market) bool { return m.Name == name })
	pool := slices.IndexFunc(p.s.Pools, func(q policy.Pool) bool { return q.Name == w[1] })
	if market < 0 || pool < 0 {
		return fmt.Errorf("there is no market %q or no pool %q", name, w[1])
	}
	m := &p.s.Markets[market]
	it := &p.s.Types[m.Type]
	n := policy.Node{
		ID: policy.NodeID(len(p.s.Nodes)), Name: w[0], Pool: policy.PoolID(pool), Market: m.ID, Phase: policy.NodeInitialized,
		Allocatable: it.Allocatable, VolumesMax: it.VolumesMax, GPUResource: it.GPUResource, Launched: Epoch,
		Labels: []policy.Label{
			{Key: "karpenter.sh/capacity-type", Value: m.Capacity.String()},
			{Key: "node.kubernetes.io/instance-type", Value: it.Name},
			{Key: "topology.kubernetes.io/zone", Value: w[2]},
		},
	}
	for _, o := range options(w[5:]) {
		switch o.key {
		case "launching", "registered", "draining", "deleting":
			for n.Phase = policy.NodeLaunching; n.Phase.String() != o.key; {
				n.Phase++
			}
		case "notice":
			n.NoticeAt, n.ReclaimAt = p.s.Now, p.s.Now.Add(2*time.Minute)
		case "recommended":
			n.Recommended = p.s.Now
		case "ours":
			n.Token = "token"
		case "do-not-disrupt":
			n.DoNotDisrupt = true
		case "group-min":
			n.AtGroupMin = true
		case "age":
			at, err := p.ago(o.value)
			if err != nil {
				return err
			}
			n.Launched, n.Initialized = at, at
		case "token":
			n.Token = o.value
		case "not-ready":
			n.NotReady = true
		case "label":
			key, value, _ := strings.Cut(o.value, ":")
			n.Labels = append(n.Labels, policy.Label{Key: key, Value: value})
			slices.SortFunc(n.Labels, func(a, b policy.Label) int { return strings.Compare(a.Key, b.Key) })
		case "by":
			for n.ActedBy = policy.ActorUs; n.ActedBy < policy.ActorPerson && n.ActedBy.String() != o.value; {
				n.ActedBy++
			}
		default:
			return fmt.Errorf("unknown option %q", o.key)
		}
	}
	p.s.Nodes = append(p.s.Nodes, n)
	return nil
}

// pod reads one or several pods of a workload, on one node or pending.
func (p *parser) pod(w []string) error {
	t := slices.IndexFunc(p.s.Templates, func(t policy.Template) bool { return t.Name == "default/"+w[0] })
	if t < 0 {
		return fmt.Errorf("there is no app %q", w[0])
	}
	node := slices.IndexFunc(p.s.Nodes, func(n policy.Node) bool { return n.Name == w[1] })
	if node < 0 && w[1] != "pending" {
		return fmt.Errorf("there is no node %q", w[1])
	}
	count := 1
	if len(w) > 2 {
		var err error
		if count, err = strconv.Atoi(w[2]); err != nil {
			return err
		}
	}
	created := Epoch
	if len(w) > 3 {
		var err error
		if created, err = p.ago(w[3]); err != nil {
			return err
		}
	}
	cost := 0
	if len(w) > 4 {
		var err error
		if cost, err = strconv.Atoi(w[4]); err != nil {
			return err
		}
	}
	for range count {
		x := policy.Pod{
			ID: policy.PodID(len(p.s.Pods)), Template: policy.TemplateID(t), Phase: policy.PodPending,
			Node: policy.NodeID(node), Nominated: policy.None, VolumeZone: policy.None, Created: created, DeletionCost: int32(cost),
		}
		x.Name = fmt.Sprintf("default/%s-%d", w[0], x.ID)
		if node >= 0 {
			x.Phase, x.Bound, x.ReadySince = policy.PodReady, Epoch, Epoch
		}
		p.s.Pods = append(p.s.Pods, x)
	}
	return nil
}
