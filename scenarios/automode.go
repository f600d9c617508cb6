package scenarios

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/kube"
	"github.com/spotter-dev/spotter/scenarios/catalog"
)

// Names and limits of EKS Auto Mode.
const (
	groupAuto    = "eks.amazonaws.com"
	classAuto    = "NodeClass"
	prefixAuto   = groupAuto + "/"
	labelCompute = prefixAuto + "compute-type"
	computeAuto  = "auto"

	// autoExpire is the lifetime of a node whose NodePool states no other. autoLifetimeMax is the
	// upper bound of any stated lifetime.
	autoExpire      = 14 * 24 * time.Hour
	autoLifetimeMax = 21 * 24 * time.Hour
	autoTermination = 24 * time.Hour

	autoDisk = 80 << 30 // bytes, where the NodeClass states no size
)

// instancePrefix is the prefix that the instance type labels of Karpenter and of EKS Auto Mode
// share.
const instancePrefix = "instance-"

// catalogLabel returns the catalog's name of a label, and whether it differs from key, the name
// that EKS Auto Mode uses.
func catalogLabel(key string) (string, bool) {
	name := kube.InstanceLabel(key)
	return name, name != key
}

// An eksNodeClass is a NodeClass of EKS Auto Mode.
type eksNodeClass struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              eksNodeClassSpec `json:"spec"`
}

type eksNodeClassSpec struct {
	EphemeralStorage eksStorage `json:"ephemeralStorage"`
}

type eksStorage struct {
	Size       *resource.Quantity `json:"size"`
	IOPS       *int64             `json:"iops"`
	Throughput *int64             `json:"throughput"`
}

// readEKSNodeClass reads a NodeClass of EKS Auto Mode.
func (sc *Scenario) readEKSNodeClass(doc *document, o *eksNodeClass) []error {
	c, errs := sc.newNodeClass(doc, classAuto, o.Name)
	c.nodes.Bottlerocket, c.nodes.RootVolume = true, autoDisk
	disk := &o.Spec.EphemeralStorage
	if q := disk.Size; q != nil {
		if c.nodes.RootVolume = q.Value(); q.Sign() <= 0 {
			errs = append(errs, doc.problem([]string{"spec", "ephemeralStorage", "size"}, "%s is not above 0", q))
		}
	}
	c.volumes = autoVolumes()
	fail := func(path []string, format string, args ...any) {
		errs = append(errs, doc.problem(append([]string{"spec"}, path...), format, args...))
	}
	stated := &ebsSpec{VolumeSize: disk.Size, IOPS: disk.IOPS, Throughput: disk.Throughput}
	c.readVolume(&c.volumes[0], stated, []string{"ephemeralStorage"}, fail)
	return errs
}

// autoVolumes returns the billed volumes of an EKS Auto Mode node whose NodeClass states no
// storage.
func autoVolumes() []catalog.Volume { return []catalog.Volume{{Type: "gp3", GiB: autoDisk >> 30}} }

// defaultAutoClass returns the NodeClass with default settings for an EKS Auto Mode NodePool whose
// NodeClass is not in the file. It warns unless the name is "default", since every cluster has a
// NodeClass of that name.
func (sc *Scenario) defaultAutoClass(doc *document, name string) *nodeClass {
	c := &nodeClass{doc: doc, kind: classAuto, name: name, used: true}
	c.nodes.Bottlerocket, c.nodes.RootVolume, c.volumes = true, autoDisk, autoVolumes()
	if name != "default" {
		sc.warn("NodeClass %s is not in the file: its nodes have a disk of 80Gi and may be in all zones", name)
	}
	return c
}

// auto reports whether a NodePool creates nodes of EKS Auto Mode.
func (o *ownPool) auto() bool { return o.ref.Kind == classAuto }

// limitLifetime applies the lifetime limits of EKS Auto Mode to a pool. Stated is whether the
// NodePool states expireAfter.
func (r *poolReader) limitLifetime(stated bool) {
	if !r.own.auto() {
		return
	}
	if !stated {
		r.pool.ExpireAfter = autoExpire
	}
	if e := r.pool.ExpireAfter; e == 0 || e > autoLifetimeMax {
		r.sc.warn("NodePool %s: EKS Auto Mode ends a node after 504h, whatever expireAfter states", r.name)
		r.pool.ExpireAfter = autoLifetimeMax
	}
	if r.own.TerminationGrace == 0 {
		r.own.TerminationGrace = autoTermination
	}
}

