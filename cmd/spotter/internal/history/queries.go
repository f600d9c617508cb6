package history

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// A query is one of the queries for a slice of time.
type query struct {
	metric string // the metric that is queried

	// text returns the query for a slice.
	text func(e *expressions) string

	asked moment

	// fold consumes a series of the response.
	fold func(r *reading, labels map[string]string) sink

	// without describes the consequence if the metric is missing, and the flag of
	// kube-state-metrics that enables it. It is empty if a missing metric has no consequence.
	without string
}

// A moment determines when a query is evaluated.
type moment uint8

const (
	atEnd   moment = iota // once, at the end of the slice
	atBegin               // once, at the start of the slice
	atSteps               // at every step
)

// A labelUse describes how the series of a server are labelled.
type labelUse struct {
	match string // matchers for each selector, or empty

	// exported are the labels of kube-state-metrics that are renamed, such as namespace to
	// exported_namespace.
	exported map[string]bool

	// copies are the labels that distinguish copies of a series, such as those of two Prometheus
	// servers that scrape the same targets.
	copies []string
}

// expressions builds the expressions of one slice.
type expressions struct {
	labelUse
	from, to policy.Time
}

// selector returns a selector of a metric.
func (u *labelUse) selector(metric string, matchers ...string) string {
	all := []string{}
	if u.match != "" {
		all = append(all, u.match)
	}
	for _, m := range matchers {
		if label := strings.TrimRight(m[:strings.IndexByte(m, '"')], "!=~"); u.exported[label] {
			m = "exported_" + m
		}
		all = append(all, m)
	}
	if len(all) == 0 {
		return metric
	}
	return metric + "{" + strings.Join(all, ",") + "}"
}

// renamed returns an expression that restores the original labels of a metric of
// kube-state-metrics.
func (u *labelUse) renamed(metric, x string) string {
	if !strings.HasPrefix(metric, "kube_") {
		return x
	}
	for _, l := range sorted(u.exported) {
		x = fmt.Sprintf(`label_replace(%s, %q, "$1", "exported_%s", "(.+)")`, x, l, l)
	}
	return x
}

// of returns an expression for a metric with its original labels.
func (u *labelUse) of(metric string, matchers ...string) string {
	return u.renamed(metric, u.selector(metric, matchers...))
}

// counter returns an expression for a counter without copies of its series.
func (u *labelUse) counter(metric string, matchers ...string) string {
	if len(u.copies) == 0 {
		return u.of(metric, matchers...)
	}
	return "max without (" + strings.Join(u.copies, ", ") + ") (" + u.of(metric, matchers...) + ")"
}

// over returns an expression that applies a function to the values of each series within the slice.
func (e *expressions) over(function, metric string, matchers ...string) string {
	return e.renamed(metric, function+"("+e.selector(metric, matchers...)+"["+e.width()+"])")
}

// last returns an expression for the last value of each series within the slice.
func (e *expressions) last(metric string, matchers ...string) string {
	return e.over("last_over_time", metric, matchers...)
}

// width returns the length of the slice in the format of Prometheus.
func (e *expressions) width() string { return fmt.Sprintf("%ds", e.to.Sub(e.from)/time.Second) }

// begin returns the start of the slice in seconds.
func (e *expressions) begin() string { return fmt.Sprintf("%d", e.from/1000) }

// late is the maximum delay between an event and its first scrape.
const late = 5 * time.Minute

// since returns the earliest time in seconds of an event that may be new in the slice.
func (e *expressions) since() string { return fmt.Sprintf("%d", e.from.Add(-late)/1000) }

// owner returns a join that adds the owner's labels to pods, one owner for each pod.
func (e *expressions) owner(matchers ...string) string {
	return "* on (namespace, pod) group_left (created_by_kind, created_by_name) topk by (namespace, pod) (1, " +
		"max by (namespace, pod, created_by_kind, created_by_name) (" + e.last("kube_pod_info", matchers...) + "))"
}

// byPod returns an expression with one series for each pod.
func byPod(x string) string { return "max by (namespace, pod) (" + x + ")" }

