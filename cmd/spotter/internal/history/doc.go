// Package history reads what a cluster did over a span of time: replicas, jobs, the lives
// of its nodes and what the provider took. It is read from metrics that Prometheus kept
// ([Prometheus]), or from the API server's audit log and what was made of one ([Logs]).
// Every source becomes a [History], which says nothing of where it came from but what is
// uncertain in it.
//
// Memory is bounded by what changed and not by how often it was looked at: answers are
// folded point by point.
package history
