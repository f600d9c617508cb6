package queue

import "github.com/prometheus/client_golang/prometheus"

// Metrics of a queue. Messages are counted by the topic of their event. Outcomes are the results of
// messages.
var (
	metricUp = prometheus.NewDesc("spotter_queue_up", "1 while the queue of notices is read, 0 while it is not.",
		nil, nil)
	metricRival = prometheus.NewDesc("spotter_queue_rival",
		"1 while another consumer also reads the queue and receives part of its messages.", nil, nil)
	metricReceived = prometheus.NewDesc("spotter_queue_received_total", "Messages received, including redeliveries.",
		nil, nil)
	metricMessages = prometheus.NewDesc("spotter_queue_messages_total", "Messages read, by topic.", []string{"kind"}, nil)
	metricOutcomes = prometheus.NewDesc("spotter_queue_outcomes_total",
		"Messages that were deleted, redelivered, reported past events or could not be read.", []string{"outcome"}, nil)
	metricFailures = prometheus.NewDesc("spotter_queue_failed_requests_total", "Requests to the queue that failed.",
		nil, nil)
	metricLast = prometheus.NewDesc("spotter_queue_last_message_timestamp_seconds",
		"Time of the newest event that a message reported.", nil, nil)
)

var _ prometheus.Collector = (*Queue)(nil)

// Describe implements [prometheus.Collector].
func (q *Queue) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{metricUp, metricRival, metricReceived, metricMessages, metricOutcomes,
		metricFailures, metricLast} {
		to <- d
	}
}

// Collect implements [prometheus.Collector]. Only the leader reads the queue, so all values of
// other replicas are 0.
func (q *Queue) Collect(to chan<- prometheus.Metric) {
	s := q.state.get()
	c := s.counts
	gauge := func(d *prometheus.Desc, is bool) {
		v := 0.0
		if is {
			v = 1
		}
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v)
	}
	counter := func(d *prometheus.Desc, n int, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
	}
	gauge(metricUp, s.running && s.err == nil)
	gauge(metricRival, q.rivals.shared() != nil)
	counter(metricReceived, c.Received)
	counter(metricMessages, c.Interruptions, "interruption")
	counter(metricMessages, c.Recommendations, "rebalance-recommendation")
	counter(metricMessages, c.StateChanges, "state-change")
	counter(metricMessages, c.ScheduledChanges, "scheduled-change")
	counter(metricMessages, c.Lifecycle, "lifecycle")
	counter(metricMessages, c.Unknown, "unknown")
	counter(metricOutcomes, c.Deleted, "deleted")
	counter(metricOutcomes, c.Repeated, "repeated")
	counter(metricOutcomes, c.Late, "late")
	counter(metricOutcomes, c.Malformed, "malformed")
	counter(metricFailures, c.Failures)
	if s.sent != 0 {
		to <- prometheus.MustNewConstMetric(metricLast, prometheus.GaugeValue, float64(s.sent)/1000)
	}
}
