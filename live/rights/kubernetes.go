package rights

// API groups, and verbs that are used together.
const (
	groupApps       = "apps"
	groupBatch      = "batch"
	groupPolicy     = "policy"
	groupScheduling = "scheduling.k8s.io"
	groupResource   = "resource.k8s.io"
	groupStorage    = "storage.k8s.io"
	groupLeases     = "coordination.k8s.io"
	groupEvents     = "events.k8s.io"
	groupRBAC       = "rbac.authorization.k8s.io"
	groupMetrics    = "metrics.k8s.io"
	groupOurs       = "spotter.dev"
	groupKarpenter  = "karpenter.sh"
)

var watch = []string{"list", "watch"}

// Kubernetes returns the requests to the API server, grouped by part. Those of shadow mode are
// first.
func Kubernetes() []Right {
	var all []Right
	for _, part := range [][]Right{coreRights(), coreActive(), processRights(), karpenterRights(), rackspaceRights(),
		queueRights()} {
		all = append(all, part...)
	}
	return all
}

// coreRights are the requests of every controller: it watches objects and writes its own.
func coreRights() []Right {
	return []Right{
		{Part: Core, Scope: Cluster, Resources: []string{"nodes", "pods", "namespaces", "persistentvolumeclaims",
			"persistentvolumes"}, Verbs: watch,
			Why: "The snapshot: which pods run where, and their requests."},
		{Part: Core, Scope: Cluster, Group: groupApps, Resources: []string{"daemonsets", "deployments", "replicasets",
			"statefulsets"}, Verbs: watch,
			Why: "The snapshot: how many pods a workload wants."},
		{Part: Core, Scope: Cluster, Group: groupBatch, Resources: []string{"jobs"}, Verbs: watch,
			Why: "The snapshot: the work of Jobs."},
		{Part: Core, Scope: Cluster, Group: groupPolicy, Resources: []string{"poddisruptionbudgets"}, Verbs: watch,
			Why: "The snapshot, and what a drain may evict."},
		{Part: Core, Scope: Cluster, Group: groupScheduling, Resources: []string{"priorityclasses"}, Verbs: watch,
			Why: "The snapshot: the order of pods."},
		{Part: Core, Scope: Cluster, Group: groupStorage, Resources: []string{"csinodes"}, Verbs: watch,
			Why: "How many volumes can be attached to a node."},
		{Part: Core, Scope: Cluster, Group: groupStorage, Resources: []string{"volumeattachments"}, Verbs: watch,
			Why: "A node is not released while volumes are attached to it."},
		{Part: Core, Scope: Cluster, Group: groupResource, Resources: []string{"resourceclaims", "resourceslices"},
			Verbs: watch,
			Why:   "The devices that pods hold by resource claims, where the API server has them."},
		{Part: Core, Scope: Cluster, Group: groupOurs, Resources: []string{"capacitypools"}, Verbs: watch,
			Why: "The pools to decide for."},
		{Part: Core, Scope: Cluster, Group: groupOurs, Resources: []string{"gpubudgets"},
			Verbs: []string{"get", "list", "watch"},
			Why:   "The budgets to count. They are read again before a ledger is deleted and before a gate is written."},
		{Part: Core, Scope: Cluster, Group: groupOurs, Resources: []string{"capacitypools/status"}, Verbs: []string{"update"},
			Why: "Conditions, prices, shares and savings."},
		{Part: Core, Scope: Cluster, Group: groupOurs, Resources: []string{"gpubudgets/status"}, Verbs: []string{"patch"},
			Why: "Usage, and gates."},
		{Part: Core, Scope: Cluster, Group: groupEvents, Resources: []string{"events"}, Verbs: []string{"create", "patch"},
			Without: "`kubectl describe` does not show what happened; conditions and the log do.",
			Why:     "Events on CapacityPools and GPUBudgets and, when active, on nodes."},
		{Part: Core, Unless: Prometheus, Scope: Cluster, Group: groupMetrics, Resources: []string{"nodes"},
			Verbs:   []string{"list"},
			Without: "The condition `UsageKnown` is False; decisions use the requests of pods.",
			Why:     "Node usage from metrics-server; not requested with `usage.prometheus`."},
		{Part: Core, Scope: OwnNamespace, Resources: []string{"configmaps"},
			Verbs: []string{"create", "delete", "get", "list", "update"},
			Why: "Memory, the ledgers of budgets, and the kill switch, which is only read. A ledger is deleted with its " +
				"budget. Names follow from pools and budgets, and `resourceNames` has neither prefixes nor `create`: the chart's " +
				"admission policy `memory.spotter.dev` limits writes to `spotter-memory-…` and `spotter-ledger-…`."},
	}
}

