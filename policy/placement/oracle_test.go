package placement_test

import (
	"math"
	"slices"
	"strconv"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
)

// A plain cluster answers the questions of a Space slowly, by going through
// all nodes and pods each time, as kube-scheduler's documentation tells it.
type plain struct {
	templates []policy.Template
	zones     []string
	nodes     []policy.Node
	pods      []policy.Pod // those bound have a Node
}

const hostKey = "kubernetes.io/hostname"

func (c *plain) label(n *policy.Node, key string) (string, bool) {
	if v, ok := n.Label(key); ok || key != hostKey {
		return v, ok
	}
	return n.Name, true
}

func (c *plain) on(n policy.NodeID) (pods []*policy.Pod) {
	for i := range c.pods {
		if c.pods[i].Node == n {
			pods = append(pods, &c.pods[i])
		}
	}
	return pods
}

func (c *plain) check(p *policy.Pod, id policy.NodeID) placement.Result {
	n, t := &c.nodes[id], &c.templates[p.Template]
	switch {
	case n.Phase == policy.NodeGone || n.Phase == policy.NodeDeleting:
		return placement.NoNode
	case n.Phase == policy.NodeLaunching:
		return placement.NotReady
	case t.DaemonSet:
	case n.Phase == policy.NodeRegistered || n.Phase == policy.NodeInitialized && n.NotReady:
		return placement.NotReady
	case n.Phase == policy.NodeDraining:
		return placement.Unschedulable
	}
	for _, filter := range []func(*policy.Template, *policy.Pod, *policy.Node) placement.Result{
		c.taints, c.wanted, c.ports, c.room, c.volumes, c.spread, c.affinity,
	} {
		if v := filter(t, p, n); v != placement.OK {
			return v
		}
	}
	return placement.OK
}

func (c *plain) tolerated(t *policy.Template, taints []policy.Taint) bool {
	list := slices.Clone(t.Tolerations)
	if t.DaemonSet {
		for _, k := range []string{"disk-pressure", "memory-pressure", "pid-pressure", "unschedulable"} {
			list = append(list, policy.Toleration{Key: "node.kubernetes.io/" + k, Exists: true, Effect: policy.NoSchedule})
		}
		for _, k := range []string{"not-ready", "unreachable"} {
			list = append(list, policy.Toleration{Key: "node.kubernetes.io/" + k, Exists: true, Effect: policy.NoExecute})
		}
	}
	for _, taint := range taints {
		ok := taint.Effect == policy.PreferNoSchedule
		for _, x := range list {
			ok = ok || (x.Effect == policy.EffectAny || x.Effect == taint.Effect) &&
				(x.Key == "" || x.Key == taint.Key) && (x.Exists || x.Value == taint.Value)
		}
		if !ok {
			return false
		}
	}
	return true
}

func (c *plain) taints(t *policy.Template, _ *policy.Pod, n *policy.Node) placement.Result {
	if c.tolerated(t, n.Taints) {
		return placement.OK
	}
	return placement.Tainted
}

func (c *plain) meets(r policy.Requirement, value string, there bool) bool {
	in := there && slices.Contains(r.Values, value)
	switch r.Op {
	case policy.OpIn:
		return in
	case policy.OpNotIn:
		return !in
	case policy.OpExists:
		return there
	case policy.OpDoesNotExist:
		return !there
	}
	a, err1 := strconv.Atoi(value)
	b, err2 := strconv.Atoi(r.Values[0])
	return there && err1 == nil && err2 == nil && (r.Op == policy.OpGt && a > b || r.Op == policy.OpLt && a < b)
}

func (c *plain) likes(t *policy.Template, n *policy.Node) bool {
	for _, l := range t.NodeSelector {
		if v, ok := c.label(n, l.Key); !ok || v != l.Value {
			return false
		}
	}
	any := len(t.Affinity) == 0
	for _, term := range t.Affinity {
		all := len(term.Labels)+len(term.Fields) > 0
		for _, r := range term.Labels {
			v, ok := c.label(n, r.Key)
			all = all && c.meets(r, v, ok)
		}
		for _, r := range term.Fields {
			all = all && c.meets(r, n.Name, true)
		}
		any = any || all
	}
	return any
}

