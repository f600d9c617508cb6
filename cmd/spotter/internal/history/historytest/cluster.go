package historytest

import (
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/history"
	"github.com/spotter-dev/spotter/policy"
)

// A Cluster is what kube-state-metrics and Karpenter write metrics of.
type Cluster struct {
	From, To policy.Time

	// Gone are spans in which nothing was scraped, in pairs.
	Gone []policy.Time

	Nodes     []history.Node
	Workloads []history.Workload

	// Jobs have their runs one by one, and Namespaced names that are created for each run.
	Jobs []history.Job

	// Placed are where pods were at From; of jobs in the run that was at work then.
	Placed []history.Placed

	// Unlabelled leaves out kube_node_labels.
	Unlabelled bool

	// Reclaims are when nodes were interrupted, Hourly is what nodes cost.
	Reclaims []policy.Time
	Hourly   float64
}

// labelNames are the labels of nodes as kube-state-metrics writes them.
var labelNames = map[string]string{
	"node.kubernetes.io/instance-type": "label_node_kubernetes_io_instance_type", "topology.kubernetes.io/zone": "label_topology_kubernetes_io_zone",
	"topology.kubernetes.io/region": "label_topology_kubernetes_io_region", "karpenter.sh/capacity-type": "label_karpenter_sh_capacity_type",
	"karpenter.sh/nodepool": "label_karpenter_sh_nodepool", "eks.amazonaws.com/capacityType": "label_eks_amazonaws_com_capacity_type",
}

func split(name string) (namespace, short string) {
	for i := range name {
		if name[i] == '/' {
			return name[:i], name[i+1:]
		}
	}
	return "default", name
}

func seconds(t policy.Time) float64 { return float64(t) / 1000 }

// scraped reports whether something was scraped at an instant.
func (c *Cluster) scraped(at policy.Time) bool {
	for i := 0; i+1 < len(c.Gone); i += 2 {
		if at >= c.Gone[i] && at < c.Gone[i+1] {
			return false
		}
	}
	return at >= c.From && at < c.To
}

// during is a value that there is from one instant to another.
func (c *Cluster) during(from, to policy.Time, v float64) func(policy.Time) (float64, bool) {
	return func(at policy.Time) (float64, bool) { return v, at >= from && at < to && c.scraped(at) }
}

// always is a value that a query which looks back finds.
func always(v float64) func(policy.Time) (float64, bool) {
	return func(policy.Time) (float64, bool) { return v, true }
}

// Source is the source of a server.
func (c *Cluster) Source(q Query) iter.Seq[Series] {
	return func(yield func(Series) bool) {
		switch q.Metric {
		case "kube_node_created", "kube_node_labels", "kube_node_role", "kube_node_info":
			c.nodes(q, yield)
		case "kube_deployment_spec_replicas", "kube_statefulset_replicas":
			c.replicas(q.Metric, yield)
		case "kube_replicaset_owner", "kube_pod_container_resource_requests", "kube_pod_status_ready_time":
			c.pods(q.Metric, q.From, q.To, yield)
		case "kube_pod_info":
			if strings.HasPrefix(q.Aggregation, "count by (namespace, node,") {
				c.placed(yield)
			}
		case "kube_replicaset_created":
			c.replicaSets(q.From, q.To, yield)
		case "karpenter_nodeclaims_disrupted_total", "karpenter_nodepools_cost_total":
			c.karpenter(q.Metric, yield)
		default:
			c.jobs(q, yield)
		}
	}
}

func (c *Cluster) nodes(q Query, yield func(Series) bool) {
	if q.Aggregation == "count" {
		yield(Series{nil, c.during(c.From, c.To, float64(len(c.Nodes)))})
		return
	}
	for i := range c.Nodes {
		n := &c.Nodes[i]
		switch {
		case n.From >= q.To || n.To <= q.From:
		case q.Metric == "kube_node_created":
			yield(Series{[]string{"node", n.Name}, c.during(n.From, n.To, seconds(n.From))})
		case q.Metric == "kube_node_info":
			if n.Instance != "" {
				yield(Series{[]string{"node", n.Name, "provider_id", "aws:///us-east-1a/" + n.Instance}, always(1)})
			}
		case q.Metric == "kube_node_role":
			if n.Kind.Labels[history.LabelControlPlane] != "" {
				yield(Series{[]string{"node", n.Name}, always(1)})
			}
		case !c.Unlabelled:
			labels := []string{"node", n.Name}
			for k, v := range n.Kind.Labels {
				if labelNames[k] != "" {
					labels = append(labels, labelNames[k], v)
				}
			}
			yield(Series{labels, always(1)})
		}
	}
}

// value returns the replicas at an instant.
func value(changes []history.Change, at policy.Time) int32 {
	n := int32(0)
	for _, x := range changes {
		if x.At <= at {
			n = x.N
		}
	}
	return n
}

func (c *Cluster) replicas(metric string, yield func(Series) bool) {
	for i := range c.Workloads {
		w := &c.Workloads[i]
		namespace, short := split(w.Name)
		label := "deployment"
		if w.Kind == policy.KindStatefulSet {
			label = "statefulset"
		}
		if (metric == "kube_statefulset_replicas") != (w.Kind == policy.KindStatefulSet) {
			continue
		}
		yield(Series{[]string{"namespace", namespace, label, short}, func(at policy.Time) (float64, bool) {
			n := value(w.Replicas, at)
			return float64(max(n, 0)), n >= 0 && c.scraped(at) // below zero it is not there
		}})
	}
}