// coreActive are the requests of every controller in active mode.
func coreActive() []Right {
	return []Right{
		{Part: Core, Active: true, Scope: Cluster, Group: groupOurs, Resources: []string{"spotplans"},
			Verbs: []string{"create", "get", "list"},
			Why:   "Plans that wait for a person's approval in mode approve. Persons write `spec`, the controller never does."},
		{Part: Core, Active: true, Scope: Cluster, Group: groupOurs, Resources: []string{"spotplans/status"},
			Verbs: []string{"update"},
			Why:   "What a plan would do, and its digest."},
		{Part: Core, Active: true, Scope: Cluster, Resources: []string{"nodes"}, Verbs: []string{"get", "patch"},
			Why: "Cordon, taint and annotations of a drain, and their removal; the chart's admission policy `nodes.spotter.dev` refuses all else."},
		{Part: Core, Active: true, Scope: Cluster, Resources: []string{"pods"}, Verbs: []string{"patch"},
			Without: "A shrinking workload does not first remove the pods of nodes that should be emptied.",
			Why:     "The annotation `controller.kubernetes.io/pod-deletion-cost`; the chart's admission policy `ranks.spotter.dev` refuses all else."},
		{Part: Core, Active: true, Scope: Cluster, Resources: []string{"pods/eviction"}, Verbs: []string{"create"},
			Why: "Evictions, by drains and by budgets."},
		{Part: Core, Active: true, Scope: Cluster, Group: groupApps, Resources: []string{"deployments", "replicasets",
			"statefulsets"}, Verbs: []string{"get"},
			Why: "How many pods a workload wants now, before one of them is evicted."},
		{Part: Core, Active: true, Scope: Cluster, Resources: []string{"replicationcontrollers"}, Verbs: []string{"get"},
			Why: "The same."},
		{Part: Core, Active: true, Scope: Cluster, Group: groupBatch, Resources: []string{"jobs"},
			Verbs:   []string{"get", "patch"},
			Without: "Budgets with the action `Pause` suspend nothing and say so.",
			Why:     "`spec.suspend` of Jobs under a budget with the action `Pause`; `jobs.spotter.dev` refuses all else."},
	}
}

// processRights are the requests of the process itself.
func processRights() []Right {
	return []Right{
		{Part: LeaderElection, Scope: OwnNamespace, Group: groupLeases, Resources: []string{"leases"},
			Verbs: []string{"create"}, Why: "The lease `spotter-leader`."},
		{Part: LeaderElection, Scope: OwnNamespace, Group: groupLeases, Resources: []string{"leases"},
			Names: []string{"spotter-leader"}, Verbs: []string{"get", "update"},
			Why: "Leading, and a check of it before anything is written."},
		{Part: LeaderElection, Scope: Cluster, Group: groupLeases, Resources: []string{"leases"},
			Names: []string{"spotter-leader"}, Verbs: []string{"get"},
			Why: "Whether another release, which has claimed a pool, still leads."},
		{Part: SecureMetrics, Scope: Cluster, Group: "authentication.k8s.io", Resources: []string{"tokenreviews"},
			Verbs: []string{"create"}, Why: "Authenticating clients of metrics."},
		{Part: SecureMetrics, Scope: Cluster, Group: "authorization.k8s.io", Resources: []string{"subjectaccessreviews"},
			Verbs: []string{"create"},
			Why:   "Whether they may `get` the path `/metrics`."},
	}
}

