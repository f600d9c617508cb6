// Package placement computes where pods can run: whether a pod fits a node under every filter of
// kube-scheduler's default profile, how pending pods pack onto new nodes of many types, where the
// pods of a node could be moved, and which node is the easiest to drain.
//
// A [Space] contains the nodes and their pods. The simulator updates it change by change, and
// policies build it from a Snapshot. Pods of one template are equivalent, and so are nodes with
// equal labels and taints, so results that cannot change are computed once for each such pair. The
// counts for topology spread and pod affinity are updated when pods are bound and unbound. A check
// reads these tables and does not allocate memory.
package placement
