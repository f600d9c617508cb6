package scenarios

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An eksGroup is a managed node group in the output of `aws eks describe-nodegroup`.
type eksGroup struct {
	metav1.TypeMeta   `json:"-"`
	metav1.ObjectMeta `json:"-"`

	Name          string            `json:"nodegroupName"`
	CapacityType  string            `json:"capacityType"`
	InstanceTypes []string          `json:"instanceTypes"`
	Labels        map[string]string `json:"labels"`
	Taints        []eksTaint        `json:"taints"`
	AMIType       string            `json:"amiType"`
	Status        string            `json:"status"`
	Scaling       struct {
		MinSize     *int32 `json:"minSize"`
		MaxSize     *int32 `json:"maxSize"`
		DesiredSize *int32 `json:"desiredSize"`
	} `json:"scalingConfig"`
	Resources struct {
		Groups []struct {
			Name string `json:"name"`
		} `json:"autoScalingGroups"`
		SecurityGroup anything `json:"remoteAccessSecurityGroup"`
	} `json:"resources"`
}

type eksTaint struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Effect string `json:"effect"`
}

// eksEffects maps the taint effects of EKS to those of Kubernetes.
var eksEffects = map[string]corev1.TaintEffect{
	"NO_SCHEDULE": corev1.TaintEffectNoSchedule, "PREFER_NO_SCHEDULE": corev1.TaintEffectPreferNoSchedule, "NO_EXECUTE": corev1.TaintEffectNoExecute,
}

// Labels of the nodes of a managed node group.
const (
	labelNodegroup    = "eks.amazonaws.com/nodegroup"
	labelEKSCapacity  = "eks.amazonaws.com/capacityType"
	capacitySpot      = "SPOT"
	capacityOnDemand  = "ON_DEMAND"
	windowsAMI        = "WINDOWS"
	capacityBlock     = "CAPACITY_BLOCK"
	eksSpotAllocation = PriceCapacityOptimized
)

// readNodegroup reads a managed node group as a pool with its name, unless the Auto Scaling group
// that it created is described too.
func (sc *Scenario) readNodegroup(doc *document, o *eksGroup, groups map[string]bool) []error {
	for _, g := range o.Resources.Groups {
		if groups[g.Name] {
			return nil
		}
	}
	r := newGroupReader(sc, doc, "managed node group", o.Name)
	r.leaveOut()
	if strings.HasPrefix(o.Status, "DELET") {
		r.fail([]string{"status"}, "%q: the group is being deleted", o.Status)
	}
	s := &o.Scaling
	r.readSizes(s.MinSize, s.MaxSize, s.DesiredSize, "scalingConfig.minSize", "scalingConfig.maxSize",
		"scalingConfig.desiredSize")
	if len(o.InstanceTypes) == 0 {
		r.fail([]string{"instanceTypes"},
			"must name the instance types: those of a launch template of your own are described by the Auto Scaling group")
	}
	r.own.Types, r.own.Prioritized, r.own.Spot = o.InstanceTypes, true, eksSpotAllocation
	switch o.CapacityType {
	case capacitySpot:
	case capacityOnDemand, "":
		r.own.OnDemandPercent = 100
	case capacityBlock:
		r.fail([]string{"capacityType"}, "capacity blocks of node groups are not simulated")
	default:
		r.fail([]string{"capacityType"}, "%q is not %s or %s", o.CapacityType, capacityOnDemand, capacitySpot)
	}
	if strings.HasPrefix(o.AMIType, windowsAMI) {
		r.fail([]string{"amiType"}, "%q: nodes of Windows are not simulated", o.AMIType)
	}
	r.warn("its subnets do not say in which zones it launches, and it may in all; describe its Auto Scaling group as well to restrict them")
	r.readManaged(o)
	return r.keep()
}

// readManaged adds the labels and taints of a managed node group to the nodes of an Auto Scaling
// group.
func (r *groupReader) readManaged(o *eksGroup) {
	labels := r.pool.Spec.Template.Labels
	maps.Copy(labels, o.Labels)
	labels[labelNodegroup] = o.Name
	if o.CapacityType != "" {
		labels[labelEKSCapacity] = o.CapacityType
	}
	for i, t := range o.Taints {
		effect, known := eksEffects[t.Effect]
		if !known {
			r.errs = append(r.errs, r.doc.problem([]string{"taints", Index(i), "effect"}, "%q is not one of %s", t.Effect,
				strings.Join(slices.Sorted(maps.Keys(eksEffects)), ", ")))
		}
		r.pool.Spec.Template.Taints = append(r.pool.Spec.Template.Taints,
			corev1.Taint{Key: t.Key, Value: t.Value, Effect: effect})
	}
}
