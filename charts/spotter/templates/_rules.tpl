{{- /* Made by `make generate`; do not edit. */}}

{{- /* What is granted in the whole cluster. */}}
{{- define "spotter.rules.cluster" -}}
# The snapshot: which pods run where, and their requests.
- apiGroups: [""]
  resources: [nodes, pods, namespaces, persistentvolumeclaims, persistentvolumes]
  verbs: [list, watch]
# The snapshot: how many pods a workload wants.
- apiGroups: ["apps"]
  resources: [daemonsets, deployments, replicasets, statefulsets]
  verbs: [list, watch]
# The snapshot: the work of Jobs.
- apiGroups: ["batch"]
  resources: [jobs]
  verbs: [list, watch]
# The snapshot, and what a drain may evict.
- apiGroups: ["policy"]
  resources: [poddisruptionbudgets]
  verbs: [list, watch]
# The snapshot: the order of pods.
- apiGroups: ["scheduling.k8s.io"]
  resources: [priorityclasses]
  verbs: [list, watch]
# How many volumes can be attached to a node.
- apiGroups: ["storage.k8s.io"]
  resources: [csinodes]
  verbs: [list, watch]
# A node is not released while volumes are attached to it.
- apiGroups: ["storage.k8s.io"]
  resources: [volumeattachments]
  verbs: [list, watch]
# The devices that pods hold by resource claims, where the API server has them.
- apiGroups: ["resource.k8s.io"]
  resources: [resourceclaims, resourceslices]
  verbs: [list, watch]
# The pools to decide for.
- apiGroups: ["spotter.dev"]
  resources: [capacitypools]
  verbs: [list, watch]
# The budgets to count. They are read again before a ledger is deleted and before a gate is written.
- apiGroups: ["spotter.dev"]
  resources: [gpubudgets]
  verbs: [get, list, watch]
# Conditions, prices, shares and savings.
- apiGroups: ["spotter.dev"]
  resources: [capacitypools/status]
  verbs: [update]
# Usage, and gates.
- apiGroups: ["spotter.dev"]
  resources: [gpubudgets/status]
  verbs: [patch]