// pods writes what is known of pods by what made them.
func (c *Cluster) pods(metric string, from, to policy.Time, yield func(Series) bool) {
	each := func(namespace, kind, name string, p *history.Pod) {
		by := []string{"namespace", namespace, "created_by_kind", kind, "created_by_name", name}
		if metric == "kube_pod_status_ready_time" {
			if p.Start > 0 && kind != "Job" {
				yield(Series{by, always(p.Start.Seconds())})
			}
			return
		}
		for resource, v := range map[string]float64{"cpu": float64(p.Requests.CPU) / 1000,
			"memory": float64(p.Requests.Memory), "nvidia_com_gpu": float64(p.Requests.GPU)} {
			if v > 0 {
				yield(Series{append(by[:len(by):len(by)], "resource", resource), always(v)})
			}
		}
	}
	for i := range c.Workloads {
		w := &c.Workloads[i]
		namespace, short := split(w.Name)
		switch {
		case value(w.Replicas, to) <= 0 && value(w.Replicas, from) <= 0:
		case w.Kind == policy.KindStatefulSet && metric != "kube_replicaset_owner":
			each(namespace, "StatefulSet", short, &w.Pod)
		case w.Kind == policy.KindStatefulSet:
		case metric == "kube_replicaset_owner":
			yield(Series{[]string{"namespace", namespace, "replicaset", short + "-5d4f", "owner_kind", "Deployment",
				"owner_name", short}, always(1)})
		default:
			each(namespace, "ReplicaSet", short+"-5d4f", &w.Pod)
		}
	}
	for i := range c.Jobs {
		for k, at := range c.Jobs[i].Runs {
			if metric == "kube_pod_container_resource_requests" && at < to && at.Add(took(&c.Jobs[i])) > from {
				namespace, short := split(c.jobName(i, k))
				each(namespace, "Job", short, &c.Jobs[i].Pod)
			}
		}
	}
}

// placed writes where pods were at the start.
func (c *Cluster) placed(yield func(Series) bool) {
	for _, x := range c.Placed {
		namespace, short := split(x.Workload)
		kind := "StatefulSet"
		switch x.Kind {
		case policy.KindJob:
			i := slices.IndexFunc(c.Jobs, func(j history.Job) bool { return j.Name == x.Workload })
			j := &c.Jobs[i]
			run := slices.IndexFunc(j.Runs, func(at policy.Time) bool { return at <= c.From && at.Add(took(j)) > c.From })
			if run < 0 {
				continue
			}
			kind = "Job"
			_, short = split(c.jobName(i, run))
		case policy.KindDeployment:
			kind, short = "ReplicaSet", short+"-5d4f"
		}
		yield(Series{[]string{"namespace", namespace, "node", x.Node, "created_by_kind", kind, "created_by_name", short},
			c.during(c.From, c.From+1, float64(x.N))})
	}
}

// replicaSets writes when those of Deployments were made: one by each rollout.
func (c *Cluster) replicaSets(from, to policy.Time, yield func(Series) bool) {
	for i := range c.Workloads {
		namespace, short := split(c.Workloads[i].Name)
		for _, at := range c.Workloads[i].Rollouts {
			if at >= from.Add(-5*time.Minute) && at < to {
				yield(Series{[]string{"namespace", namespace, "replicaset", short + "-5d4f"}, always(seconds(at))})
			}
		}
	}
}

// jobName returns the name of a run of a job, as a CronJob makes it.
func (c *Cluster) jobName(i, run int) string {
	return c.Jobs[i].Name + "-" + strconv.Itoa(28_000_000+run)
}

// took returns how long a run of a job takes whose pods work after each other.
func took(j *history.Job) time.Duration {
	return j.Took * time.Duration((j.Completions+j.Parallelism-1)/j.Parallelism)
}

// linger is how long jobs are there that are done.
const linger = 3 * time.Hour

func (c *Cluster) jobs(q Query, yield func(Series) bool) {
	for i := range c.Jobs {
		j := &c.Jobs[i]
		for k, at := range j.Runs {
			namespace, short := split(c.jobName(i, k))
			labels := []string{"namespace", namespace, "job_name", short}
			done := at.Add(took(j))
			if at >= q.To || done.Add(linger) <= q.From {
				continue
			}
			begun := at >= q.From.Add(-5*time.Minute) || q.Unfinished && done > q.From
			switch q.Metric {
			case "kube_job_status_start_time":
				if begun {
					yield(Series{labels, always(seconds(at))})
				}
			case "kube_job_status_completion_time":
				if done < q.To && done >= q.From.Add(-5*time.Minute) {
					yield(Series{labels, always(seconds(done))})
				}
			case "kube_job_status_active":
				yield(Series{labels, c.during(at, done, 1)})
			case "kube_job_spec_parallelism":
				yield(Series{labels, always(float64(j.Parallelism))})
			case "kube_job_spec_completions":
				yield(Series{labels, always(float64(j.Completions))})
			case "kube_job_owner":
				_, cron := split(j.Name)
				yield(Series{append(labels, "owner_name", cron), always(1)})
			}
		}
	}
}

func (c *Cluster) karpenter(metric string, yield func(Series) bool) {
	switch {
	case metric == "karpenter_nodepools_cost_total" && c.Hourly > 0:
		yield(Series{nil, c.during(c.From, c.To, c.Hourly)})
	case metric == "karpenter_nodeclaims_disrupted_total" && c.Reclaims != nil:
		yield(Series{[]string{"reason", "spot_interrupted", "pod", "karpenter-0"}, func(at policy.Time) (float64, bool) {
			n := 5.0 // of before
			for _, x := range c.Reclaims {
				if x <= at {
					n++
				}
			}
			return n, c.scraped(at)
		}})
	}
}