// nodeClasses are the kinds of node class of the known Karpenter providers, by group.
var nodeClasses = []struct{ group, resource string }{
	{"eks.amazonaws.com", "nodeclasses"}, {"karpenter.azure.com", "aksnodeclasses"}, {"karpenter.k8s.aws",
		"ec2nodeclasses"},
	{"karpenter.k8s.gcp", "gcenodeclasses"}, {"karpenter.kwok.sh", "kwoknodeclasses"},
}

func karpenterRights() []Right {
	all := []Right{
		{Part: Karpenter, Scope: Cluster, Group: groupKarpenter, Resources: []string{"nodeclaims", "nodepools"}, Verbs: watch,
			Why: "Existing and expected machines."},
		{Part: Karpenter, Scope: Cluster, Resources: []string{"events"}, Verbs: watch,
			Without: "Warnings that only Karpenter reads are seen when it taints the node.",
			Why:     "Events on NodeClaims, in which Karpenter reports warnings."},
		{Part: Karpenter, Active: true, Scope: Cluster, Group: groupKarpenter, Resources: []string{"nodepools"},
			Verbs: []string{"create", "delete", "get", "patch"},
			Why:   "Spotter's own NodePools, and `weight` and `limits` of those that are adopted. One is deleted when its CapacityPool, its nodes and its claims are gone."},
		{Part: Karpenter, Active: true, Scope: Cluster, Group: groupKarpenter, Resources: []string{"nodeclaims"},
			Verbs: []string{"create", "delete", "get", "patch"},
			Why:   "Replacements that are launched first, and the release of emptied nodes."},
	}
	for _, c := range nodeClasses {
		all = append(all, Right{Part: Karpenter, Scope: Cluster, Group: c.group, Resources: []string{c.resource},
			Verbs:   []string{"list"},
			Without: "Needed for the provider of Karpenter that is installed; the others are never requested.",
			Why:     "Whether the node class exists and is ready."})
	}
	return all
}

func rackspaceRights() []Right {
	return []Right{
		{Part: Rackspace, Scope: Cluster, Group: groupOurs, Resources: []string{"spotnodes"}, Verbs: []string{"list"},
			Why: "The ledger of orders."},
		{Part: Rackspace, Scope: Secrets, Resources: []string{"secrets"}, Verbs: []string{"get"},
			Why: "The refresh token that a CapacityPool names, by `resourceNames`: a Role for each of `rackspace.credentialsSecrets`."},
		{Part: Rackspace, Active: true, Scope: Cluster, Group: groupOurs, Resources: []string{"spotnodes"},
			Verbs: []string{"create", "delete", "get"},
			Why:   "An order is recorded before it is placed."},
		{Part: Rackspace, Active: true, Scope: Cluster, Group: groupOurs, Resources: []string{"spotnodes/status"},
			Verbs: []string{"patch"}, Why: "The result of an order."},
		{Part: Rackspace, Active: true, Scope: Cluster, Group: groupOurs, Resources: []string{"capacitypools"},
			Verbs: []string{"patch"},
			Why:   "The annotation `spotter.dev/steer`: how the pool was last steered."},
	}
}

func queueRights() []Right {
	return []Right{
		{Part: Queue, Scope: Cluster, Group: groupRBAC, Resources: []string{"clusterroles", "clusterrolebindings"},
			Verbs:   []string{"list"},
			Without: "Another consumer of the queue is not found, and a node under notice that another controller drains is drained by both.",
			Why:     "Who may drain nodes: a workload counts as Karpenter or the Node Termination Handler only if its ServiceAccount may."},
	}
}
