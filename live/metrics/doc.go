// Package metrics is what the controller reports to Prometheus: its own metrics, named
// spotter_*, and by a switch the same facts under the names that the dashboards
// of other systems read.
//
// Everything has a bound on its labels: pools are as many as the user made, markets
// are those in use and no more than a hundred, and no metric has a node or a pod in
// it but those of the systems whose dashboards ask for nodes, which are bounded too.
package metrics
