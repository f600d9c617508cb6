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

// instant returns a time that is the value of a metric.
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

// LabelControlPlane is a label of nodes of the control plane, whatever its value is.
const LabelControlPlane = "node-role.kubernetes.io/control-plane"

func (r *reading) controlPlane(labels map[string]string) sink {
	r.nodes.describe(labels["node"], map[string]string{LabelControlPlane: "true"})
	return nil
}

// allocatableLabels are the labels of karpenter_nodes_allocatable that describe a node, by what they are
// on the node itself.
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

// replicas folds the replicas of workloads whose names are in a label.
func replicas(kind policy.WorkloadKind, label string) func(*reading, map[string]string) sink {
	return func(r *reading, labels map[string]string) sink {
		t := r.builder.replicas(workloadKey{labels["namespace"] + "/" + labels[label], kind}, "")
		return func(at policy.Time, n float64) { t.observe(&r.clock, at, int32(n)) }
	}
}

// others folds pods that something else made than what is known here, as a service of as
// many replicas as there are pods; those of owners with names that are alike are one.
func (r *reading) others(labels map[string]string) sink {
	key, part := other(labels)
	t := r.builder.replicas(key, part)
	return func(at policy.Time, n float64) { t.observe(&r.clock, at, int32(n)) }
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

// rolled folds when ReplicaSets were made, those of Deployments that had pods.
func (r *reading) rolled(labels map[string]string) sink {
	key, ok := r.owned[labels["namespace"]+"/"+labels["replicaset"]]
	if !ok {
		return nil
	}
	w := r.workload(key)
	return func(_ policy.Time, v float64) { w.made = append(w.made, instant(v)) }
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

// An asked is what the pods of an owner request, and the resource of their GPUs.
type asked struct {
	policy.Resources
	resource string
}

// requests folds what pods requested: a series for each resource, those of one owner
// together or apart.
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

// settleRequests gives workloads what their pods request, once the answer is read.
func (r *reading) settleRequests() {
	for key, owners := range r.requested {
		for _, owner := range sorted(owners) {
			r.workload(key).request(owners[owner].Resources, owners[owner].resource)
		}
	}
	clear(r.requested)
}

// startMost is the longest start that is taken for one: a pod that became ready later had
// something else to wait for, or had been ready before.
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

// disruptedFor is the prefix of counters of a reason other than Spot interruption.
const disruptedFor = "disrupted for "

func (r *reading) disrupted(labels map[string]string) sink {
	if labels["reason"] == "spot_interrupted" {
		return r.counter("karpenter_nodeclaims_disrupted_total reclaimed", labels)
	}
	return r.counter(disruptedFor+strings.ToLower(labels["reason"]), labels)
}

// cost adds up what nodes cost by the hour, each value for as long as it held.
func (r *reading) cost(map[string]string) sink {
	return func(at policy.Time, hourly float64) {
		r.charge(at)
		r.hourly, r.costAt = hourly, at
	}
}

// charge adds up what nodes cost since they were last looked at.
func (r *reading) charge(to policy.Time) {
	if r.costAt != 0 {
		r.out.Dollars += r.hourly * to.Sub(r.costAt).Hours()
	}
}

// ofJob makes a fold of what a metric says of a job, whose name is in a label.
func ofJob(label string,
	note func(s *jobs, name string, at policy.Time, v float64)) func(*reading, map[string]string) sink {
	return func(r *reading, labels map[string]string) sink {
		name := labels["namespace"] + "/" + labels[label]
		return func(at policy.Time, v float64) { note(&r.jobs, name, at, v) }
	}
}

// ofOpenJob is ofJob of a job that is known and not put away.
func ofOpenJob(label string, note func(j *jobRun, at policy.Time, v float64)) func(*reading, map[string]string) sink {
	return ofJob(label, func(s *jobs, name string, at policy.Time, v float64) {
		if j := s.open[name]; j != nil {
			note(j, at, v)
		}
	})
}

// jobOwners folds the CronJobs that made jobs.
func (r *reading) jobOwners(labels map[string]string) sink {
	if j := r.jobs.open[labels["namespace"]+"/"+labels["job_name"]]; j != nil {
		j.group = labels["namespace"] + "/" + labels["owner_name"]
	}
	return nil
}
