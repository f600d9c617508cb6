package eval

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/spotter-dev/spotter/eval/oracle"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/sim"
)

// compared are the metrics that a test case shows unless it names its own.
const compared = "on_demand_bill_usd,on_demand_outage_cost_usd,net_savings_usd,net_savings_pct,net_savings_delta_pct," +
	"net_profit_improvement_pct,improvement_floored,net_savings_vs_1y_usd,net_savings_vs_1y_pct,net_savings_vs_3y_usd," +
	"net_savings_vs_3y_pct,outage_minutes,outage_delta,oracle_usd,regret,attainable_share"

// TestMeasure holds every figure that compares to arithmetic done by hand.
func TestMeasure(t *testing.T) {
	datadriven.Walk(t, "testdata/measure", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			only := compared
			if len(d.CmdArgs) > 0 {
				only = strings.Join(d.CmdArgs[0].Vals, ",")
			}
			m := match{config: &Config{Discount1y: 0.29, Discount3y: 0.45}, bound: &oracle.Bound{}}
			for _, line := range strings.Split(d.Input, "\n") {
				m.read(t, strings.Fields(line))
			}
			values := m.measure()
			var out strings.Builder
			for i := range metrics {
				if strings.Contains(","+only+",", ","+metrics[i].Name+",") && values[i].Known {
					fmt.Fprintf(&out, "%s %s\n", metrics[i].Name, figure(&metrics[i], values[i]))
				}
			}
			return out.String()
		})
	})
}

// figure formats a value with six digits, as many as a reader will check.
func figure(m *Metric, v Value) string {
	if m.YesNo() {
		return strconv.FormatBool(v.V != 0)
	}
	return strconv.FormatFloat(v.V, 'g', 6, 64)
}

// read takes a line of a test case into the match.
func (m *match) read(t *testing.T, words []string) {
	if words[0] == "oracle" {
		m.bound.Cost, m.bound.Slots = amount(t, words[1]), amount(t, words[len(words)-1])
		return
	}
	r := &sim.Result{}
	for _, w := range words[1:] {
		key, value, _ := strings.Cut(w, "=")
		switch key {
		case "bill":
			r.Bill = amount(t, value)
		case "outage":
			r.OutageCost = amount(t, value)
		case "outage-minutes":
			r.OutageMinutes = int64(amount(t, value) / policy.Dollar)
		case "voluntary":
			r.VoluntaryEvictions = int64(amount(t, value) / policy.Dollar)
		case "reclaimed":
			r.ReclaimEvictions = int64(amount(t, value) / policy.Dollar)
		case "pod-days":
			r.PodDays = amount(t, value).Float()
		case "queue": // p95 of the wait in seconds, preemptions and pending workloads, separated by commas
			of := strings.Split(value, ",")
			r.Queues = append(r.Queues, sim.QueueResult{WaitP95: time.Duration(amount(t, of[0]).Float()) * time.Second,
				Preempted: int64(amount(t, of[1]).Float()), Pending: int64(amount(t, of[2]).Float())})
		default:
			t.Fatalf("a test case has no %q", key)
		}
	}
	switch words[0] {
	case "on-demand":
		m.onDemand = r
	case "baseline":
		m.baseline = r
	case "run":
		m.run = r
	default:
		t.Fatalf("a test case has no line %q", words[0])
	}
}

func amount(t *testing.T, s string) policy.Money {
	x, err := strconv.ParseFloat(s, 64)
	if err != nil {
		t.Fatal(err)
	}
	return policy.Dollars(x)
}

// TestMetricNames guards names that other programs rely on.
func TestMetricNames(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range Metrics() {
		if m.Name == "" || m.Unit == "" || !strings.HasSuffix(m.About, ".") || seen[m.Name] {
			t.Errorf("metric %q (unit %q) stands twice or is not described: %q", m.Name, m.Unit, m.About)
		}
		seen[m.Name] = true
	}
	for _, name := range strings.Split(compared, ",") {
		if !seen[name] {
			t.Errorf("there is no metric %s", name)
		}
	}
}
