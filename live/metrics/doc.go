// Package metrics is what the controller reports to Prometheus: its own metrics, named
// spotter_*, and by a switch the same facts under the names that the dashboards
// of other systems read.
//
// All labels have a bound: the number of pools is the user's choice, markets are those in use and
// at most a hundred, and only the metrics of systems whose dashboards need nodes have a node or a
// pod as a label. These are bounded too.
package metrics
