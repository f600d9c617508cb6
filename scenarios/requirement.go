package scenarios

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
	"github.com/spotter-dev/spotter/scenarios/catalog"
	"github.com/spotter-dev/spotter/scenarios/karpenter"
)

const (
	labelZoneID = "topology.k8s.aws/zone-id"
	prefixAWS   = "karpenter.k8s.aws/"
)

// marketLabels are the labels that describe the location and type of a node, for all providers.
var marketLabels = []string{
	corev1.LabelTopologyZone, corev1.LabelTopologyRegion, corev1.LabelInstanceTypeStable, corev1.LabelArchStable, corev1.LabelOSStable,
}

// requirementOf converts a requirement to the form used by policies, with the current name of its
// label. Gte becomes Gt with a value one less, and Lte becomes Lt with a value one more, since
// values are integers.
func requirementOf(q *karpenter.Requirement) *policy.Requirement {
	out := &policy.Requirement{Key: karpenter.Today(q.Key), Values: q.Values,
		Op: map[corev1.NodeSelectorOperator]policy.Operator{
			corev1.NodeSelectorOpNotIn: policy.OpNotIn, corev1.NodeSelectorOpExists: policy.OpExists, corev1.NodeSelectorOpDoesNotExist: policy.OpDoesNotExist,
			corev1.NodeSelectorOpGt: policy.OpGt, corev1.NodeSelectorOpLt: policy.OpLt, karpenter.OpGte: policy.OpGt, karpenter.OpLte: policy.OpLt,
		}[q.Operator]}
	step := map[corev1.NodeSelectorOperator]int{karpenter.OpGte: -1, karpenter.OpLte: 1}[q.Operator]
	if step != 0 && len(q.Values) == 1 {
		if n, err := strconv.Atoi(q.Values[0]); err == nil {
			out.Values = []string{strconv.Itoa(n + step)}
		}
	}
	return out
}

// readRequirements reads the requirements on labels. User-defined labels become labels of the
// NodePool's nodes.
func (r *poolReader) readRequirements(template *v1alpha1.NodeTemplate) {
	if template.Labels == nil {
		template.Labels = map[string]string{}
	}
	var keys []string // user-defined
	required := map[string][]policy.Requirement{}
	for i := range r.spec.Template.Spec.Requirements {
		q := &r.spec.Template.Spec.Requirements[i]
		path := []string{"template", "spec", "requirements", Index(i)}
		x := requirementOf(q)
		if r.own.auto() {
			if strings.HasPrefix(x.Key, prefixAWS+instancePrefix) {
				r.fail(append(path, "key"), "%q: nodes of EKS Auto Mode have %s", q.Key,
					prefixAuto+strings.TrimPrefix(x.Key, prefixAWS))
			}
			x.Key, _ = catalogLabel(x.Key)
		}
		switch {
		case x.Key == karpenter.LabelCapacityType:
			r.own.asksReserved = slices.Contains(x.Values, karpenter.Reserved) && x.Op == policy.OpIn
		case slices.Contains(marketLabels, x.Key), catalog.IsTypeLabel(x.Key), x.Key == labelZoneID, x.Key == corev1.LabelWindowsBuild:
			r.own.Requirements = append(r.own.Requirements, *x)
		case unknownLabel(x.Key), slices.Contains(otherLabels, x.Key):
			r.fail(append(path, "key"), "%q: the catalog does not know this of instance types", q.Key)
		default:
			if required[x.Key] == nil {
				keys = append(keys, x.Key)
			}
			required[x.Key] = append(required[x.Key], *x)
		}
		r.readMinValues(q, x, path)
	}
	r.chooseLabels(template.Labels, keys, required)
	switch ref := &r.own.ref; {
	case ref.Kind == "EC2NodeClass":
		template.Labels[prefixAWS+"ec2nodeclass"] = ref.Name
	case r.own.auto():
		template.Labels[prefixAuto+"nodeclass"], template.Labels[labelCompute] = ref.Name, computeAuto
	}
}

func (r *poolReader) readMinValues(q *karpenter.Requirement, x *policy.Requirement,
	path []string) {
	if q.MinValues == nil {
		return
	}
	path = append(path, "minValues")
	switch n := *q.MinValues; {
	case n < 1 || n > 50:
		r.fail(path, "%d is not from 1 to 50", n)
	case x.Key != karpenter.LabelCapacityType && !slices.Contains(marketLabels, x.Key) && !catalog.IsTypeLabel(x.Key):
		r.fail(path, "%q: minValues of this label are not simulated", q.Key)
	default:
		r.own.MinValues = append(r.own.MinValues, MinValues{x.Key, n})
	}
}

