package history_test

import (
	"fmt"
	"iter"
	"net/url"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/history"
	"github.com/spotter-dev/spotter/cmd/spotter/internal/history/historytest"
	"github.com/spotter-dev/spotter/policy"
)

// The cluster whose metrics are read: nodes that exist for a day, services whose replicas change
// every hour, and jobs that are recreated every hour.
const (
	benchServices = 500
	benchJobs     = 100
)

// manyNodes makes the series of such a cluster for each request.
func manyNodes(start policy.Time, nodes int) historytest.Source {
	const day, hour = policy.Time(24 * 60 * 60 * 1000), policy.Time(60 * 60 * 1000)
	always := func(policy.Time) (float64, bool) { return 1, true }
	return func(q historytest.Query) iter.Seq[historytest.Series] {
		return func(yield func(historytest.Series) bool) {
			switch {
			case q.Aggregation == "count" && q.Metric == "kube_node_created":
				yield(historytest.Series{At: always})
			case q.Metric == "kube_node_created", q.Metric == "kube_node_labels":
				for i := range nodes {
					first := start - day + policy.Time(i)*day/policy.Time(nodes)
					for k := max(0, (q.From-first)/day); ; k++ {
						begun := first + k*day
						if begun >= q.To {
							break
						}
						labels := []string{"node", fmt.Sprintf("ip-10-%d-%d.ec2.internal", i, k)}
						if q.Metric == "kube_node_labels" {
							yield(historytest.Series{Labels: append(labels, "label_node_kubernetes_io_instance_type", "m5."+strconv.Itoa(i%9)+"xlarge",
								"label_topology_kubernetes_io_zone", "us-east-1"+string(rune('a'+i%3)), "label_karpenter_sh_capacity_type", "spot"), At: always})
							continue
						}
						yield(historytest.Series{Labels: labels, At: func(at policy.Time) (float64, bool) {
							return float64(begun / 1000), at >= begun && at < begun+day
						}})
					}
				}
			case q.Metric == "kube_deployment_spec_replicas":
				for i := range benchServices {
					yield(historytest.Series{Labels: []string{"namespace", "team", "deployment", "app-" + strconv.Itoa(i)},
						At: func(at policy.Time) (float64, bool) {
							return float64(10 + (int(at/hour)+i)%24), true
						}})
				}
			case q.Metric == "kube_pod_container_resource_requests":
				for i := range benchServices {
					yield(historytest.Series{Labels: []string{"namespace", "team", "created_by_kind", "ReplicaSet",
						"created_by_name", "app-" + strconv.Itoa(i) + "-abcde", "resource", "cpu"}, At: always})
				}
			case q.Metric == "kube_job_status_start_time", q.Metric == "kube_job_status_completion_time", q.Metric == "kube_job_owner":
				for i := range benchJobs {
					for at := q.From - q.From%hour; at < q.To; at += hour {
						v := float64(at / 1000)
						if q.Metric == "kube_job_status_completion_time" {
							v += 600
						}
						yield(historytest.Series{Labels: []string{"namespace", "team", "job_name",
							fmt.Sprintf("cron-%d-%d", i, at/60_000), "owner_name", "cron-" + strconv.Itoa(i)},
							At: func(policy.Time) (float64, bool) { return v, true }})
					}
				}
			}
		}
	}
}

// readDays reads the given number of days of metrics, and returns the peak size of the heap in
// bytes.
func readDays(t testing.TB, days, nodes int) (h *history.History, most uint64) {
	start := policy.TimeOf(time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC))
	at, err := url.Parse(historytest.New(t, manyNodes(start, nodes)).URL)
	if err != nil {
		t.Fatal(err)
	}
	p := &history.Prometheus{Client: history.Client{URL: at, Tries: 1}}
	p.Progress = func(float64) {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		most = max(most, m.HeapInuse)
	}
	if h, err = p.Read(t.Context(), start, start.Add(time.Duration(days)*24*time.Hour)); err != nil {
		t.Fatal(err)
	}
	return h, most
}

// TestMemory reads two weeks, and has the heap hold no more than what changed.
func TestMemory(t *testing.T) {
	const nodes, days = 100, 15
	h, most := readDays(t, days, nodes)
	if n := len(h.Nodes); n < nodes*days || n > nodes*(days+1) || len(h.Workloads) != benchServices || len(h.Jobs) != benchJobs {
		t.Errorf("%d lives of %d nodes, %d workloads, %d jobs", n, nodes, len(h.Workloads), len(h.Jobs))
	}
	if most > 200<<20 {
		t.Errorf("the heap held %d MB", most>>20)
	}
}

// BenchmarkHistoryYear reads a year of a thousand nodes.
func BenchmarkHistoryYear(b *testing.B) {
	for b.Loop() {
		h, most := readDays(b, 365, 1000)
		b.ReportMetric(float64(most)/(1<<20), "heap-MB")
		b.ReportMetric(float64(len(h.Nodes)), "nodes")
	}
}
