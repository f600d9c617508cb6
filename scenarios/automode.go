package scenarios

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spotter-dev/spotter/policy"
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

// instancePrefix begins the labels of Karpenter and of EKS Auto Mode on instance types.
const instancePrefix = "instance-"

// catalogLabel returns the label under which the catalog has what EKS Auto Mode calls key.
func catalogLabel(key string) (string, bool) {
	if name, auto := strings.CutPrefix(key, prefixAuto); auto && strings.HasPrefix(name, instancePrefix) {
		return prefixAWS + name, true
	}
	return key, false
}

// An eksNodeClass is a NodeClass of EKS Auto Mode. All fields of which nothing is simulated
// are named, so that an unknown one is still an error.
type eksNodeClass struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              eksNodeClassSpec `json:"spec"`
	Status            anything         `json:"status"` // subnets and reservations are read by name
}

type eksNodeClassSpec struct {
	EphemeralStorage eksStorage `json:"ephemeralStorage"`

	SubnetSelectorTerms              anything `json:"subnetSelectorTerms"`
	CapacityReservationSelectorTerms anything `json:"capacityReservationSelectorTerms"` // by status
	SecurityGroupSelectorTerms       anything `json:"securityGroupSelectorTerms"`
	PodSubnetSelectorTerms           anything `json:"podSubnetSelectorTerms"`
	PodSecurityGroupSelectorTerms    anything `json:"podSecurityGroupSelectorTerms"`
	PlacementGroupSelector           anything `json:"placementGroupSelector"`
	Role                             anything `json:"role"`
	InstanceProfile                  anything `json:"instanceProfile"`
	SNATPolicy                       anything `json:"snatPolicy"`
	NetworkPolicy                    anything `json:"networkPolicy"`
	NetworkPolicyEventLogs           anything `json:"networkPolicyEventLogs"`
	AdvancedNetworking               anything `json:"advancedNetworking"`
	AdvancedSecurity                 anything `json:"advancedSecurity"`
	CertificateBundles               anything `json:"certificateBundles"`
	Tags                             anything `json:"tags"`
}

type eksStorage struct {
	Size       *resource.Quantity `json:"size"`
	IOPS       anything           `json:"iops"`
	Throughput anything           `json:"throughput"`
	KMSKeyID   anything           `json:"kmsKeyID"`
}

// readEKSNodeClass reads a NodeClass of EKS Auto Mode.
func (sc *Scenario) readEKSNodeClass(doc *document, o *eksNodeClass) []error {
	c, errs := sc.newNodeClass(doc, classAuto, o.Name)
	c.nodes.Bottlerocket, c.nodes.RootVolume = true, autoDisk
	if q := o.Spec.EphemeralStorage.Size; q != nil {
		if c.nodes.RootVolume = q.Value(); q.Sign() <= 0 {
			errs = append(errs, doc.problem([]string{"spec", "ephemeralStorage", "size"}, "%s is not above 0", q))
		}
	}
	return errs
}

// defaultAutoClass returns the NodeClass of a NodePool of EKS Auto Mode that the file does not
// hold. Every cluster has one that is called default.
func (sc *Scenario) defaultAutoClass(doc *document, name string) *nodeClass {
	c := &nodeClass{doc: doc, kind: classAuto, name: name, used: true}
	c.nodes.Bottlerocket, c.nodes.RootVolume = true, autoDisk
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
			kinds = append(kinds, computeOf(&policy.Requirement{Key: l.Key, Op: policy.OpIn})...)
			t.NodeSelector = append(t.NodeSelector, policy.Label{Key: key, Value: l.Value})
		}
		if len(kinds) > 0 && len(t.Affinity) == 0 {
			t.Affinity = []policy.NodeTerm{{}}
		}
		for k := range t.Affinity {
			renameAuto(&t.Affinity[k])
			t.Affinity[k].Labels = append(t.Affinity[k].Labels, kinds...)
		}
		for k := range t.Preferred {
			renameAuto(&t.Preferred[k].Term)
		}
	}
}

// renameAuto gives labels of EKS Auto Mode in a term the names of the catalog.
func renameAuto(term *policy.NodeTerm) {
	for i := range term.Labels {
		term.Labels = append(term.Labels, computeOf(&term.Labels[i])...)
		term.Labels[i].Key, _ = catalogLabel(term.Labels[i].Key)
	}
}

// computeOf returns what a requirement on a label of instance types says of the kind of node
// that has it. One that nodes without the label meet says nothing.
func computeOf(r *policy.Requirement) []policy.Requirement {
	_, auto := catalogLabel(r.Key)
	switch {
	case r.Op == policy.OpNotIn, r.Op == policy.OpDoesNotExist:
		return nil
	case auto:
		return []policy.Requirement{{Key: labelCompute, Op: policy.OpIn, Values: []string{computeAuto}}}
	case strings.HasPrefix(r.Key, prefixAWS+instancePrefix):
		return []policy.Requirement{{Key: labelCompute, Op: policy.OpNotIn, Values: []string{computeAuto}}}
	}
	return nil
}
