package placement

import "github.com/spotter-dev/spotter/policy"

// The labels and taints that have a meaning of their own here.
const (
	labelHost       = "kubernetes.io/hostname"
	labelZone       = "topology.kubernetes.io/zone"
	labelZoneLegacy = "failure-domain.beta.kubernetes.io/zone"
	fieldName       = "metadata.name"
)

// daemonTolerations are those that the DaemonSet controller adds to its pods.
var daemonTolerations = []policy.Toleration{
	{Key: "node.kubernetes.io/not-ready", Exists: true, Effect: policy.NoExecute},
	{Key: "node.kubernetes.io/unreachable", Exists: true, Effect: policy.NoExecute},
	{Key: "node.kubernetes.io/disk-pressure", Exists: true, Effect: policy.NoSchedule},
	{Key: "node.kubernetes.io/memory-pressure", Exists: true, Effect: policy.NoSchedule},
	{Key: "node.kubernetes.io/pid-pressure", Exists: true, Effect: policy.NoSchedule},
	{Key: "node.kubernetes.io/unschedulable", Exists: true, Effect: policy.NoSchedule},
}

// A nodeView is what selectors see of a node. Its host name is stored outside of the labels, since
// it alone differs between nodes that are otherwise alike. That of a node not yet bought is empty:
// it will have one, but no pod can name it.
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

// meets reports whether the node meets term. A term without requirements matches nothing, as in
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

// Selected reports whether node selector and required affinity of t match a node with labels.
func Selected(t *policy.Template, labels []policy.Label) bool {
	v := nodeView{labels: labels}
	return v.wantedBy(t)
}

// wantedBy reports whether node selector and required affinity of t match.
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

// namesNode reports whether t's selector or affinity can tell two nodes apart
// that differ in their names only.
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

// portsConflict reports whether pods of a and b cannot share a node. An empty
// address or 0.0.0.0 is every address, an empty protocol is TCP.
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
