package history

import (
	"strings"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// answer notes that a metric is there.
func (r *reading) answer(metric string) { r.answered[metric] = true }

func (r *reading) heart() fold {
	return func(map[string]string) func(policy.Time, float64) {
		r.answer(metricHeart)
		return func(at policy.Time, _ float64) { r.tick(at) }
	}
}

func (r *reading) node() fold {
	return func(labels map[string]string) func(policy.Time, float64) {
		name := labels["node"]
		return func(at policy.Time, created float64) { r.nodes.observe(name, instant(created), at) }
	}
}

// instant returns a time that is the value of a metric.
func instant(seconds float64) policy.Time { return policy.Time(seconds * 1000) }

func (r *reading) labels() fold {
	return func(labels map[string]string) func(policy.Time, float64) {
		r.answer("kube_node_labels")
		found := map[string]string{}
		for _, l := range nodeLabels {
			if v := labels[written(l)]; v != "" {
				found[l] = v
			}
		}
		if len(found) > 0 {
			r.labelled++
			r.nodes.describe(labels["node"], found)
		}
		return nil
	}
}

func (r *reading) instance() fold {
	return func(labels map[string]string) func(policy.Time, float64) {
		if l := r.nodes.open[labels["node"]]; l != nil {
			l.node.Instance = LastOf(labels["provider_id"])
		}
		return nil
	}
}

// LabelControlPlane is a label of nodes of the control plane, whatever its value is.
const LabelControlPlane = "node-role.kubernetes.io/control-plane"

func (r *reading) controlPlane() fold {
	return func(labels map[string]string) func(policy.Time, float64) {
		r.nodes.describe(labels["node"], map[string]string{LabelControlPlane: "true"})
		return nil
	}
}

func (r *reading) allocatable() fold {
	named := map[string]string{
		"nodepool": "karpenter.sh/nodepool", "instance_type": "node.kubernetes.io/instance-type", "zone": "topology.kubernetes.io/zone",
		"region": "topology.kubernetes.io/region", "capacity_type": "karpenter.sh/capacity-type",
	}
	return func(labels map[string]string) func(policy.Time, float64) {
		found := map[string]string{}
		for l, key := range named {
			if v := labels[l]; v != "" && v != "N/A" {
				found[key] = v
			}
		}
		r.nodes.describe(labels["node_name"], found)
		return nil
	}
}

// replicas folds the replicas of workloads whose names are in a label.
func (r *reading) replicas(kind policy.WorkloadKind, label, part string) fold {
	metric := map[string]string{"deployment": "kube_deployment_spec_replicas",
		"statefulset": "kube_statefulset_replicas"}[label]
	return func(labels map[string]string) func(policy.Time, float64) {
		r.answer(metric)
		t := r.builder.replicas(workloadKey{labels["namespace"] + "/" + labels[label], kind}, part)
		return func(at policy.Time, n float64) { t.observe(&r.clock, at, int32(n)) }
	}
}

// others folds pods that something else made than what is known here, as a service of as
// many replicas as there are pods; those of owners with names that are alike are one.
func (r *reading) others() fold {
	return func(labels map[string]string) func(policy.Time, float64) {
		key, part := other(labels)
		t := r.builder.replicas(key, part)
		return func(at policy.Time, n float64) { t.observe(&r.clock, at, int32(n)) }
	}
}

// other names the workload of pods that something else made, and the part of it.
func other(labels map[string]string) (key workloadKey, part string) {
	name := labels["created_by_name"]
	if name == "" || name == "<none>" {
		return workloadKey{labels["namespace"] + "/pods", policy.KindBare}, ""
	}
	return workloadKey{Stem(labels["namespace"] + "/" + name), policy.KindBare}, labels["created_by_kind"] + "/" + name
}

// placements folds which pods ran where at the start.
func (r *reading) placements() fold {
	return func(labels map[string]string) func(policy.Time, float64) {
		key := r.ownerOf(labels)
		return func(_ policy.Time, n float64) {
			r.out.Placed = append(r.out.Placed, Placed{Node: labels["node"], Workload: key.name, Kind: key.kind, N: int32(n)})
		}
	}
}

func (r *reading) owners() fold {
	return func(labels map[string]string) func(policy.Time, float64) {
		r.answer("kube_replicaset_owner")
		name := labels["owner_name"]
		if name == "" || name == "<none>" {
			name = labels["replicaset"]
		}
		r.owned[labels["namespace"]+"/"+labels["replicaset"]] = workloadKey{labels["namespace"] + "/" + name,
			policy.KindDeployment}
		return nil
	}
}

// rolled folds when ReplicaSets were made, those of Deployments that had pods.
func (r *reading) rolled() fold {
	return func(labels map[string]string) func(policy.Time, float64) {
		r.answer("kube_replicaset_created")
		key, ok := r.owned[labels["namespace"]+"/"+labels["replicaset"]]
		if !ok {
			return nil
		}
		w := r.workload(key)
		return func(_ policy.Time, v float64) { w.made = append(w.made, instant(v)) }
	}
}

// ownerOf returns the workload whose pods were made by what labels name.
func (r *reading) ownerOf(labels map[string]string) workloadKey {
	name := labels["namespace"] + "/" + labels["created_by_name"]
	switch labels["created_by_kind"] {
	case "ReplicaSet":
		if key, ok := r.owned[name]; ok {
			return key
		}
		if i := strings.LastIndexByte(name, '-'); i > 0 {
			name = name[:i]
		}
		return workloadKey{name, policy.KindDeployment}
	case "StatefulSet":
		return workloadKey{name, policy.KindStatefulSet}
	case "Job":
		if j := r.jobs.open[name]; j != nil {
			return workloadKey{j.group, policy.KindJob}
		}
		return workloadKey{Stem(name), policy.KindJob}
	}
	key, _ := other(labels)
	return key
}

// requests folds what pods requested: a series for each resource, those of one owner
// together or apart.
func (r *reading) requests() fold {
	type asked struct {
		policy.Resources
		resource string
	}
	all := map[workloadKey]map[string]*asked{}
	first := true
	return func(labels map[string]string) func(policy.Time, float64) {
		r.answer("kube_pod_container_resource_requests")
		key, owner := r.ownerOf(labels), labels["created_by_name"]
		if first {
			first = false
			r.after = append(r.after, func() {
				for key, owners := range all {
					for _, owner := range sorted(owners) {
						r.workload(key).request(owners[owner].Resources, owners[owner].resource)
					}
				}
			})
		}
		if all[key] == nil {
			all[key] = map[string]*asked{}
		}
		if all[key][owner] == nil {
			all[key][owner] = &asked{}
		}
		x := all[key][owner]
		return func(_ policy.Time, v float64) {
			switch name := labels["resource"]; name {
			case "cpu":
				x.CPU = int64(v*1000 + 0.5)
			case "memory":
				x.Memory = int64(v)
			case "ephemeral_storage":
				x.Storage = int64(v)
			default:
				if accelerators[name] != "" {
					x.GPU, x.resource = int64(v), accelerators[name]
				}
			}
		}
	}
}

// startMost is the longest start that is taken for one: a pod that became ready later had
// something else to wait for, or had been ready before.
const startMost = 30 * time.Minute

func (r *reading) starts() fold {
	return func(labels map[string]string) func(policy.Time, float64) {
		r.answer("kube_pod_status_ready_time")
		w := r.workload(r.ownerOf(labels))
		return func(_ policy.Time, v float64) {
			if d := time.Duration(v * float64(time.Second)); d >= 0 && d <= startMost {
				w.starts = append(w.starts, d)
			}
		}
	}
}

func (r *reading) requestless() fold {
	return func(map[string]string) func(policy.Time, float64) {
		return func(_ policy.Time, n float64) { r.noRequests = max(r.noRequests, int64(n)) }
	}
}

// counting folds the series of counters. group tells them apart by their labels.
func (r *reading) counting(metric string, group func(labels map[string]string) string) fold {
	return func(labels map[string]string) func(policy.Time, float64) {
		r.answer(metric)
		var key strings.Builder
		key.WriteString(group(labels))
		for _, l := range sorted(labels) {
			key.WriteString("\n" + l + "=" + labels[l])
		}
		c := r.counters[key.String()]
		fresh := c == nil
		if fresh {
			c = &counter{}
			r.counters[key.String()] = c
		}
		return func(at policy.Time, v float64) {
			c.add(v, fresh && at <= r.seen(r.from))
			fresh = false
		}
	}
}

// disruptedFor is the prefix of counters of a reason other than Spot interruption.
const disruptedFor = "disrupted for "

func (r *reading) disrupted() fold {
	return r.counting("karpenter_nodeclaims_disrupted_total", func(labels map[string]string) string {
		if labels["reason"] == "spot_interrupted" {
			return "karpenter_nodeclaims_disrupted_total reclaimed"
		}
		return disruptedFor + strings.ToLower(labels["reason"])
	})
}

// counted folds a counter that is a count by itself.
func counted(metric string) func(*reading) fold {
	return func(r *reading) fold {
		return r.counting(metric, func(map[string]string) string { return metric })
	}
}

// cost adds up what nodes cost by the hour, each value for as long as it held.
func (r *reading) cost() fold {
	return func(map[string]string) func(policy.Time, float64) {
		r.answer("karpenter_nodepools_cost_total")
		return func(at policy.Time, hourly float64) {
			r.charge(at)
			r.hourly, r.costAt = hourly, at
		}
	}
}

// charge adds up what nodes cost since they were last looked at.
func (r *reading) charge(to policy.Time) {
	if r.costAt != 0 {
		r.out.Dollars += r.hourly * to.Sub(r.costAt).Hours()
	}
}
