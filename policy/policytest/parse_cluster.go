package policytest

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// app reads a workload and the template of its pods.
func (p *parser) app(words []string) error {
	cpu, err := strconv.ParseFloat(words[1], 64)
	if err != nil {
		return err
	}
	id := policy.WorkloadID(len(p.s.Workloads))
	name := "default/" + words[0]
	workload := policy.Workload{ID: id, Name: name, Kind: policy.KindDeployment}
	t := policy.Template{
		ID: policy.TemplateID(id), Workload: id, Name: name, Namespace: "default",
		Labels:        []policy.Label{{Key: "app", Value: words[0]}},
		Requests:      policy.Resources{CPU: int64(math.Round(cpu * 1000)), Memory: gib, Pods: 1},
		OutagePenalty: -1, MigrationTier: -1,
	}
	for _, o := range options(words[2:]) {
		if err := p.appOption(&workload, &t, o); err != nil {
			return err
		}
	}
	for _, b := range t.PDBs { // after all options: replicas may follow pdb
		if workload.Replicas > 0 {
			p.s.PDBs[b].MaxUnavailable = policy.Quantity{Set: true, N: p.s.PDBs[b].Allowed}
		}
	}
	p.s.Workloads = append(p.s.Workloads, workload)
	p.s.Templates = append(p.s.Templates, t)
	return nil
}

// appOption reads an option of an app line into its workload and template.
func (p *parser) appOption(workload *policy.Workload, t *policy.Template, o option) (err error) {
	switch o.key {
	case "kind":
		workload.Kind, err = named(o.value, policy.KindBare, policy.KindDaemonSet)
		t.DaemonSet = workload.Kind == policy.KindDaemonSet
	case "pdb":
		budget := policy.PDB{ID: policy.PDBID(len(p.s.PDBs)), Name: workload.Name}
		budget.Allowed, err = count(o.value)
		p.s.PDBs = append(p.s.PDBs, budget)
		t.PDBs = append(t.PDBs, budget.ID)
	case "memory":
		t.Requests.Memory, err = strconv.ParseInt(o.value, 10, 64)
		t.Requests.Memory *= gib
	case "priority":
		t.Priority, err = count(o.value)
	case "priority-class":
		t.PriorityClass = o.value
	case "preempts":
		t.PreemptionNever, err = true, o.check("never")
	case "safe-to-evict":
		t.SafeToEvict, t.NotSafeToEvict, err = o.value != "false", o.value == "false", o.check("", "false")
	case "critical":
		t.Critical = true
	case "replicas":
		workload.Replicas, err = count(o.value)
	case "gpus":
		t.GPUResource = "nvidia.com/gpu"
		t.Requests.GPU, err = strconv.ParseInt(o.value, 10, 64)
	default:
		return placementOption(t, o)
	}
	return err
}

// placementOption reads an option that restricts the nodes of an app's pods.
func placementOption(t *policy.Template, o option) error {
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
		spread := policy.Spread{TopologyKey: "topology.kubernetes.io/zone", MaxSkew: 1}
		if o.value == "capacity" {
			spread.TopologyKey, spread.Soft = "karpenter.sh/capacity-type", true
		}
		t.Spread = append(t.Spread, spread)
		return o.check("", "capacity")
	case "zone":
		t.NodeSelector = append(t.NodeSelector, policy.Label{Key: "topology.kubernetes.io/zone", Value: o.value})
	default:
		return fmt.Errorf("unknown option %q", o.key)
	}
	return nil
}

// node reads a node.
func (p *parser) node(words []string) error {
	name := strings.Join([]string{"aws", "region", words[2], words[3], words[4]}, "/")
	market := slices.IndexFunc(p.s.Markets, func(m policy.Market) bool { return m.Name == name })
	pool := slices.IndexFunc(p.s.Pools, func(x policy.Pool) bool { return x.Name == words[1] })
	if market < 0 || pool < 0 {
		return fmt.Errorf("there is no market %q or no pool %q", name, words[1])
	}
	m := &p.s.Markets[market]
	instanceType := &p.s.Types[m.Type]
	n := policy.Node{
		ID: policy.NodeID(len(p.s.Nodes)), Name: words[0], Pool: policy.PoolID(pool), Market: m.ID,
		Phase: policy.NodeInitialized, Launched: Epoch, Allocatable: instanceType.Allocatable,
		VolumesMax: instanceType.VolumesMax, GPUResource: instanceType.GPUResource,
		Labels: []policy.Label{
			{Key: "karpenter.sh/capacity-type", Value: m.Capacity.String()},
			{Key: "node.kubernetes.io/instance-type", Value: instanceType.Name},
			{Key: "topology.kubernetes.io/zone", Value: words[2]},
		},
	}
	for _, o := range options(words[5:]) {
		var err error
		switch o.key {
		case "launching", "registered", "draining", "deleting":
			n.Phase, err = named(o.key, policy.NodeLaunching, policy.NodeDeleting)
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
			n.Launched, err = p.ago(o.value)
			n.Initialized = n.Launched
		case "token":
			n.Token = o.value
		case "not-ready":
			n.NotReady = true
		case "label":
			key, value, _ := strings.Cut(o.value, ":")
			n.Labels = append(n.Labels, policy.Label{Key: key, Value: value})
			slices.SortFunc(n.Labels, func(a, b policy.Label) int { return strings.Compare(a.Key, b.Key) })
		case "by":
			n.ActedBy, err = named(o.value, policy.ActorUs, policy.ActorPerson)
		default:
			err = fmt.Errorf("unknown option %q", o.key)
		}
		if err != nil {
			return err
		}
	}
	p.s.Nodes = append(p.s.Nodes, n)
	return nil
}

// pod reads one or several pods of a workload, on one node or pending.
func (p *parser) pod(words []string) error {
	template := slices.IndexFunc(p.s.Templates, func(t policy.Template) bool { return t.Name == "default/"+words[0] })
	if template < 0 {
		return fmt.Errorf("there is no app %q", words[0])
	}
	node := slices.IndexFunc(p.s.Nodes, func(n policy.Node) bool { return n.Name == words[1] })
	if node < 0 && words[1] != "pending" {
		return fmt.Errorf("there is no node %q", words[1])
	}
	number, created, deletionCost := int32(1), Epoch, int32(0)
	for i, word := range words[2:] {
		var err error
		switch i {
		case 0:
			number, err = count(word)
		case 1:
			created, err = p.ago(word)
		case 2:
			deletionCost, err = count(word)
		default:
			err = fmt.Errorf("too many words")
		}
		if err != nil {
			return err
		}
	}
	for range number {
		pod := policy.Pod{
			ID: policy.PodID(len(p.s.Pods)), Template: policy.TemplateID(template), Phase: policy.PodPending,
			Node: policy.NodeID(node), Nominated: policy.None, VolumeZone: policy.None, Created: created,
			DeletionCost: deletionCost,
		}
		pod.Name = fmt.Sprintf("default/%s-%d", words[0], pod.ID)
		if node >= 0 {
			pod.Phase, pod.Bound, pod.ReadySince = policy.PodReady, Epoch, Epoch
		}
		p.s.Pods = append(p.s.Pods, pod)
	}
	return nil
}