# Events on CapacityPools and GPUBudgets and, when active, on nodes.
- apiGroups: ["events.k8s.io"]
  resources: [events]
  verbs: [create, patch]
{{- if (not .Values.usage.prometheus.url) }}
# Node usage from metrics-server; not requested with `usage.prometheus`.
- apiGroups: ["metrics.k8s.io"]
  resources: [nodes]
  verbs: [list]
{{- end }}
{{- if (ne .Values.mode "shadow") }}
# Plans that wait for a person's approval in mode approve. Persons write `spec`, the controller never does.
- apiGroups: ["spotter.dev"]
  resources: [spotplans]
  verbs: [create, get, list]
{{- end }}
{{- if (ne .Values.mode "shadow") }}
# What a plan would do, and its digest.
- apiGroups: ["spotter.dev"]
  resources: [spotplans/status]
  verbs: [update]
{{- end }}
{{- if (ne .Values.mode "shadow") }}
# Cordon, taint and annotations of a drain, and their removal; the chart's admission policy `nodes.spotter.dev` refuses all else.
- apiGroups: [""]
  resources: [nodes]
  verbs: [get, patch]
{{- end }}
{{- if (ne .Values.mode "shadow") }}
# The annotation `controller.kubernetes.io/pod-deletion-cost`; the chart's admission policy `ranks.spotter.dev` refuses all else.
- apiGroups: [""]
  resources: [pods]
  verbs: [patch]
{{- end }}
{{- if (ne .Values.mode "shadow") }}
# Evictions, by drains and by budgets.
- apiGroups: [""]
  resources: [pods/eviction]
  verbs: [create]
{{- end }}
{{- if (ne .Values.mode "shadow") }}
# How many pods a workload wants now, before one of them is evicted.
- apiGroups: ["apps"]
  resources: [deployments, replicasets, statefulsets]
  verbs: [get]
{{- end }}
{{- if (ne .Values.mode "shadow") }}
# The same.
- apiGroups: [""]
  resources: [replicationcontrollers]
  verbs: [get]
{{- end }}
{{- if (ne .Values.mode "shadow") }}
# `spec.suspend` of Jobs under a budget with the action `Pause`; `jobs.spotter.dev` refuses all else.
- apiGroups: ["batch"]
  resources: [jobs]
  verbs: [get, patch]
{{- end }}
# Whether another release, which has claimed a pool, still leads.
- apiGroups: ["coordination.k8s.io"]
  resources: [leases]
  resourceNames: [spotter-leader]
  verbs: [get]
{{- if .Values.metrics.secure }}
# Authenticating clients of metrics.
- apiGroups: ["authentication.k8s.io"]
  resources: [tokenreviews]
  verbs: [create]
{{- end }}
{{- if .Values.metrics.secure }}
# Whether they may `get` the path `/metrics`.
- apiGroups: ["authorization.k8s.io"]
  resources: [subjectaccessreviews]
  verbs: [create]
{{- end }}
{{- if (has "karpenter" .Values.backends) }}
# Existing and expected machines.
- apiGroups: ["karpenter.sh"]
  resources: [nodeclaims, nodepools]
  verbs: [list, watch]
{{- end }}
{{- if (has "karpenter" .Values.backends) }}
# Events on NodeClaims, in which Karpenter reports warnings.
- apiGroups: [""]
  resources: [events]
  verbs: [list, watch]
{{- end }}
{{- if and (ne .Values.mode "shadow") (has "karpenter" .Values.backends) }}
# Spotter's own NodePools, and `weight` and `limits` of those that are adopted. One is deleted when its CapacityPool, its nodes and its claims are gone.
- apiGroups: ["karpenter.sh"]
  resources: [nodepools]
  verbs: [create, delete, get, patch]
{{- end }}
{{- if and (ne .Values.mode "shadow") (has "karpenter" .Values.backends) }}
# Replacements that are launched first, and the release of emptied nodes.
- apiGroups: ["karpenter.sh"]
  resources: [nodeclaims]
  verbs: [create, delete, get, patch]
{{- end }}
{{- if and (has "karpenter" .Values.backends) (has "eks.amazonaws.com" .Values.karpenter.nodeClassGroups) }}
# Whether the node class exists and is ready.
- apiGroups: ["eks.amazonaws.com"]
  resources: [nodeclasses]
  verbs: [list]
{{- end }}
{{- if and (has "karpenter" .Values.backends) (has "karpenter.azure.com" .Values.karpenter.nodeClassGroups) }}
# Whether the node class exists and is ready.
- apiGroups: ["karpenter.azure.com"]
  resources: [aksnodeclasses]
  verbs: [list]
{{- end }}
{{- if and (has "karpenter" .Values.backends) (has "karpenter.k8s.aws" .Values.karpenter.nodeClassGroups) }}
# Whether the node class exists and is ready.
- apiGroups: ["karpenter.k8s.aws"]
  resources: [ec2nodeclasses]
  verbs: [list]
{{- end }}
{{- if and (has "karpenter" .Values.backends) (has "karpenter.k8s.gcp" .Values.karpenter.nodeClassGroups) }}
# Whether the node class exists and is ready.
- apiGroups: ["karpenter.k8s.gcp"]
  resources: [gcenodeclasses]
  verbs: [list]
{{- end }}
{{- if and (has "karpenter" .Values.backends) (has "karpenter.kwok.sh" .Values.karpenter.nodeClassGroups) }}
# Whether the node class exists and is ready.
- apiGroups: ["karpenter.kwok.sh"]
  resources: [kwoknodeclasses]
  verbs: [list]
{{- end }}
{{- if (has "rackspace" .Values.backends) }}
# The ledger of orders.
- apiGroups: ["spotter.dev"]
  resources: [spotnodes]
  verbs: [list]
{{- end }}
{{- if and (ne .Values.mode "shadow") (has "rackspace" .Values.backends) }}
# An order is recorded before it is placed.
- apiGroups: ["spotter.dev"]
  resources: [spotnodes]
  verbs: [create, delete, get]
{{- end }}
{{- if and (ne .Values.mode "shadow") (has "rackspace" .Values.backends) }}
# The result of an order.
- apiGroups: ["spotter.dev"]
  resources: [spotnodes/status]
  verbs: [patch]
{{- end }}
{{- if and (ne .Values.mode "shadow") (has "rackspace" .Values.backends) }}
# The annotation `spotter.dev/steer`: how the pool was last steered.
- apiGroups: ["spotter.dev"]
  resources: [capacitypools]
  verbs: [patch]
{{- end }}
{{- if .Values.aws.queueURL }}
# Who may drain nodes: a workload counts as Karpenter or the Node Termination Handler only if its ServiceAccount may.
- apiGroups: ["rbac.authorization.k8s.io"]
  resources: [clusterroles, clusterrolebindings]
  verbs: [list]
{{- end }}
{{- end }}

{{- /* What is granted in the release's namespace. */}}
{{- define "spotter.rules.namespace" -}}
# Memory, the ledgers of budgets, and the kill switch, which is only read. A ledger is deleted with its budget. Names follow from pools and budgets, and `resourceNames` has neither prefixes nor `create`: the chart's admission policy `memory.spotter.dev` limits writes to `spotter-memory-…` and `spotter-ledger-…`.
- apiGroups: [""]
  resources: [configmaps]
  verbs: [create, delete, get, list, update]
# The lease `spotter-leader`.
- apiGroups: ["coordination.k8s.io"]
  resources: [leases]
  verbs: [create]
# Leading, and a check of it before anything is written.
- apiGroups: ["coordination.k8s.io"]
  resources: [leases]
  resourceNames: [spotter-leader]
  verbs: [get, update]
{{- end }}
