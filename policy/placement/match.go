package placement

import "github.com/spotter-dev/spotter/policy"

// The labels and the field that this package treats specially.
const (
	labelHost       = "kubernetes.io/hostname"
	labelZone       = "topology.kubernetes.io/zone"
	labelZoneLegacy = "failure-domain.beta.kubernetes.io/zone"
	fieldName       = "metadata.name"
)

// daemonTolerations are the tolerations that the DaemonSet controller adds to its pods.
var daemonTolerations = []policy.Toleration{
	{Key: "node.kubernetes.io/not-ready", Exists: true, Effect: policy.NoExecute},
	{Key: "node.kubernetes.io/unreachable", Exists: true, Effect: policy.NoExecute},
	{Key: "node.kubernetes.io/disk-pressure", Exists: true, Effect: policy.NoSchedule},
	{Key: "node.kubernetes.io/memory-pressure", Exists: true, Effect: policy.NoSchedule},
	{Key: "node.kubernetes.io/pid-pressure", Exists: true, Effect: policy.NoSchedule},
	{Key: "node.kubernetes.io/unschedulable", Exists: true, Effect: policy.NoSchedule},
}

// A nodeView is the part of a node that selectors match. The host name is stored apart from the
// labels, since it is the only difference between otherwise equal nodes. The host name of a node
// that is not yet launched is empty: it will have one, but no pod can select it.
type nodeView struct {
	labels     []policy.Label
	host, name string
}

func (v *nodeView) label(key string) (string, bool) {
	if key == labelHost {
		return v.host, true
	}
	return policy.FindLabel(v.labels, key)
}

// meets reports whether the node satisfies term. A term without requirements matches nothing, as in
// Kubernetes.
func (v *nodeView) meets(term *policy.NodeTerm) bool {
	if len(term.Labels) == 0 && len(term.Fields) == 0 {
		return false
	}
	for i := range term.Labels {
		value, there := v.label(term.Labels[i].Key)
		if !term.Labels[i].MetBy(value, there) {
			return false
		}
	}
	for i := range term.Fields {
		f := &term.Fields[i]
		if f.Key != fieldName || !f.MetBy(v.name, true) {
			return false
		}
	}
	return true
}

// Selected reports whether the node selector and the required affinity of t match a node with the
// given labels.
func Selected(t *policy.Template, labels []policy.Label) bool {
	v := nodeView{labels: labels}
	return v.wantedBy(t)
}

// wantedBy reports whether the node selector and the required affinity of t match the node.
func (v *nodeView) wantedBy(t *policy.Template) bool {
	for i := range t.NodeSelector {
		value, there := v.label(t.NodeSelector[i].Key)
		if !there || value != t.NodeSelector[i].Value {
			return false
		}
	}
	if len(t.Affinity) == 0 {
		return true
	}
	for i := range t.Affinity {
		if v.meets(&t.Affinity[i]) {
			return true
		}
	}
	return false
}

// namesNode reports whether the selector or the affinity of t can distinguish two nodes that differ
// only in their names.
func namesNode(t *policy.Template) bool {
	for i := range t.NodeSelector {
		if t.NodeSelector[i].Key == labelHost {
			return true
		}
	}
	for i := range t.Affinity {
		if termNamesNode(&t.Affinity[i]) {
			return true
		}
	}
	return false
}

func termNamesNode(term *policy.NodeTerm) bool {
	for i := range term.Labels {
		if term.Labels[i].Key == labelHost {
			return true
		}
	}
	return len(term.Fields) > 0
}

// portsConflict reports whether host ports in a and b conflict, so that their pods cannot share a
// node. An empty address or 0.0.0.0 means every address, and an empty protocol means TCP.
func portsConflict(a, b []policy.HostPort) bool {
	for i := range a {
		for k := range b {
			if a[i].Port <= 0 || a[i].Port != b[k].Port || protocol(a[i]) != protocol(b[k]) {
				continue
			}
			x, y := address(a[i]), address(b[k])
			if x == y || x == "0.0.0.0" || y == "0.0.0.0" {
				return true
			}
		}
	}
	return false
}

func protocol(p policy.HostPort) string {
	if p.Protocol == "" {
		return "TCP"
	}
	return p.Protocol
}

func address(p policy.HostPort) string {
	if p.IP == "" {
		return "0.0.0.0"
	}
	return p.IP
}