func (c *plain) wanted(t *policy.Template, _ *policy.Pod, n *policy.Node) placement.Result {
	if c.likes(t, n) {
		return placement.OK
	}
	return placement.Unselected
}

func (c *plain) ports(t *policy.Template, _ *policy.Pod, n *policy.Node) placement.Result {
	for _, q := range c.on(n.ID) {
		for _, a := range t.HostPorts {
			for _, b := range c.templates[q.Template].HostPorts {
				all := a.IP == "" || a.IP == "0.0.0.0" || b.IP == "" || b.IP == "0.0.0.0"
				proto := func(s string) string {
					if s == "" {
						return "TCP"
					}
					return s
				}
				if a.Port == b.Port && proto(a.Protocol) == proto(b.Protocol) && (all || a.IP == b.IP) {
					return placement.PortTaken
				}
			}
		}
	}
	return placement.OK
}

func (c *plain) free(n *policy.Node) policy.Resources {
	free := n.Allocatable
	for _, q := range c.on(n.ID) {
		free = free.Minus(c.templates[q.Template].Requests)
	}
	return free
}

func (c *plain) room(t *policy.Template, _ *policy.Pod, n *policy.Node) placement.Result {
	free, r := c.free(n), t.Requests
	switch {
	case free.Pods < 1:
		return placement.TooManyPods
	case r.CPU > 0 && r.CPU > free.CPU:
		return placement.NoCPU
	case r.Memory > 0 && r.Memory > free.Memory:
		return placement.NoMemory
	case r.Storage > 0 && r.Storage > free.Storage:
		return placement.NoStorage
	case r.GPU > 0 && (t.GPUResource != n.GPUResource || r.GPU > free.GPU):
		return placement.NoGPU
	}
	return placement.OK
}

func (c *plain) attached(list []*policy.Pod) int32 {
	own, shared := int32(0), map[string]bool{}
	for _, q := range list {
		t := &c.templates[q.Template]
		for _, v := range t.Volumes {
			if v.Claim == "" {
				own++
			} else {
				shared[t.Namespace+"/"+v.Claim] = true
			}
		}
	}
	return own + int32(len(shared))
}

func (c *plain) volumes(t *policy.Template, p *policy.Pod, n *policy.Node) placement.Result {
	zonal := false
	for _, v := range t.Volumes {
		zonal = zonal || v.Zonal
		for i := range c.pods {
			u := &c.templates[c.pods[i].Template]
			if c.pods[i].Node < 0 || !v.Once || v.Claim == "" || u.Namespace != t.Namespace {
				continue
			}
			if slices.ContainsFunc(u.Volumes, func(x policy.Volume) bool { return x.Claim == v.Claim }) {
				return placement.ClaimTaken
			}
		}
	}
	before := c.attached(c.on(n.ID))
	after := c.attached(append(c.on(n.ID), p))
	if after > before && n.VolumesMax > 0 && after > n.VolumesMax {
		return placement.VolumesFull
	}
	if zone, _ := n.Label("topology.kubernetes.io/zone"); zonal && p.VolumeZone >= 0 && zone != c.zones[p.VolumeZone] {
		return placement.OtherZone
	}
	return placement.OK
}

func (c *plain) selects(s policy.Selector, t *policy.Template) bool {
	all := s.Everything || len(s.Requirements) > 0
	for _, r := range s.Requirements {
		v, ok := policy.FindLabel(t.Labels, r.Key)
		all = all && (s.Everything || c.meets(r, v, ok))
	}
	return all
}

// counts reports whether a constraint of t counts what is on n.
func (c *plain) counts(t *policy.Template, s policy.Spread, n *policy.Node) bool {
	for _, x := range t.Spread {
		if _, ok := c.label(n, x.TopologyKey); !ok && !x.Soft {
			return false
		}
	}
	taints := slices.Clone(n.Taints)
	if n.Phase <= policy.NodeRegistered || n.Phase == policy.NodeInitialized && n.NotReady {
		taints = append(taints, policy.Taint{Key: "node.kubernetes.io/not-ready", Effect: policy.NoSchedule})
	}
	if n.Phase == policy.NodeDraining || n.Phase == policy.NodeDeleting {
		taints = append(taints, policy.Taint{Key: "node.kubernetes.io/unschedulable", Effect: policy.NoSchedule})
	}
	return (s.IgnoreAffinity || c.likes(t, n)) && (!s.HonorTaints || c.tolerated(t, taints))
}

