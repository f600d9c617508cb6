package placement

import (
	"math/bits"
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// A classTable contains templates and classes of nodes in a form that is fast to compare. It
// computes once for each pair whether the template suits the class.
type classTable struct {
	templates []policy.Template
	zones     []string

	kinds []kind
	keys  []topologyKey
	gpus  []string

	classes  []class
	static   []Result // by class and template; see suits
	byDigest map[uint64][]int32
}

// A class represents all nodes with equal taints and equal labels, apart from the host name.
type class struct {
	labels []policy.Label
	taints []policy.Taint
	zone   policy.ZoneID

	// domain is the domain of the nodes by topology key, or -1 without the label. The entry for the
	// host name is not used, because each node is its own domain there.
	domain []int32

	daemons      policy.Resources
	daemonsKnown bool
}

// unknown marks an entry of classTable.static that has not been computed.
const unknown Result = 255

// classOf returns the class of nodes with the given labels and taints.
func (ct *classTable) classOf(labels []policy.Label, taints []policy.Taint) int32 {
	digest := digestOf(labels, taints)
	for _, c := range ct.byDigest[digest] {
		if sameLabels(ct.classes[c].labels, labels) && sameTaints(ct.classes[c].taints, taints) {
			return c
		}
	}
	c := ct.addClass(labels, taints)
	ct.byDigest[digest] = append(ct.byDigest[digest], c)
	return c
}

// gpuOf returns the index of a GPU resource in gpus, and adds it if necessary.
func (ct *classTable) gpuOf(name string) int16 {
	i := slices.Index(ct.gpus, name)
	if i < 0 {
		i = len(ct.gpus)
		ct.gpus = append(ct.gpus, name)
	}
	return int16(i)
}

// overgrown reports whether at least half of the classes belong to nodes that no longer exist, as
// happens if labels differ from node to node. At most one class for each node of s is in use, and
// one for each pair of a pool and one of its markets.
func (ct *classTable) overgrown(s *policy.Snapshot) bool {
	classes := len(s.Nodes)
	for i := range s.Pools {
		classes += len(s.Pools[i].Markets)
	}
	return len(ct.classes) > 2*classes+64
}

func (ct *classTable) addClass(labels []policy.Label, taints []policy.Taint) int32 {
	id := int32(len(ct.classes))
	c := class{labels: labels, taints: taints, zone: policy.None, domain: make([]int32, len(ct.keys))}
	zone, ok := policy.FindLabel(labels, labelZone)
	if !ok {
		zone, ok = policy.FindLabel(labels, labelZoneLegacy)
	}
	if ok {
		c.zone = policy.ZoneID(slices.Index(ct.zones, zone))
	}
	for k := range ct.keys {
		c.domain[k] = ct.keys[k].domainOf(labels)
	}
	ct.classes = append(ct.classes, c)
	for range ct.kinds {
		ct.static = append(ct.static, unknown)
	}
	return id
}

// suits returns the result of the filters that depend only on labels and taints. It is cached for
// each class, except for templates that select nodes by name.
func (ct *classTable) suits(t policy.TemplateID, c int32, host, name string) Result {
	at := int(c)*len(ct.kinds) + int(t)
	if v := ct.static[at]; v != unknown {
		return v
	}
	v := OK
	view := nodeView{ct.classes[c].labels, host, name}
	switch {
	case !policy.TolerateAll(ct.kinds[t].tolerations, ct.classes[c].taints):
		v = Tainted
	case !view.wantedBy(&ct.templates[t]):
		v = Unselected
	}
	if !ct.kinds[t].byName {
		ct.static[at] = v
	}
	return v
}

// daemonsOf returns the total requests of DaemonSet pods on a node of class c.
func (ct *classTable) daemonsOf(c int32) policy.Resources {
	if cl := &ct.classes[c]; cl.daemonsKnown {
		return cl.daemons
	}
	var sum policy.Resources
	for t := range ct.kinds {
		if ct.kinds[t].daemon && ct.suits(policy.TemplateID(t), c, "", "") == OK {
			sum = sum.Plus(ct.kinds[t].requests)
		}
	}
	ct.classes[c].daemons, ct.classes[c].daemonsKnown = sum, true
	return sum
}

// A topologyKey is a label that divides nodes into domains.
type topologyKey struct {
	name   string
	values []string // the value of each domain
}

// domainOf returns the domain of nodes with the given labels, or -1 if they lack the key.
func (k *topologyKey) domainOf(labels []policy.Label) int32 {
	value, ok := policy.FindLabel(labels, k.name)
	if !ok {
		return -1
	}
	return k.valueOf(value)
}

// valueOf returns the domain of a value. It adds a domain for a new value.
func (k *topologyKey) valueOf(value string) int32 {
	if i := slices.Index(k.values, value); i >= 0 {
		return int32(i)
	}
	k.values = append(k.values, value)
	return int32(len(k.values) - 1)
}

// keyHost is the index of the topology key kubernetes.io/hostname. Every node is a domain of its
// own there, even without the label.
const keyHost = 0

// keyFor returns the index of a topology key. It adds the key if it is new.
func (ct *classTable) keyFor(name string) int32 {
	for i := range ct.keys {
		if ct.keys[i].name == name {
			return int32(i)
		}
	}
	ct.keys = append(ct.keys, topologyKey{name: name})
	k := &ct.keys[len(ct.keys)-1]
	for c := range ct.classes {
		ct.classes[c].domain = append(ct.classes[c].domain, k.domainOf(ct.classes[c].labels))
	}
	return int32(len(ct.keys) - 1)
}

// sameLabels reports whether two lists are equal apart from host names.
func sameLabels(a, b []policy.Label) bool {
	i, k := 0, 0
	for {
		for i < len(a) && a[i].Key == labelHost {
			i++
		}
		for k < len(b) && b[k].Key == labelHost {
			k++
		}
		if i == len(a) || k == len(b) {
			return i == len(a) && k == len(b)
		}
		if a[i] != b[k] {
			return false
		}
		i++
		k++
	}
}

// sameTaints reports whether two lists are equal apart from the owners of the taints.
func sameTaints(a, b []policy.Taint) bool {
	return slices.EqualFunc(a, b, func(x, y policy.Taint) bool {
		return x.Key == y.Key && x.Value == y.Value && x.Effect == y.Effect
	})
}

// digestOf hashes the values that sameLabels and sameTaints compare.
func digestOf(labels []policy.Label, taints []policy.Taint) uint64 {
	h := uint64(14695981039346656037)
	for i := range labels {
		if labels[i].Key != labelHost {
			h = mix(mix(h, labels[i].Key), labels[i].Value)
		}
	}
	for i := range taints {
		h = mix(mix(h, taints[i].Key), taints[i].Value)
		h = (h ^ uint64(taints[i].Effect)) * fnvPrime
	}
	return h
}

const fnvPrime = 1099511628211

func mix(h uint64, s string) uint64 {
	for ; len(s) >= 8; s = s[8:] {
		word := uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
			uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
		h = bits.RotateLeft64((h^word)*fnvPrime, 23)
	}
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * fnvPrime
	}
	return (h ^ 0xff) * fnvPrime
}
