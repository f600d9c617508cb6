package history

import (
	"strings"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

func (r *reading) heart(map[string]string) sink {
	return func(at policy.Time, _ float64) { r.tick(at) }
}

func (r *reading) node(labels map[string]string) sink {
	name := labels["node"]
	return func(at policy.Time, created float64) { r.nodes.observe(name, instant(created), at) }
}

// instant converts the value of a metric in seconds since 1970.
func instant(seconds float64) policy.Time { return policy.Time(seconds * 1000) }

func (r *reading) labels(labels map[string]string) sink {
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

func (r *reading) instance(labels map[string]string) sink {
	if l := r.nodes.open[labels["node"]]; l != nil {
		l.node.Instance = LastOf(labels["provider_id"])
	}
	return nil
}

// LabelControlPlane is a label of nodes of the control plane. Its value has no meaning.
const LabelControlPlane = "node-role.kubernetes.io/control-plane"

func (r *reading) controlPlane(labels map[string]string) sink {
	r.nodes.describe(labels["node"], map[string]string{LabelControlPlane: "true"})
	return nil
}

// allocatableLabels maps the labels of a node to those of karpenter_nodes_allocatable with the same
// value.
var allocatableLabels = map[string]string{
	"karpenter.sh/nodepool": "nodepool", "karpenter.sh/capacity-type": "capacity_type",
	"node.kubernetes.io/instance-type": "instance_type",
	"topology.kubernetes.io/zone":      "zone", "topology.kubernetes.io/region": "region",
}

func (r *reading) allocatable(labels map[string]string) sink {
	found := map[string]string{}
	for key, l := range allocatableLabels {
		if v := labels[l]; v != "" && v != "N/A" {
			found[key] = v
		}
	}
	r.nodes.describe(labels["node_name"], found)
	return nil
}

// replicas returns a fold of the replicas of workloads, whose names are in a label.
func replicas(kind policy.WorkloadKind, label string) func(*reading, map[string]string) sink {
	return func(r *reading, labels map[string]string) sink {
		t := r.builder.replicas(workloadKey{labels["namespace"] + "/" + labels[label], kind}, "")
		return func(at policy.Time, n float64) { t.observe(&r.clock, at, int32(n)) }
	}
}

// others folds pods of unsupported owners as a service with as many replicas as there are pods.
// Owners with similar names are one service.
func (r *reading) others(labels map[string]string) sink {
	key, part := other(labels)
	t := r.builder.replicas(key, part)
	return func(at policy.Time, n float64) { t.observe(&r.clock, at, int32(n)) }
}

// other returns the workload of pods of an unsupported owner, and the part of it.
func other(labels map[string]string) (key workloadKey, part string) {
	name := labels["created_by_name"]
	if name == "" || name == "<none>" {
		return workloadKey{labels["namespace"] + "/pods", policy.KindBare}, ""
	}
	return workloadKey{Stem(labels["namespace"] + "/" + name), policy.KindBare}, labels["created_by_kind"] + "/" + name
}

// placements folds the nodes of pods at the start.
func (r *reading) placements(labels map[string]string) sink {
	key := r.ownerOf(labels)
	return func(_ policy.Time, n float64) {
		r.out.Placed = append(r.out.Placed, Placed{Node: labels["node"], Workload: key.name, Kind: key.kind, N: int32(n)})
	}
}

func (r *reading) owners(labels map[string]string) sink {
	name := labels["owner_name"]
	if name == "" || name == "<none>" {
		name = labels["replicaset"]
	}
	r.owned[labels["namespace"]+"/"+labels["replicaset"]] = workloadKey{labels["namespace"] + "/" + name,
		policy.KindDeployment}
	return nil
}

// rolled folds the creation times of ReplicaSets that belong to Deployments with pods.
func (r *reading) rolled(labels map[string]string) sink {
	key, ok := r.owned[labels["namespace"]+"/"+labels["replicaset"]]
	if !ok {
		return nil
	}
	w := r.workload(key)
	return func(_ policy.Time, v float64) { w.made = append(w.made, instant(v)) }
}

// ownerOf returns the workload of the pods whose creator is in the labels.
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

// An asked is the requests of the pods of an owner, and the resource name of their accelerators.
type asked struct {
	policy.Resources
	resource string
}

// requests folds the requests of pods. There is a series for each resource, and the series of an
// owner may be in any order.
func (r *reading) requests(labels map[string]string) sink {
	key, owner := r.ownerOf(labels), labels["created_by_name"]
	if r.requested[key] == nil {
		r.requested[key] = map[string]*asked{}
	}
	if r.requested[key][owner] == nil {
		r.requested[key][owner] = &asked{}
	}
	x := r.requested[key][owner]
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

// settleRequests records the folded requests in the workloads. It is called at the end of a
// response.
func (r *reading) settleRequests() {
	for key, owners := range r.requested {
		for _, owner := range sorted(owners) {
			r.workload(key).request(owners[owner].Resources, owners[owner].resource)
		}
	}
	clear(r.requested)
}

// startMost is the longest start time that is used. A pod that became ready later was waiting for
// something else, or had been ready before.
const startMost = 30 * time.Minute

func (r *reading) starts(labels map[string]string) sink {
	w := r.workload(r.ownerOf(labels))
	return func(_ policy.Time, v float64) {
		if d := time.Duration(v * float64(time.Second)); d >= 0 && d <= startMost {
			w.starts = append(w.starts, d)
		}
	}
}

func (r *reading) requestless(map[string]string) sink {
	return func(_ policy.Time, n float64) { r.noRequests = max(r.noRequests, int64(n)) }
}

// counter folds a series of the counters of a group.
func (r *reading) counter(group string, labels map[string]string) sink {
	for _, l := range sorted(labels) {
		group += "\n" + l + "=" + labels[l]
	}
	c := r.counters[group]
	fresh := c == nil
	if fresh {
		c = &counter{}
		r.counters[group] = c
	}
	return func(at policy.Time, v float64) {
		c.add(v, fresh && at <= r.seen(r.from))
		fresh = false
	}
}

// disruptedFor is the prefix of the groups of counters for a reason other than Spot interruption.
const disruptedFor = "disrupted for "

func (r *reading) disrupted(labels map[string]string) sink {
	if labels["reason"] == "spot_interrupted" {
		return r.counter("karpenter_nodeclaims_disrupted_total reclaimed", labels)
	}
	return r.counter(disruptedFor+strings.ToLower(labels["reason"]), labels)
}

// cost integrates the hourly cost of the nodes over time.
func (r *reading) cost(map[string]string) sink {
	return func(at policy.Time, hourly float64) {
		r.charge(at)
		r.hourly, r.costAt = hourly, at
	}
}

// charge adds the cost of the nodes since the last observation.
func (r *reading) charge(to policy.Time) {
	if r.costAt != 0 {
		r.out.Dollars += r.hourly * to.Sub(r.costAt).Hours()
	}
}

// ofJob returns a fold that passes each point of a metric to note with the name of the job, which
// is in a label.
func ofJob(label string,
	note func(s *jobs, name string, at policy.Time, v float64)) func(*reading, map[string]string) sink {
	return func(r *reading, labels map[string]string) sink {
		name := labels["namespace"] + "/" + labels[label]
		return func(at policy.Time, v float64) { note(&r.jobs, name, at, v) }
	}
}

// ofOpenJob is like ofJob but skips jobs that are not in s.open.
func ofOpenJob(label string, note func(j *jobRun, at policy.Time, v float64)) func(*reading, map[string]string) sink {
	return ofJob(label, func(s *jobs, name string, at policy.Time, v float64) {
		if j := s.open[name]; j != nil {
			note(j, at, v)
		}
	})
}

// jobOwners folds the CronJobs that own jobs.
func (r *reading) jobOwners(labels map[string]string) sink {
	if j := r.jobs.open[labels["namespace"]+"/"+labels["job_name"]]; j != nil {
		j.group = labels["namespace"] + "/" + labels["owner_name"]
	}
	return nil
}
