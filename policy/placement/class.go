package placement

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// A class is what nodes with equal labels (the host name apart) and taints
// have in common.
type class struct {
	labels []policy.Label
	taints []policy.Taint
	zone   policy.ZoneID

	// domain is the node's domain by topology key, -1 without the label. The
	// entry of the host name is not used: there each node is its own domain.
	domain []int32

	daemons      policy.Resources
	daemonsKnown bool
}

// unknown marks an entry of Space.static that was not yet computed.
const unknown Result = 255

// A listKey identifies lists of labels and taints by where they lie. Lists are
// shared between nodes and never written, so that lists in one place are equal.
type listKey struct {
	labels          *policy.Label
	taints          *policy.Taint
	labelsN, taintN int
}

func keyOf(labels []policy.Label, taints []policy.Taint) listKey {
	k := listKey{labelsN: len(labels), taintN: len(taints)}
	if len(labels) > 0 {
		k.labels = &labels[0]
	}
	if len(taints) > 0 {
		k.taints = &taints[0]
	}
	return k
}

// classOf returns the class of nodes with these labels and taints.
func (sp *Space) classOf(labels []policy.Label, taints []policy.Taint) int32 {
	list := keyOf(labels, taints)
	if c, ok := sp.byList[list]; ok {
		return c
	}
	digest := digestOf(labels, taints)
	for _, c := range sp.byDigest[digest] {
		if sameLabels(sp.classes[c].labels, labels) && sameTaints(sp.classes[c].taints, taints) {
			sp.byList[list] = c
			return c
		}
	}
	c := sp.addClass(labels, taints)
	sp.byDigest[digest] = append(sp.byDigest[digest], c)
	sp.byList[list] = c
	return c
}

func (sp *Space) addClass(labels []policy.Label, taints []policy.Taint) int32 {
	id := int32(len(sp.classes))
	c := class{labels: labels, taints: taints, zone: policy.None, domain: make([]int32, len(sp.keys))}
	zone, ok := policy.FindLabel(labels, labelZone)
	if !ok {
		zone, ok = policy.FindLabel(labels, labelZoneLegacy)
	}
	if ok {
		c.zone = policy.ZoneID(slices.Index(sp.zones, zone))
	}
	for k := range sp.keys {
		c.domain[k] = sp.keys[k].domainOf(labels)
	}
	sp.classes = append(sp.classes, c)
	for range sp.kinds {
		sp.static = append(sp.static, unknown)
	}
	return id
}

// suits returns the result of the filters that look at labels and taints
// only. It is remembered for each class, except for templates that ask for
// nodes by name.
func (sp *Space) suits(t policy.TemplateID, c int32, host, name string) Result {
	at := int(c)*len(sp.kinds) + int(t)
	if v := sp.static[at]; v != unknown {
		return v
	}
	v := OK
	view := nodeView{sp.classes[c].labels, host, name}
	switch {
	case blockedBy(sp.classes[c].taints, sp.kinds[t].tolerations):
		v = Tainted
	case !view.wantedBy(&sp.templates[t]):
		v = Unselected
	}
	if !sp.kinds[t].byName {
		sp.static[at] = v
	}
	return v
}

// daemonsOf returns what DaemonSet pods request on a node of class c.
func (sp *Space) daemonsOf(c int32) policy.Resources {
	if cl := &sp.classes[c]; cl.daemonsKnown {
		return cl.daemons
	}
	var sum policy.Resources
	for t := range sp.kinds {
		if sp.kinds[t].daemon && sp.suits(policy.TemplateID(t), c, "", "") == OK {
			sum = sum.Plus(sp.kinds[t].requests)
		}
	}
	sp.classes[c].daemons, sp.classes[c].daemonsKnown = sum, true
	return sum
}

// A topologyKey is a label that divides nodes into domains.
type topologyKey struct {
	name   string
	values []string // the value of each domain
}

// domainOf returns the domain of nodes with these labels, -1 without the key.
func (k *topologyKey) domainOf(labels []policy.Label) int32 {
	value, ok := policy.FindLabel(labels, k.name)
	if !ok {
		return -1
	}
	return k.valueOf(value)
}

// valueOf returns the domain of a value, a new one where it was not seen before.
func (k *topologyKey) valueOf(value string) int32 {
	if i := slices.Index(k.values, value); i >= 0 {
		return int32(i)
	}
	k.values = append(k.values, value)
	return int32(len(k.values) - 1)
}

// keyHost is the topology key kubernetes.io/hostname: every node, labelled so
// or not, is a domain of its own.
const keyHost = 0

// keyFor returns the index of a topology key.
func (sp *Space) keyFor(name string) int32 {
	for i := range sp.keys {
		if sp.keys[i].name == name {
			return int32(i)
		}
	}
	sp.keys = append(sp.keys, topologyKey{name: name})
	k := &sp.keys[len(sp.keys)-1]
	for c := range sp.classes {
		sp.classes[c].domain = append(sp.classes[c].domain, k.domainOf(sp.classes[c].labels))
	}
	return int32(len(sp.keys) - 1)
}

// sameLabels compares two lists, host names left out.
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

// sameTaints compares two lists; who put a taint there does not matter.
func sameTaints(a, b []policy.Taint) bool {
	return slices.EqualFunc(a, b, func(x, y policy.Taint) bool {
		return x.Key == y.Key && x.Value == y.Value && x.Effect == y.Effect
	})
}

// digestOf hashes what sameLabels and sameTaints compare (FNV-1a, 64 bits).
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
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * fnvPrime
	}
	return (h ^ 0xff) * fnvPrime
}