// jobsBegun returns the jobs that started in the slice. In the first slice it also returns those
// that still ran.
func (e *expressions) jobsBegun(first bool) string {
	started := "max by (namespace, job_name) (" + e.last("kube_job_status_start_time") + ")"
	if first {
		return started + " unless on (namespace, job_name) (max by (namespace, job_name) (" +
			e.last("kube_job_status_completion_time") + ") < " + e.begin() + ")" +
			" unless on (namespace, job_name) (max by (namespace, job_name) (" +
			e.last("kube_job_failed", `condition="true"`) + ") == 1)"
	}
	return started + " >= " + e.since()
}

// accelerators maps the names of resources in kube-state-metrics to those in Kubernetes.
var accelerators = map[string]string{
	"nvidia_com_gpu": "nvidia.com/gpu", "amd_com_gpu": "amd.com/gpu", "aws_amazon_com_neuron": "aws.amazon.com/neuron", "habana_ai_gaudi": "habana.ai/gaudi",
}

// nodeLabels are the labels that describe a node, in the terms of all supported systems.
var nodeLabels = []string{
	"node.kubernetes.io/instance-type", "topology.kubernetes.io/zone", "topology.kubernetes.io/region",
	"karpenter.sh/capacity-type", "karpenter.sh/nodepool", "eks.amazonaws.com/capacityType", "eks.amazonaws.com/nodegroup",
	"alpha.eksctl.io/nodegroup-name", "kops.k8s.io/instancegroup", "node.kubernetes.io/lifecycle",
	"cloud.google.com/gke-spot", "cloud.google.com/gke-provisioning", "cloud.google.com/gke-nodepool",
	"kubernetes.azure.com/scalesetpriority", "kubernetes.azure.com/agentpool",
}

// allowNodeLabels is the flag of kube-state-metrics that exposes the most important of these
// labels.
const allowNodeLabels = "--metric-labels-allowlist=nodes=[node.kubernetes.io/instance-type,topology.kubernetes.io/zone,topology.kubernetes.io/region,karpenter.sh/capacity-type,karpenter.sh/nodepool]"

// written returns the name that kube-state-metrics gives to a label.
func written(label string) string {
	var b strings.Builder
	b.WriteString("label_")
	low := false // whether a capital letter would start a new word
	for _, r := range label {
		switch {
		case r >= 'A' && r <= 'Z':
			if low {
				b.WriteByte('_')
			}
			r += 'a' - 'A'
			low = false
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			low = true
		default:
			r, low = '_', false
		}
		b.WriteRune(r)
	}
	return b.String()
}

func writtenAll(labels []string) string {
	out := make([]string, len(labels))
	for i, l := range labels {
		out[i] = written(l)
	}
	return strings.Join(out, ", ")
}

// metricHeart exists whenever kube-state-metrics was scraped in a cluster with nodes. heartbeat
// queries it, and metrics that exist without nodes.
const metricHeart = "kube_node_created"

func heartbeat() query {
	return query{metricHeart, func(e *expressions) string {
		return "count(" + e.of(metricHeart) + ") or count(" + e.of("kube_daemonset_created") + ") or count(" +
			e.of("kube_deployment_created") + ")"
	}, atSteps, (*reading).heart, ""}
}

// queries returns the queries for a slice in their order: nodes and jobs before metrics that
// describe them, and owners before what they own.
func queries(first bool) []query {
	all := slices.Concat(nodeQueries(), jobQueries(first), workloadQueries(), karpenterQueries())
	if first {
		all = append(all, placementQuery())
	}
	return all
}

// placementQuery returns the query for the nodes of pods. It follows the queries for owners.
func placementQuery() query {
	return query{"kube_pod_info", func(e *expressions) string {
		return "count by (namespace, node, created_by_kind, created_by_name) (max by (namespace, pod, node, created_by_kind, created_by_name) (" +
			e.of("kube_pod_info", `created_by_kind!~"DaemonSet|Node"`, `node!=""`) + ") and on (namespace, pod) (" +
			byPod(e.of("kube_pod_status_phase", `phase=~"Pending|Running"`)) + " == 1))"
	}, atBegin, (*reading).placements, ""}
}

