// Package history reads what a cluster did over a period: replicas, jobs, the lifetimes of nodes
// and reclaims. The sources are metrics in Prometheus ([Prometheus]), and audit logs of the API
// server or data that was derived from them ([Logs]). Every source results in a [History], which
// contains nothing specific to the source except for what is uncertain.
//
// Memory is bounded by the number of changes and not by the number of observations: responses are
// folded point by point.
package history
