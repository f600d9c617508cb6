package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/spotter-dev/spotter/live/steady"
)

// clocks is a collector that reports how far other clocks are ahead of the controller's time.
type clocks struct{ state func() steady.State }

var (
	clockAhead = prometheus.NewDesc("spotter_clock_ahead_seconds",
		"How far the clock of this machine (machine) and of the API server (server) is ahead of the time that the controller uses.", []string{"clock"}, nil)
	clockJumps = prometheus.NewDesc("spotter_clock_jumps_total",
		"How often the clock of this machine or of the API server was set by 5 s or more.", nil, nil)
)

// Describe sends the descriptions of the metrics.
func (c clocks) Describe(to chan<- *prometheus.Desc) {
	to <- clockAhead
	to <- clockJumps
}

// Collect sends the current values.
func (c clocks) Collect(to chan<- prometheus.Metric) {
	s := c.state()
	to <- prometheus.MustNewConstMetric(clockAhead, prometheus.GaugeValue, s.Local.Seconds(), "machine")
	to <- prometheus.MustNewConstMetric(clockAhead, prometheus.GaugeValue, s.Server.Seconds(), "server")
	to <- prometheus.MustNewConstMetric(clockJumps, prometheus.CounterValue, float64(s.Jumps))
}
