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

// What EKS Auto Mode adds to Karpenter.
const (
	groupAuto    = "eks.amazonaws.com"
	classAuto    = "NodeClass"
	prefixAuto   = groupAuto + "/"
	labelCompute = prefixAuto + "compute-type"
	computeAuto  = "auto"

	// A node ends after autoExpire unless the NodePool states another time, and after
	// autoLifetimeMax whatever it states.
	autoExpire      = 14 * 24 * time.Hour
	autoLifetimeMax = 21 * 24 * time.Hour
	autoTermination = 24 * time.Hour

	autoDisk = 80 << 30 // of a node whose NodeClass does not state it
)

// instancePrefix is the prefix of the labels of Karpenter and of EKS Auto Mode on instance types.
const instancePrefix = "instance-"

// catalogLabel returns the label under which the catalog has what EKS Auto Mode calls key.
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

// autoVolumes are what is billed with a node of EKS Auto Mode whose NodeClass states nothing of it.
func autoVolumes() []catalog.Volume { return []catalog.Volume{{Type: "gp3", GiB: autoDisk >> 30}} }

// defaultAutoClass returns the NodeClass of a NodePool of EKS Auto Mode that the file does not
// hold. Every cluster has one that is called default.
func (sc *Scenario) defaultAutoClass(doc *document, name string) *nodeClass {
	c := &nodeClass{doc: doc, kind: classAuto, name: name, used: true}
	c.nodes.Bottlerocket, c.nodes.RootVolume, c.volumes = true, autoDisk, autoVolumes()
	if name != "default" {
		sc.warn("NodeClass %s is not in the file: its nodes have a disk of 80Gi and may be in all zones", name)
	}
	return c
}

// auto reports whether the nodes of a NodePool are of EKS Auto Mode.
func (o *ownPool) auto() bool { return o.ref.Kind == classAuto }

// limitLifetime sets when nodes of EKS Auto Mode end.
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

// autoSizes are the sizes of instances that EKS Auto Mode does not use.
var autoSizes = []string{"nano", "micro", "small"}

// autoBuys reports whether EKS Auto Mode uses an instance type.
func autoBuys(t *policy.InstanceType) bool {
	_, size, _ := strings.Cut(t.Name, ".")
	return t.VCPU > 1 && !slices.Contains(autoSizes, size)
}

// readAuto gives the labels of EKS Auto Mode that pods select the names of the catalog. A
// node that must have such a label must be of EKS Auto Mode, and one that must have a label of
// karpenter.k8s.aws must not be.
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

// byKindOfNode returns a term as nodes of EKS Auto Mode meet it, and as other nodes do: they have
// the labels of instance types under different names, and the catalog has them under one. A term
// without such labels is returned unchanged.
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
				met = false // a label that these nodes lack
			}
		}
		if one.Labels = append(one.Labels, computeIs(prefix)); met {
			terms = append(terms, one)
		}
	}
	if len(terms) == 0 { // no node meets it
		terms = []policy.NodeTerm{{Labels: []policy.Requirement{computeIs(prefixAuto), computeIs(prefixAWS)}}}
	}
	return terms
}

// typeLabelOf returns the prefix of a label of instance types: that of EKS Auto Mode or that of
// Karpenter; empty for another label.
func typeLabelOf(key string) string {
	for _, prefix := range []string{prefixAuto, prefixAWS} {
		if strings.HasPrefix(key, prefix+instancePrefix) {
			return prefix
		}
	}
	return ""
}

// computeIs requires the kind of node whose labels of instance types have a prefix.
func computeIs(prefix string) policy.Requirement {
	r := policy.Requirement{Key: labelCompute, Op: policy.OpIn, Values: []string{computeAuto}}
	if prefix != prefixAuto {
		r.Op = policy.OpNotIn
	}
	return r
}