// autoSizes are the instance sizes that EKS Auto Mode does not launch.
var autoSizes = []string{"nano", "micro", "small"}

// autoBuys reports whether EKS Auto Mode launches an instance type.
func autoBuys(t *policy.InstanceType) bool {
	_, size, _ := strings.Cut(t.Name, ".")
	return t.VCPU > 1 && !slices.Contains(autoSizes, size)
}

// readAuto renames the EKS Auto Mode labels in pod node selectors and affinities to the names in
// the catalog. A node that must have such a label must be an EKS Auto Mode node, and a node that
// must have a karpenter.k8s.aws label must not be.
func (sc *Scenario) readAuto() {
	if !slices.ContainsFunc(sc.pools, func(p pool) bool { return p.own != nil && p.own.auto() }) {
		return
	}
	sc.warn("EKS Auto Mode: the bill is without its fee per node-hour, about 12%% of the on-demand price " +
		"(https://aws.amazon.com/eks/pricing/); nodes are not replaced when it publishes a new image")
	for i := range sc.templates {
		t := &sc.templates[i]
		selected := t.NodeSelector
		t.NodeSelector = nil
		var kinds []policy.Requirement
		for _, l := range selected {
			key, _ := catalogLabel(l.Key)
			if prefix := typeLabelOf(l.Key); prefix != "" {
				kinds = append(kinds, computeIs(prefix))
			}
			t.NodeSelector = append(t.NodeSelector, policy.Label{Key: key, Value: l.Value})
		}
		if len(kinds) > 0 && len(t.Affinity) == 0 {
			t.Affinity = []policy.NodeTerm{{}}
		}
		var required []policy.NodeTerm
		for _, term := range t.Affinity {
			term.Labels = append(term.Labels, kinds...)
			required = append(required, byKindOfNode(term)...)
		}
		t.Affinity = required
		var preferred []policy.PreferredNodeTerm
		for _, p := range t.Preferred {
			for _, p.Term = range byKindOfNode(p.Term) {
				preferred = append(preferred, p)
			}
		}
		t.Preferred = preferred
	}
}

// byKindOfNode splits a node selector term into one for EKS Auto Mode nodes and one for other
// nodes. The two kinds of node have different names for the instance type labels, whereas the
// catalog has one name. A term without such labels is returned unchanged.
func byKindOfNode(term policy.NodeTerm) (terms []policy.NodeTerm) {
	if !slices.ContainsFunc(term.Labels, func(r policy.Requirement) bool { return typeLabelOf(r.Key) != "" }) {
		return []policy.NodeTerm{term}
	}
	for _, prefix := range []string{prefixAuto, prefixAWS} {
		one := policy.NodeTerm{Fields: term.Fields}
		met := true
		for _, r := range term.Labels {
			switch of := typeLabelOf(r.Key); {
			case of == "" || of == prefix:
				r.Key, _ = catalogLabel(r.Key)
				one.Labels = append(one.Labels, r)
			case r.Op != policy.OpNotIn && r.Op != policy.OpDoesNotExist:
				met = false // requires a label that these nodes lack
			}
		}
		if one.Labels = append(one.Labels, computeIs(prefix)); met {
			terms = append(terms, one)
		}
	}
	if len(terms) == 0 { // no node satisfies the term
		terms = []policy.NodeTerm{{Labels: []policy.Requirement{computeIs(prefixAuto), computeIs(prefixAWS)}}}
	}
	return terms
}

// typeLabelOf returns the prefix of an instance type label, either of EKS Auto Mode or of
// Karpenter, or "" for another label.
func typeLabelOf(key string) string {
	for _, prefix := range []string{prefixAuto, prefixAWS} {
		if strings.HasPrefix(key, prefix+instancePrefix) {
			return prefix
		}
	}
	return ""
}

// computeIs returns the requirement for the kind of node whose instance type labels have a prefix.
func computeIs(prefix string) policy.Requirement {
	r := policy.Requirement{Key: labelCompute, Op: policy.OpIn, Values: []string{computeAuto}}
	if prefix != prefixAuto {
		r.Op = policy.OpNotIn
	}
	return r
}
