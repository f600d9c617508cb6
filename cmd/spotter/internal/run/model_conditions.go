package run

import (
	"fmt"
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spotter-dev/spotter/policy/figures"
)

// ConditionModel reports for a pool whose policy names a bundle whether forecasts come from that
// bundle.
const ConditionModel = "ModelUsed"

// Conditions returns the condition of a pool. A pool whose policy never named a bundle has none.
func (l *liveModel) Conditions(pool string) []metav1.Condition {
	l.mu.Lock()
	defer l.mu.Unlock()
	x := &l.state
	dir, named := x.pools[pool]
	switch {
	case !named && !x.reported[pool]:
		return nil
	case !named:
		return []metav1.Condition{{Type: ConditionModel, Status: metav1.ConditionFalse, Reason: "NotNamed",
			Message: "the policy of the pool no longer names a bundle"}}
	}
	x.reported[pool] = true
	c := metav1.Condition{Type: ConditionModel, Status: metav1.ConditionTrue, Reason: "Scored",
		Message: fmt.Sprintf("the bundle %s scored %s", dir, figures.Count(x.said.Scored, "market"))}
	if x.said.Valued > 0 {
		c.Message += " and rated the actions of " + figures.Count(x.said.Valued, "pool")
	}
	if text := x.said.String(); text != "" {
		c.Message += "; " + text
	}
	if x.reason != "" {
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, x.reason, "the closed form is used instead: "+x.why
	}
	return []metav1.Condition{c}
}

// The metrics of bundles.
var (
	modelUp = prometheus.NewDesc("spotter_model_up",
		"1 while forecasts come from the bundle that policies name, 0 while they come from the closed form.", []string{"bundle", "fingerprint"}, nil)
	modelForecasts = prometheus.NewDesc("spotter_model_forecasts_total",
		"Forecasts of Spot markets requested from a bundle, by result.", []string{"outcome"}, nil)
	modelValues = prometheus.NewDesc("spotter_model_values_total",
		"Pools whose actions a bundle should rate, by result.", []string{"outcome"}, nil)
	modelFailures = prometheus.NewDesc("spotter_model_failures_total",
		"Steps at which a bundle that is named had no answer, by the reason.", []string{"reason"}, nil)
)

// Describe implements prometheus.Collector.
func (l *liveModel) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{modelUp, modelForecasts, modelValues, modelFailures} {
		to <- d
	}
}

// Collect implements prometheus.Collector. It collects nothing until a policy names a bundle.
func (l *liveModel) Collect(to chan<- prometheus.Metric) {
	l.mu.Lock()
	defer l.mu.Unlock()
	x := &l.state
	if x.dir != "" {
		up := 1.0
		if x.reason != "" {
			up = 0
		}
		to <- prometheus.MustNewConstMetric(modelUp, prometheus.GaugeValue, up, x.dir, x.fingerprint)
	}
	count := func(d *prometheus.Desc, n int, label string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), label)
	}
	if x.total.Calls > 0 {
		count(modelForecasts, x.total.Scored, "scored")
		count(modelForecasts, x.total.OutOfScope, "out-of-scope")
		count(modelForecasts, x.total.Unpriced, "unpriced")
		count(modelForecasts, x.total.Failed, "failed")
		count(modelValues, x.total.Valued, "valued")
		count(modelValues, x.total.Unvalued, "unvalued")
	}
	for _, reason := range slices.Sorted(maps.Keys(x.failures)) {
		count(modelFailures, x.failures[reason], reason)
	}
}
