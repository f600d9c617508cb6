package placement

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// A kind is a template prepared for checks.
type kind struct {
	requests policy.Resources

	// assumedCPU and assumedMemory are added to requests for scoring.
	assumedCPU, assumedMemory int64

	extended    []Amount
	gpu         int16 // index into classTable.gpus; 0 means that no GPU is requested
	daemon      bool
	byName      bool // its selector or affinity can select single nodes by name
	tolerations []policy.Toleration

	// unready and cordoned report whether the pod tolerates the taints that Kubernetes adds to
	// nodes that are not ready and to nodes that are being drained.
	unready, cordoned bool

	// ports lists the templates whose host ports conflict with those of this template.
	ports []policy.TemplateID

	// counters are the counters that count the pods of this template.
	counters []int32

	volumes volumeNeeds

	// topology reports whether one of the lists in terms is not empty.
	topology bool
	terms    podTerms

	// State of Karpenter's scheduler. relaxation is the index of the template's first relaxation
	// plus one, or 0 before it was created; required is the same without preferences. groups count
	// pods of this template; avoids are the groups of the anti-affinity of other pods that keeps
	// this template's pods away.
	relaxation     int32
	required       int32
	groups, avoids []int32
}

// volumeNeeds are the volumes that a pod needs attached.
type volumeNeeds struct {
	zonal bool

	// own is the number of claims that each pod has for itself. claims are those that pods share.
	own    int32
	claims []claimRef
}

// any reports whether there are volumes.
func (v *volumeNeeds) any() bool { return v.own > 0 || len(v.claims) > 0 }

// podTerms are the requirements of a pod on the location of other pods.
type podTerms struct {
	spreads []spread

	// companions are the counters, one per key, of the pods that match all affinity terms; selfish
	// reports whether the pod itself matches them.
	companions []int32
	selfish    bool

	// rivals are the counters of the pods that its anti-affinity matches. repellers are those of
	// the pods whose anti-affinity matches it.
	rivals    []int32
	repellers []int32
}

// A spread is a hard topology spread constraint.
type spread struct {
	counter int32
	key     int32
	skewMax int32
	domains int32 // minDomains, at least 1
	self    int32 // 1 if the pod counts itself
}

type claimRef struct {
	id   int32 // index into occupancy.claims
	once bool
}

func (sp *Space) compile() {
	sp.table.kinds = make([]kind, len(sp.table.templates))
	for i := range sp.table.templates {
		t, k := &sp.table.templates[i], &sp.table.kinds[i]
		k.requests = t.Requests
		k.requests.Pods = 1
		k.assumedCPU, k.assumedMemory = Assumptions(t)
		if t.Requests.GPU > 0 {
			k.gpu = sp.table.gpuOf(t.GPUResource)
		}
		k.daemon, k.byName = t.DaemonSet, namesNode(t)
		k.tolerations = t.Tolerations
		if t.DaemonSet {
			k.tolerations = slices.Concat(t.Tolerations, daemonTolerations)
		}
		k.unready, k.cordoned = policy.Tolerates(k.tolerations, &unreadyTaint), policy.Tolerates(k.tolerations, &cordonTaint)
		sp.table.compilePorts(t, k)
		sp.occupancy.compileVolumes(t, k)
	}
	for i := range sp.table.templates {
		sp.topology.compileSpread(policy.TemplateID(i))
		sp.topology.compileAffinity(policy.TemplateID(i))
	}
	for i := range sp.table.templates {
		sp.topology.compileRepellers(policy.TemplateID(i))
		k := &sp.table.kinds[i]
		k.topology = len(k.terms.spreads)+len(k.terms.companions)+len(k.terms.rivals)+len(k.terms.repellers) > 0
	}
}

// The taints that Kubernetes itself adds to nodes.
var (
	unreadyTaint = policy.Taint{Key: "node.kubernetes.io/not-ready", Effect: policy.NoSchedule}
	cordonTaint  = policy.Taint{Key: "node.kubernetes.io/unschedulable", Effect: policy.NoSchedule}
)

// bears reports whether pods of k tolerate the taints that a node in state s has.
func (k *kind) bears(s state) bool {
	switch s {
	case coming, joined, failing:
		return k.unready
	case closed, leaving:
		return k.cordoned
	}
	return true
}

func (ct *classTable) compilePorts(t *policy.Template, k *kind) {
	if len(t.HostPorts) == 0 {
		return
	}
	for i := range ct.templates {
		if portsConflict(t.HostPorts, ct.templates[i].HostPorts) {
			k.ports = append(k.ports, policy.TemplateID(i))
		}
	}
}

func (oc *occupancy) compileVolumes(t *policy.Template, k *kind) {
	for i := range t.Volumes {
		v := &t.Volumes[i]
		k.volumes.zonal = k.volumes.zonal || v.Zonal
		if v.Claim == "" {
			k.volumes.own++
			continue
		}
		id := oc.claimOf(t.Namespace, v.Claim)
		at := slices.IndexFunc(k.volumes.claims, func(c claimRef) bool { return c.id == id })
		if at < 0 {
			k.volumes.claims = append(k.volumes.claims, claimRef{id: id})
			at = len(k.volumes.claims) - 1
		}
		k.volumes.claims[at].once = k.volumes.claims[at].once || v.Once
	}
}

