package queue_test

import (
	"maps"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/spotter-dev/spotter/live/queue"
)

// metricsOf returns what a scraper is reported a queue, by name and label.
func metricsOf(t *testing.T, q *queue.Queue) map[string]float64 {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	if err := r.Register(q); err != nil {
		t.Fatal(err)
	}
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			all[name] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return all
}

// A scraper is reported every message once, whatever became of it.
func TestMetricsOfMessages(t *testing.T) {
	s := prepare(t, func(c *queue.Config) { c.ReceivesMax = 1 })
	now := time.Now().Truncate(time.Second)
	want := map[string]float64{
		"spotter_queue_up": 0, "spotter_queue_rival": 0, "spotter_queue_received_total": 0, "spotter_queue_failed_requests_total": 0,
		"spotter_queue_messages_total interruption": 0, "spotter_queue_messages_total rebalance-recommendation": 0,
		"spotter_queue_messages_total state-change": 0, "spotter_queue_messages_total scheduled-change": 0,
		"spotter_queue_messages_total lifecycle": 0, "spotter_queue_messages_total unknown": 0,
		"spotter_queue_outcomes_total deleted": 0, "spotter_queue_outcomes_total repeated": 0,
		"spotter_queue_outcomes_total late": 0, "spotter_queue_outcomes_total malformed": 0,
	}
	if got := metricsOf(t, s.queue); !maps.Equal(got, want) {
		t.Errorf("before it runs: %v", got)
	}
	s.server.Send(interruption("1", "i-1", now), interruption("1", "i-1", now), interruption("2", "i-2", now.Add(-time.Hour)),
		recommendation("3", "i-3", now), health("4", now.Add(time.Hour)), "what cannot be read",
		event("5", "EC2 Instance State-change Notification", "aws.ec2", now, `{"instance-id":"i-4","state":"terminated"}`),
		event("6", "Some Other Event", "aws.other", now, `{}`), `{"LifecycleTransition":"autoscaling:EC2_INSTANCE_TERMINATING"}`)
	s.run(t)
	s.emptied(t)
	eventually(t, "all are counted as deleted", func() bool { return s.queue.Counts().Deleted == 9 })
	for name, n := range map[string]float64{
		"_up": 1, "_received_total": 9, "_messages_total interruption": 2, "_messages_total rebalance-recommendation": 1,
		"_messages_total state-change": 1, "_messages_total scheduled-change": 1, "_messages_total lifecycle": 1, "_messages_total unknown": 1,
		"_outcomes_total deleted": 9, "_outcomes_total repeated": 1, "_outcomes_total late": 1, "_outcomes_total malformed": 1,
		"_last_message_timestamp_seconds": float64(now.Unix()),
	} {
		want["spotter_queue"+name] = n
	}
	if got := metricsOf(t, s.queue); !maps.Equal(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
}
