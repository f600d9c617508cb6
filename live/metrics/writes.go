package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/spotter-dev/spotter/live/limit"
)

// writes is a collector that reports the counts of the limiter of API writes.
type writes struct{ counts func() []limit.Count }

var (
	writesSent = prometheus.NewDesc("spotter_api_writes_total", "Writes that were sent to the API server.",
		[]string{"verb"}, nil)
	writesFast = prometheus.NewDesc("spotter_api_writes_urgent_total",
		"Writes that did not wait for the rate limit: for nodes under notice and writes that a step waits for.", []string{"verb"}, nil)
	writesDeny = prometheus.NewDesc("spotter_api_writes_refused_total",
		"Writes that were not sent because a mode, the kill switch or the lease no longer allowed them.", []string{"verb"}, nil)
	writesBack = prometheus.NewDesc("spotter_api_writes_throttled_total",
		"Writes that the API server rejected because it is overloaded.", []string{"verb"}, nil)
	writesWait = prometheus.NewDesc("spotter_api_write_wait_seconds_total",
		"Time that writes waited for the rate limit.", []string{"verb"}, nil)
)

// Describe sends the descriptions of the metrics.
func (w writes) Describe(to chan<- *prometheus.Desc) {
	to <- writesSent
	to <- writesFast
	to <- writesDeny
	to <- writesBack
	to <- writesWait
}

// Collect sends the current counts.
func (w writes) Collect(to chan<- prometheus.Metric) {
	for _, c := range w.counts() {
		to <- prometheus.MustNewConstMetric(writesSent, prometheus.CounterValue, float64(c.Writes), c.Verb)
		to <- prometheus.MustNewConstMetric(writesFast, prometheus.CounterValue, float64(c.Urgent), c.Verb)
		to <- prometheus.MustNewConstMetric(writesDeny, prometheus.CounterValue, float64(c.Refused), c.Verb)
		to <- prometheus.MustNewConstMetric(writesBack, prometheus.CounterValue, float64(c.Throttled), c.Verb)
		to <- prometheus.MustNewConstMetric(writesWait, prometheus.CounterValue, c.Waited.Seconds(), c.Verb)
	}
}