func (tp *Topology) compileSpread(id policy.TemplateID) {
	t := &tp.table.templates[id]
	var keys []int32 // only nodes with all of these keys count
	for i := range t.Spread {
		if !t.Spread[i].Soft {
			keys = append(keys, tp.table.keyFor(t.Spread[i].TopologyKey))
		}
	}
	for i := range t.Spread {
		c := &t.Spread[i]
		if c.Soft {
			continue
		}
		members := tp.table.membersOf(func(u *policy.Template) bool { return SpreadCounts(t, c, u) })
		s := spread{
			counter: int32(len(tp.counters)), key: tp.table.keyFor(c.TopologyKey),
			skewMax: c.MaxSkew, domains: max(1, c.MinDomains),
		}
		if members.has(int32(id)) {
			s.self = 1
		}
		tp.addCounter(counter{key: s.key, live: true, members: members, among: &among{
			owner: id, keys: keys, ignoreAffinity: c.IgnoreAffinity, honorTaints: c.HonorTaints,
		}, hard: true})
		tp.spreads = append(tp.spreads, s.counter)
		tp.table.kinds[id].terms.spreads = append(tp.table.kinds[id].terms.spreads, s)
	}
}

func (tp *Topology) compileAffinity(id policy.TemplateID) {
	t, k := &tp.table.templates[id], &tp.table.kinds[id]
	var required []*policy.PodTerm
	for i := range t.PodAffinity {
		if t.PodAffinity[i].Weight == 0 {
			required = append(required, &t.PodAffinity[i])
		}
	}
	if len(required) > 0 {
		all := tp.table.membersOf(func(u *policy.Template) bool {
			return !slices.ContainsFunc(required, func(x *policy.PodTerm) bool { return !TermMatches(t, x, u) })
		})
		k.terms.selfish = all.has(int32(id))
		for _, term := range required {
			k.terms.companions = appendOnce(k.terms.companions, tp.sharedCounter(tp.table.keyFor(term.TopologyKey), all))
		}
	}
	for i := range t.PodAntiAffinity {
		term := &t.PodAntiAffinity[i]
		if term.Weight != 0 {
			continue
		}
		members := tp.table.membersOf(func(u *policy.Template) bool { return TermMatches(t, term, u) })
		if !members.empty() {
			k.terms.rivals = appendOnce(k.terms.rivals, tp.sharedCounter(tp.table.keyFor(term.TopologyKey), members))
		}
	}
}

// compileRepellers finds the templates whose anti-affinity keeps pods of template id away.
func (tp *Topology) compileRepellers(id policy.TemplateID) {
	t := &tp.table.templates[id]
	var byKey []bitset
	for u := range tp.table.templates {
		owner := &tp.table.templates[u]
		for i := range owner.PodAntiAffinity {
			term := &owner.PodAntiAffinity[i]
			if term.Weight != 0 || !TermMatches(owner, term, t) {
				continue
			}
			key := int(tp.table.keyFor(term.TopologyKey))
			for len(byKey) <= key {
				byKey = append(byKey, newBitset(len(tp.table.templates)))
			}
			byKey[key].set(int32(u))
		}
	}
	for key := range byKey {
		if !byKey[key].empty() {
			tp.table.kinds[id].terms.repellers = append(tp.table.kinds[id].terms.repellers,
				tp.sharedCounter(int32(key), byKey[key]))
		}
	}
}

// SpreadCounts reports whether constraint c of pods of t counts pods of u. A selector without
// requirements counts no pods, so that the skew is never too large
// (pkg/scheduler/framework/plugins/podtopologyspread/common.go, countPodsMatchSelector, Kubernetes
// 1.35).
func SpreadCounts(t *policy.Template, c *policy.Spread, u *policy.Template) bool {
	return u.Namespace == t.Namespace && !c.Selector.Everything && c.Selector.Matches(u.Labels)
}

// TermMatches reports whether term, which belongs to pods of owner, matches pods of t.
func TermMatches(owner *policy.Template, term *policy.PodTerm, t *policy.Template) bool {
	switch {
	case term.AllSpaces:
	case len(term.Namespaces) == 0:
		if t.Namespace != owner.Namespace {
			return false
		}
	case !slices.Contains(term.Namespaces, t.Namespace):
		return false
	}
	return term.Selector.Matches(t.Labels)
}

func (ct *classTable) membersOf(in func(*policy.Template) bool) bitset {
	b := newBitset(len(ct.templates))
	for u := range ct.templates {
		if in(&ct.templates[u]) {
			b.set(int32(u))
		}
	}
	return b
}

func appendOnce(list []int32, x int32) []int32 {
	if slices.Contains(list, x) {
		return list
	}
	return append(list, x)
}