// nameZones replaces requirements on zone ids by requirements on zone names, according to the
// subnets of the node class.
func (o *ownPool) nameZones(doc *document) []error {
	var errs []error
	var zones map[string]string
	if o.class != nil {
		zones = o.class.zones
	}
	for i := range o.Requirements {
		r := &o.Requirements[i]
		if r.Key != labelZoneID {
			continue
		}
		*r = policy.Requirement{Key: corev1.LabelTopologyZone, Op: r.Op, Values: slices.Clone(r.Values)}
		for k, id := range r.Values {
			zone, known := zones[id]
			if !known {
				errs = append(errs, doc.problem([]string{"spec", "template", "spec", "requirements"},
					"%s %q: which zone that is differs by account, and status.subnets of %s %s does not say it", labelZoneID, id, o.ref.Kind, o.ref.Name))
			}
			r.Values[k] = zone
		}
	}
	return errs
}

// buysFrom reports whether provider sells nodes of the NodePool's node class.
func (o *ownPool) buysFrom(provider string) bool {
	switch {
	case o.ref.Kind == "EC2NodeClass" || o.auto():
		return provider == policy.AWS
	case o.ref.Kind == classAKS:
		return provider == policy.Azure
	case o.ref.Kind == classGCE:
		return provider == policy.GCP
	}
	return provider != policy.Rackspace
}

// takes reports whether the NodePool may buy an offer. Unknown is the key of a required label for
// which the catalog does not determine whether the type has it; such a type is not bought.
func (o *ownPool) takes(x *v1alpha1.Offer) (ok bool, unknown string) {
	if !o.buysFrom(x.Provider) || o.gpuNone && x.Type.GPUResource == o.gpuLimited {
		return false, ""
	}
	if o.auto() && !autoBuys(x.Type) {
		return false, ""
	}
	if o.class != nil && len(o.class.zones) > 0 && !o.class.has(x.Zone) {
		return false, ""
	}
	for i := range o.Requirements {
		r := &o.Requirements[i]
		value, there := "", true
		switch {
		case r.Key == corev1.LabelTopologyZone:
			value = x.Zone
		case r.Key == corev1.LabelTopologyRegion:
			value = x.Region
		case r.Key == corev1.LabelOSStable:
			value = "linux"
		case !catalog.Knows(x.Type, r.Key):
			unknown = r.Key
			continue
		default:
			value, there = policy.FindLabel(x.Type.Labels, r.Key)
		}
		if !r.MetBy(value, there) {
			return false, ""
		}
	}
	return unknown == "", unknown
}

// Takes reports whether a NodePool of the scenario may buy nodes of a type of the catalog in a
// zone.
func (sc *Scenario) Takes(provider, region, zone, kind string) bool {
	t, known := catalog.Lookup(provider, kind)
	if !known {
		return false
	}
	o := v1alpha1.Offer{Provider: provider, Region: region, Zone: zone, Type: &t}
	return slices.ContainsFunc(sc.pools, func(p pool) bool {
		if p.own == nil {
			return false
		}
		ok, _ := p.own.takes(&o)
		return ok
	})
}

// has reports whether the node class has a subnet in a zone.
func (c *nodeClass) has(zone string) bool {
	for _, z := range c.zones {
		if z == zone {
			return true
		}
	}
	return false
}

// chooseOwn returns the indices of the offers that a NodePool may buy, ascending.
func (x *selection) chooseOwn(p *pool) ([]int, error) {
	var taken []int
	unknown := map[string]map[*policy.InstanceType]bool{}
	for i := range x.poolOffers {
		o := &x.poolOffers[i]
		ok, key := p.own.takes(o)
		if ok {
			taken = append(taken, i)
		}
		if key != "" {
			if unknown[key] == nil {
				unknown[key] = map[*policy.InstanceType]bool{}
			}
			unknown[key][o.Type] = true
		}
	}
	if k := slices.IndexFunc(taken, func(i int) bool { return p.own.uncounted(x.offers[i].t) }); k >= 0 {
		t := x.offers[taken[k]].t
		return nil, p.doc.problem([]string{"spec", "limits", p.own.gpuLimited},
			"the NodePool may buy %s, which has %s: of a pool with a limit on accelerators all are of one kind", t.Name, t.GPUResource)
	}
	regions := slices.ContainsFunc(p.own.Requirements, func(r policy.Requirement) bool {
		return r.Key == corev1.LabelTopologyRegion && r.Op == policy.OpIn && len(r.Values) > 1
	})
	if !regions {
		taken = v1alpha1.InOnePlace(x.poolOffers, taken, "", x.places)
	}
	for _, key := range slices.Sorted(maps.Keys(unknown)) {
		var types []string
		for t := range unknown[key] {
			types = append(types, t.Name)
		}
		slices.Sort(types)
		x.notes = append(x.notes,
			fmt.Sprintf("NodePool %s does not buy instance types of which the catalog does not know %s: %s", p.name, key,
				strings.Join(types, ", ")))
	}
	return taken, nil
}

// uncounted reports whether a type has accelerators of a kind other than the limited one.
func (o *ownPool) uncounted(t *policy.InstanceType) bool {
	return o.gpuLimited != "" && t.GPUResource != "" && t.GPUResource != o.gpuLimited
}