func nodeQueries() []query {
	return []query{
		{"kube_node_created", func(e *expressions) string { return "max by (node) (" + e.of("kube_node_created") + ")" },
			atSteps, (*reading).node, ""},
		{"kube_node_labels", func(e *expressions) string {
			return "max by (node, " + writtenAll(nodeLabels) + ") (" + e.last("kube_node_labels") + ")"
		}, atEnd, (*reading).labels, "what nodes are is read from metrics of Karpenter, and of the nodes that are there now; kube-state-metrics writes it with " + allowNodeLabels},
		{"kube_node_info", func(e *expressions) string {
			return "max by (node, provider_id) (" + e.last("kube_node_info", `provider_id!=""`) + ")"
		}, atEnd, (*reading).instance, ""},
		{"kube_node_role", func(e *expressions) string {
			return "max by (node) (" + e.last("kube_node_role", `role=~"control-plane|master"`) + ")"
		}, atEnd, (*reading).controlPlane, ""},
		{"karpenter_nodes_allocatable", func(e *expressions) string {
			return "max by (node_name, nodepool, instance_type, zone, region, capacity_type) (" +
				e.last("karpenter_nodes_allocatable", `resource_type="cpu"`) + ")"
		}, atEnd, (*reading).allocatable, ""},
	}
}

func workloadQueries() []query {
	return []query{
		{"kube_deployment_spec_replicas", func(e *expressions) string {
			return "max by (namespace, deployment) (" + e.of("kube_deployment_spec_replicas") + ")"
		}, atSteps, replicas(policy.KindDeployment, "deployment"), "how many replicas Deployments had is not known"},
		{"kube_statefulset_replicas", func(e *expressions) string {
			return "max by (namespace, statefulset) (" + e.of("kube_statefulset_replicas") + ")"
		}, atSteps, replicas(policy.KindStatefulSet, "statefulset"), "how many replicas StatefulSets had is not known"},
		{"kube_replicaset_spec_replicas", func(e *expressions) string {
			return "sum by (namespace, owner_name) (max by (namespace, replicaset) (" + e.of("kube_replicaset_spec_replicas") +
				") * on (namespace, replicaset) group_left (owner_name) " +
				"topk by (namespace, replicaset) (1, max by (namespace, replicaset, owner_name) (" +
				e.of("kube_replicaset_owner", `owner_kind!="Deployment"`, `owner_kind!=""`, `owner_kind!="<none>"`) + ")))"
		}, atSteps, replicas(policy.KindDeployment, "owner_name"), ""},
		{"kube_pod_info", func(e *expressions) string {
			return "count by (namespace, created_by_kind, created_by_name) (max by (namespace, pod, created_by_kind, created_by_name) (" +
				e.of("kube_pod_info", `created_by_kind!~"ReplicaSet|StatefulSet|DaemonSet|Job|Node"`) +
				") and on (namespace, pod) (" +
				byPod(e.of("kube_pod_status_phase", `phase=~"Pending|Running"`)) + " == 1))"
		}, atSteps, (*reading).others, ""},
		{"kube_replicaset_owner", func(e *expressions) string {
			return "max by (namespace, replicaset, owner_kind, owner_name) (" + e.last("kube_replicaset_owner") +
				") and on (namespace, replicaset) (max by (namespace, replicaset) (" +
				e.over("max_over_time", "kube_replicaset_spec_replicas") + ") > 0)"
		}, atEnd, (*reading).owners, "which pods are of which Deployment is guessed from their names"},
		{"kube_replicaset_created", func(e *expressions) string {
			return "max by (namespace, replicaset) (" + e.last("kube_replicaset_created") + ") >= " + e.since()
		}, atEnd, (*reading).rolled, "when new versions were rolled out is not known"},
		{"kube_pod_container_resource_requests", func(e *expressions) string {
			return "avg by (namespace, created_by_kind, created_by_name, resource) (sum by (namespace, pod, resource) (max by (namespace, pod, container, resource) (" +
				e.last("kube_pod_container_resource_requests") + ")) " + e.owner(`created_by_kind!~"DaemonSet|Node"`) + ")"
		}, atEnd, (*reading).requests, "requests are the current ones, and workloads without pods at present are omitted"},
		{"kube_pod_status_ready_time", func(e *expressions) string {
			return "quantile by (namespace, created_by_kind, created_by_name) (0.5, ((" +
				byPod(e.last("kube_pod_status_ready_time")) + " >= " + e.begin() + ") - on (namespace, pod) " +
				byPod(e.last("kube_pod_status_scheduled_time")) + ") " + e.owner(`created_by_kind=~"ReplicaSet|StatefulSet"`) + ")"
		}, atEnd, (*reading).starts, "how long pods take to start is measured on those of now"},
		{"kube_pod_info", func(e *expressions) string {
			return "count(count by (namespace, pod) (" + e.last("kube_pod_info", `created_by_kind!~"DaemonSet|Node"`) +
				") unless on (namespace, pod) count by (namespace, pod) (" +
				e.last("kube_pod_container_resource_requests", `resource="cpu"`) + "))"
		}, atEnd, (*reading).requestless, ""},
	}
}

