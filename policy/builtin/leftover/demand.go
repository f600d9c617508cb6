package leftover

import (
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
)

// A class is the pods of a pool that fit the same nodes: the pods of one template whose volumes are
// in one zone, or that have no volumes.
type class struct {
	pod   policy.Pod // one of the pods
	count float64

	// pending reports whether all pods of the class are pending. They may belong to another pool.
	pending bool

	// base is the lowest on-demand price of the part of a node that one pod takes, in dollars per
	// hour.
	base float64
}

// A ranker ranks the markets of the pools of one snapshot.
type ranker struct {
	cfg Config
	s   *policy.Snapshot

	// probe is a space without pods, with a hypothetical node for each market that is examined.
	probe *placement.Space

	// running and waiting are the numbers of pods, running by pool, template and zone of volumes,
	// waiting by template and zone of volumes. first is 1 + the index of one such pod, or 0
	// without such a pod.
	running, waiting []int32
	first            []int32
}

func newRanker(cfg Config, s *policy.Snapshot) *ranker {
	r := &ranker{cfg: cfg, s: s, probe: placement.New(s.Templates, s.Zones)}
	r.count()
	return r
}

// kinds returns the number of combinations of a template and a zone of volumes.
func (r *ranker) kinds() int { return len(r.s.Templates) * (len(r.s.Zones) + 1) }

// count counts the pods of each pool and the pending pods. DaemonSet pods are excluded, since they
// come with the nodes.
func (r *ranker) count() {
	s := r.s
	r.running = make([]int32, len(s.Pools)*r.kinds())
	r.waiting, r.first = make([]int32, r.kinds()), make([]int32, r.kinds())
	for i := range s.Pods {
		p := &s.Pods[i]
		if p.Phase == policy.PodGone || p.Phase == policy.PodTerminating || s.Templates[p.Template].DaemonSet {
			continue
		}
		kind := int(p.Template)*(len(s.Zones)+1) + int(p.VolumeZone) + 1
		switch {
		case p.Node >= 0:
			pool := s.Nodes[p.Node].Pool
			if pool == policy.None {
				continue
			}
			r.running[int(pool)*r.kinds()+kind]++
		case p.Gated:
			continue
		default:
			r.waiting[kind]++
		}
		if r.first[kind] == 0 {
			r.first[kind] = int32(i) + 1
		}
	}
}

// classes returns the classes of the pods that run in pool and of the pending pods.
func (r *ranker) classes(pool policy.PoolID) []class {
	var all []class
	running := r.running[int(pool)*r.kinds() : int(pool+1)*r.kinds()]
	for kind, n := range running {
		if n+r.waiting[kind] > 0 {
			all = append(all, class{pod: r.s.Pods[r.first[kind]-1], count: float64(n + r.waiting[kind]), pending: n == 0})
		}
	}
	return all
}

// spread reports whether any pod in classes must be spread over zones. If so, leaving out a zone
// could keep the pod pending.
func (r *ranker) spread(classes []class) bool {
	for i := range classes {
		t := &r.s.Templates[classes[i].pod.Template]
		for k := range t.Spread {
			if c := &t.Spread[k]; !c.Soft && c.TopologyKey == "topology.kubernetes.io/zone" {
				return true
			}
		}
	}
	return false
}

// perNode sets into to the number of pods of each class that fit an empty node of market m, or 0
// for a class that the node does not admit.
func (r *ranker) perNode(pool *policy.Pool, m *policy.Market, classes []class, into []float64) {
	s := r.s
	t := &s.Types[m.Type]
	n := policy.Node{
		Name: "probe", Pool: pool.ID, Market: m.ID, Phase: policy.NodeLaunching, Allocatable: t.Allocatable, VolumesMax: t.VolumesMax,
		GPUResource: t.GPUResource, Labels: placement.NodeLabels(s.Types, s.Zones, pool, m), Taints: pool.Taints,
	}
	r.probe.SetNode(&n)
	free := t.Allocatable.Minus(r.probe.Daemons(n.Labels, n.Taints))
	for i := range classes {
		into[i] = 0
		switch r.probe.CheckExpected(&classes[i].pod, n.ID) {
		case placement.OK, placement.Skewed, placement.Lonely, placement.Repelled, placement.RepelledByPod:
			// These depend on the placement of other pods and not on the market.
			into[i] = copies(&s.Templates[classes[i].pod.Template].Requests, &free)
		}
	}
}

// copies returns how many times requests fit into free.
func copies(requests, free *policy.Resources) float64 {
	n := int64(1 << 30)
	for _, c := range [...][2]int64{
		{requests.CPU, free.CPU}, {requests.Memory, free.Memory}, {requests.Storage, free.Storage},
		{requests.GPU, free.GPU}, {requests.Pods, free.Pods},
	} {
		if c[0] > 0 {
			n = min(n, max(0, c[1])/c[0])
		}
	}
	return float64(n)
}
