package scenarios

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/catalog"
	"github.com/spotter-dev/spotter/scenarios/karpenter"
)

// otherLabels are the labels of Karpenter that do not depend on the instance type and for which it
// is known which nodes have them.
var otherLabels = []string{
	karpenter.LabelCapacityType, karpenter.LabelNodePool, prefixAWS + "ec2nodeclass", corev1.LabelWindowsBuild,
	"karpenter.sh/provisioner-name",
}

// unknownLabel reports whether key is a label of Karpenter or one of its providers for which it is
// unknown which nodes have it. Labels of users are known: pools set them.
func unknownLabel(key string) bool {
	if today, auto := catalogLabel(key); auto {
		key = today
	}
	reserved := strings.HasPrefix(key, "karpenter.") || key == labelZoneID || karpenter.WellKnown(key)
	return reserved && !slices.Contains(marketLabels, key) && !slices.Contains(otherLabels, key) &&
		!catalog.IsTypeLabel(key)
}

// A nodeLabel is a reference to a node label in the specification of a pod.
type nodeLabel struct {
	key  *string
	path []string // below spec
}

// nodeLabels lists the references to node labels in t.
func nodeLabels(t *policy.Template) (list []nodeLabel) {
	add := func(key *string, path ...string) { list = append(list, nodeLabel{key, path}) }
	for i := range t.NodeSelector {
		add(&t.NodeSelector[i].Key, "nodeSelector", t.NodeSelector[i].Key)
	}
	for i := range t.Affinity {
		for k := range t.Affinity[i].Labels {
			add(&t.Affinity[i].Labels[k].Key, "affinity", "nodeAffinity")
		}
	}
	for i := range t.Preferred {
		for k := range t.Preferred[i].Term.Labels {
			add(&t.Preferred[i].Term.Labels[k].Key, "affinity", "nodeAffinity")
		}
	}
	for i := range t.PodAffinity {
		add(&t.PodAffinity[i].TopologyKey, "affinity", "podAffinity")
	}
	for i := range t.PodAntiAffinity {
		add(&t.PodAntiAffinity[i].TopologyKey, "affinity", "podAntiAffinity")
	}
	for i := range t.Spread {
		add(&t.Spread[i].TopologyKey, "topologySpreadConstraints", Index(i))
	}
	return list
}

// readNodeLabels replaces the node labels that a pod refers to by their current names, as Karpenter
// does, and fails for unknown labels; see unknownLabel.
func readNodeLabels(t *policy.Template, fail func(at []string, format string, args ...any)) {
	for _, l := range nodeLabels(t) {
		stated := *l.key
		if *l.key = karpenter.Today(stated); unknownLabel(*l.key) {
			fail(append([]string{"spec"}, l.path...), "%q: which nodes have this label is unknown", stated)
		}
	}
	slices.SortFunc(t.NodeSelector, func(a, b policy.Label) int { return cmp.Compare(a.Key, b.Key) })
}

// A LabelChoice is a user-defined label of which each node of a NodePool has one value: a value
// that its pods select, or else the first.
type LabelChoice struct {
	Key    string
	Values []string

	// Open reports that nodes may have any value that Requirements allow instead of only listed
	// ones. The first of Values then represents all values that no pod refers to.
	Open         bool
	Requirements []policy.Requirement
}

// valuesMax is the maximum number of combinations of values of a NodePool's user-defined labels.
const valuesMax = 256

// listed returns the intersection of the values of requirements with operator In; ok is false if
// there is no such requirement.
func listed(requirements []policy.Requirement) (values []string, ok bool) {
	for i := range requirements {
		if requirements[i].Op == policy.OpIn {
			values, ok = requirements[i].Values, true
		}
	}
	return meeting(requirements, values), ok
}

// meeting returns the distinct values that satisfy all requirements.
func meeting(requirements []policy.Requirement, values []string) (kept []string) {
	for _, v := range values {
		if !slices.Contains(kept, v) && !slices.ContainsFunc(requirements,
			func(r policy.Requirement) bool { return !r.MetBy(v, true) }) {
			kept = append(kept, v)
		}
	}
	return kept
}

