// Package placement finds where pods can run: whether a pod fits a node under every filter of
// kube-scheduler's default profile, how pending pods pack onto new nodes of many types, where the
// pods of a node could be placed, and which node is the easiest to empty.
//
// A [Space] holds the nodes and their pods. It is kept up to date one change at a time by the
// simulator, and built from a Snapshot by a policy. Pods of one template are alike, and nodes with
// equal labels and taints are alike, so results that cannot change are computed once for each such
// pair; what spread and affinity require is counted as pods come and go. A check reads these tables
// and allocates nothing.
package placement