func jobQueries(first bool) []query {
	job := func(x string) string { return "max by (namespace, job_name) (" + x + ")" }
	begun := func(e *expressions) string { return " and on (namespace, job_name) (" + e.jobsBegun(first) + ")" }
	return []query{
		{"kube_job_status_start_time", func(e *expressions) string { return e.jobsBegun(first) }, atEnd,
			ofJob("job_name", func(s *jobs, name string, _ policy.Time, v float64) { s.begin(name, instant(v)) }),
			"jobs are those of now"},
		{"kube_job_status_completion_time", func(e *expressions) string {
			return job(e.last("kube_job_status_completion_time")) + " >= " + e.since()
		}, atEnd, ofJob("job_name", func(s *jobs, name string, _ policy.Time, v float64) { s.end(name, instant(v)) }), ""},
		{"kube_job_status_active", func(e *expressions) string { return job(e.of("kube_job_status_active")) + " > 0" },
			atSteps, ofOpenJob("job_name", func(j *jobRun, at policy.Time, _ float64) { j.last = max(j.last, at) }), ""},
		{"kube_job_spec_parallelism", func(e *expressions) string {
			return job(e.last("kube_job_spec_parallelism")) + begun(e)
		}, atEnd, ofOpenJob("job_name", func(j *jobRun, _ policy.Time, v float64) { j.pods = int32(v) }), ""},
		{"kube_job_spec_completions", func(e *expressions) string {
			return job(e.last("kube_job_spec_completions")) + begun(e)
		}, atEnd, ofOpenJob("job_name", func(j *jobRun, _ policy.Time, v float64) { j.work = int32(v) }), ""},
		{"kube_job_owner", func(e *expressions) string {
			return "max by (namespace, job_name, owner_name) (" + e.last("kube_job_owner", `owner_kind="CronJob"`) + ")" +
				begun(e)
		}, atEnd, (*reading).jobOwners, ""},
		{"kube_pod_completion_time", func(e *expressions) string {
			return "avg by (namespace, created_by_name) (((" + byPod(e.last("kube_pod_completion_time")) + " >= " + e.begin() +
				") - on (namespace, pod) " +
				byPod(e.last("kube_pod_start_time")) + ") " + e.owner(`created_by_kind="Job"`) + ")"
		}, atEnd, ofOpenJob("created_by_name", func(j *jobRun, _ policy.Time, v float64) {
			j.ran = time.Duration(v * float64(time.Second))
		}), ""},
	}
}

// counts returns the query for a counter.
func counts(metric string, matchers ...string) query {
	return query{metric, func(e *expressions) string { return e.counter(metric, matchers...) }, atSteps,
		func(r *reading, labels map[string]string) sink { return r.counter(metric, labels) }, ""}
}

func karpenterQueries() []query {
	return []query{
		{"karpenter_nodeclaims_disrupted_total",
			func(e *expressions) string { return e.counter("karpenter_nodeclaims_disrupted_total") }, atSteps, (*reading).disrupted, ""},
		counts("karpenter_interruption_received_messages_total", `message_type="spot_interrupted"`),
		counts("apiserver_request_total", `resource="pods"`, `subresource="eviction"`, `code="201"`),
		counts("karpenter_pods_eviction_requests_total", `code="200"`),
		{"karpenter_nodepools_cost_total", func(e *expressions) string {
			return "sum(max by (nodepool) (" + e.of("karpenter_nodepools_cost_total") + "))"
		}, atSteps, (*reading).cost, "dollars are not compared"},
	}
}