// chooseLabels turns the NodePool's requirements on user-defined labels into labels or choices.
// Keys are in the order in which the NodePool lists them.
func (r *poolReader) chooseLabels(labels map[string]string, keys []string, required map[string][]policy.Requirement) {
	path := []string{"template", "spec", "requirements"}
	for _, key := range keys {
		values, bounded := listed(required[key])
		value, fixed := labels[key]
		absent := slices.ContainsFunc(required[key], func(q policy.Requirement) bool { return q.Op == policy.OpDoesNotExist })
		switch {
		case fixed:
			if len(meeting(required[key], []string{value})) == 0 {
				r.fail(path, "%q: the label of the template, %q, does not meet what is required of it", key, value)
			}
		case absent && !bounded:
			// No node has the label; pods that select it run on other nodes.
		case bounded && len(values) == 0, absent, !bounded && !satisfiable(required[key]):
			r.fail(path, "%q: no value meets all that is required of it", key)
		case len(values) == 1:
			labels[key] = values[0]
		default:
			r.own.choices = append(r.own.choices, LabelChoice{key, values, !bounded, required[key]})
		}
	}
}

// satisfiable reports whether a value exists that satisfies requirements without operator In.
func satisfiable(requirements []policy.Requirement) bool {
	_, ok := unnamed(requirements, nil)
	return ok
}

// choose restricts the label choices of a NodePool to the values that pods refer to. A label that
// no pod refers to becomes a fixed label with the first value of its choice, or is dropped if the
// choice is open. An open choice gets one value in addition to those in pods.
func (o *ownPool) choose(templates []policy.Template) (choices []LabelChoice, labels []policy.Label) {
	for _, c := range o.choices {
		named, values := namedValues(templates, c.Key)
		switch {
		case !named && c.Open:
			continue
		case !named:
			labels = append(labels, policy.Label{Key: c.Key, Value: c.Values[0]})
			continue
		case c.Open:
			c.Values = meeting(c.Requirements, values)
			if value, ok := unnamed(c.Requirements, values); ok {
				c.Values = slices.Insert(c.Values, 0, value)
			}
		}
		choices = append(choices, c)
	}
	return choices, labels
}

// namedValues reports whether pods refer to a node label, and returns the values that they refer
// to, ascending.
func namedValues(templates []policy.Template, key string) (named bool, values []string) {
	for i := range templates {
		t := &templates[i]
		named = named || slices.ContainsFunc(nodeLabels(t), func(l nodeLabel) bool { return *l.key == key })
		for _, l := range t.NodeSelector {
			if l.Key == key {
				values = append(values, l.Value)
			}
		}
		terms := slices.Clone(t.Affinity)
		for _, p := range t.Preferred {
			terms = append(terms, p.Term)
		}
		for _, term := range terms {
			for _, q := range term.Labels {
				if q.Key == key && q.Op != policy.OpGt && q.Op != policy.OpLt {
					values = append(values, q.Values...)
				}
			}
		}
	}
	slices.Sort(values)
	return named, slices.Compact(values)
}

// unnamed returns the integer closest to 0 that satisfies requirements and that no pod refers to;
// ok is false if no integer does. Karpenter draws such a value at random (Any in
// pkg/scheduling/requirement.go).
func unnamed(requirements []policy.Requirement, named []string) (value string, ok bool) {
	low, high, excluded := math.MinInt32, math.MaxInt32, len(named)
	for i := range requirements {
		r := &requirements[i]
		excluded += len(r.Values)
		n, err := strconv.Atoi(strings.Join(r.Values, ""))
		switch {
		case err != nil:
		case r.Op == policy.OpGt:
			low = max(low, n+1)
		case r.Op == policy.OpLt:
			high = min(high, n-1)
		}
	}
	start := min(max(0, low), high)
	for distance := range excluded + 1 {
		for _, n := range [...]int{start + distance, start - distance} {
			value = strconv.Itoa(n)
			if n >= low && n <= high && !slices.Contains(named, value) && len(meeting(requirements, []string{value})) > 0 {
				return value, true
			}
		}
	}
	return "", false
}