func (c *plain) spread(t *policy.Template, _ *policy.Pod, n *policy.Node) placement.Result {
	for _, s := range t.Spread {
		here, ok := c.label(n, s.TopologyKey)
		if s.Soft {
			continue
		}
		if !ok {
			return placement.Skewed
		}
		// What is bound to a node on its way is reserved there: it counts, but
		// the node makes no domain yet.
		count, exists := map[string]int32{}, map[string]bool{}
		for i := range c.nodes {
			m := &c.nodes[i]
			if !m.Live() || !c.counts(t, s, m) {
				continue
			}
			domain, _ := c.label(m, s.TopologyKey)
			exists[domain] = exists[domain] || m.Phase >= policy.NodeRegistered
			for _, q := range c.on(m.ID) {
				u := &c.templates[q.Template]
				if q.Phase != policy.PodTerminating && u.Namespace == t.Namespace && !s.Selector.Everything && c.selects(s.Selector, u) {
					count[domain]++
				}
			}
		}
		least := int32(math.MaxInt32)
		domains := int32(0)
		for domain, there := range exists {
			if there {
				least = min(least, count[domain])
				domains++
			}
		}
		if domains < max(1, s.MinDomains) {
			least = 0
		}
		skew := count[here] - least
		if !s.Selector.Everything && c.selects(s.Selector, t) {
			skew++
		}
		if skew > s.MaxSkew {
			return placement.Skewed
		}
	}
	return placement.OK
}

func (c *plain) matches(owner *policy.Template, term policy.PodTerm, u *policy.Template) bool {
	spaces := term.Namespaces
	if len(spaces) == 0 {
		spaces = []string{owner.Namespace}
	}
	return (term.AllSpaces || slices.Contains(spaces, u.Namespace)) && c.selects(term.Selector, u)
}

// near reports whether a pod that u accepts runs in n's domain of key.
func (c *plain) near(n *policy.Node, key string, accept func(u *policy.Template) bool) bool {
	here, ok := c.label(n, key)
	for i := range c.pods {
		q := &c.pods[i]
		if !ok || q.Node < 0 || !accept(&c.templates[q.Template]) {
			continue
		}
		if there, known := c.label(&c.nodes[q.Node], key); known && there == here {
			return true
		}
	}
	return false
}

func (c *plain) affinity(t *policy.Template, _ *policy.Pod, n *policy.Node) placement.Result {
	all := func(u *policy.Template) bool {
		for _, term := range t.PodAffinity {
			if term.Weight == 0 && !c.matches(t, term, u) {
				return false
			}
		}
		return true
	}
	lonely, anywhere := false, false
	for _, term := range t.PodAffinity {
		if term.Weight != 0 {
			continue
		}
		if _, ok := c.label(n, term.TopologyKey); !ok {
			return placement.Lonely
		}
		lonely = lonely || !c.near(n, term.TopologyKey, all)
		for i := range c.nodes {
			anywhere = anywhere || c.nodes[i].Live() && c.near(&c.nodes[i], term.TopologyKey, all)
		}
	}
	if lonely && (anywhere || !all(t)) {
		return placement.Lonely
	}
	for _, term := range t.PodAntiAffinity {
		if term.Weight == 0 && c.near(n, term.TopologyKey, func(u *policy.Template) bool { return c.matches(t, term, u) }) {
			return placement.Repelled
		}
	}
	for i := range c.templates {
		for _, term := range c.templates[i].PodAntiAffinity {
			only := func(u *policy.Template) bool { return u.ID == policy.TemplateID(i) }
			if term.Weight == 0 && c.matches(&c.templates[i], term, t) && c.near(n, term.TopologyKey, only) {
				return placement.RepelledByPod
			}
		}
	}
	return placement.OK
}
