package run

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/spotter-dev/spotter/cmd/spotter/config"
	"github.com/spotter-dev/spotter/internal/cli/clitest"
	"github.com/spotter-dev/spotter/live/keep"
	"github.com/spotter-dev/spotter/live/limit"
	"github.com/spotter-dev/spotter/live/metrics"
	"github.com/spotter-dev/spotter/live/queue"
	"github.com/spotter-dev/spotter/live/steady"
	"github.com/spotter-dev/spotter/test/golden"
)

// A metricRow is a metric as the reference has it.
type metricRow struct{ name, kind, help, labels string }

// A teller is a registry that remembers what was registered.
type metricLister struct {
	*prometheus.Registry
	all []prometheus.Collector
}

// Register implements prometheus.Registerer.
func (r *metricLister) Register(c prometheus.Collector) error {
	r.all = append(r.all, c)
	return r.Registry.Register(c)
}

var describedMetric = regexp.MustCompile(`^Desc\{fqName: "([^"]+)", help: ("(?:[^"\\]|\\.)*"), (?:unit: "[^"]*", )?constLabels: \{([^}]*)\}, variableLabels: \{([^}]*)\}`)

// metricsOf returns what a part of the controller registers, in the order of the names.
func metricsOf(t *testing.T, register func(prometheus.Registerer) error) []metricRow {
	t.Helper()
	r := &metricLister{Registry: prometheus.NewPedanticRegistry()}
	if err := register(r); err != nil {
		t.Fatal(err)
	}
	all := map[string]metricRow{}
	for _, c := range r.all {
		for _, x := range describes(t, c) {
			if before, ok := all[x.name]; ok && before != x {
				t.Errorf("%s is described as %v and as %v", x.name, before, x)
			}
			all[x.name] = x
		}
	}
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		x := all[f.GetName()]
		x.kind = strings.ToLower(f.GetType().String())
		all[x.name] = x
	}
	var sorted []metricRow
	for _, x := range all {
		sorted = append(sorted, x)
	}
	slices.SortFunc(sorted, func(a, b metricRow) int { return cmp.Compare(a.name, b.name) })
	return sorted
}

// describes returns what a collector describes. A vector is given a series, so that it
// says of what type it is; what has none yet is taken for what its name says.
func describes(t *testing.T, c prometheus.Collector) []metricRow {
	t.Helper()
	to := make(chan *prometheus.Desc, 100)
	c.Describe(to)
	close(to)
	var all []metricRow
	for d := range to {
		m := describedMetric.FindStringSubmatch(d.String())
		if m == nil {
			t.Fatalf("nobody can read %v", d)
		}
		help, err := strconv.Unquote(m[2])
		if err != nil {
			t.Fatal(err)
		}
		var labels []string
		for _, l := range strings.FieldsFunc(m[3]+","+m[4], func(r rune) bool { return r == ',' }) {
			name, _, _ := strings.Cut(l, "=")
			labels = append(labels, name)
		}
		x := metricRow{name: m[1], kind: "gauge", help: help, labels: strings.Join(labels, ", ")}
		if strings.HasSuffix(x.name, "_total") {
			x.kind = "counter"
		}
		all = append(all, x)
		values := make([]string, len(labels))
		switch v := c.(type) {
		case *prometheus.GaugeVec:
			v.WithLabelValues(values...)
		case *prometheus.CounterVec:
			v.WithLabelValues(values...)
		case *prometheus.HistogramVec:
			v.WithLabelValues(values...)
		}
	}
	return all
}

const metricsHead = `# Metrics

Every metric of ` + "`spotter run`" + `, as it is registered; the page is made of the program. They are served on
` + "`metrics.bindAddress`" + ` of the [configuration](reference-configuration.md), over TLS and to those whom the API server lets get ` + "`/metrics`" + ` ([what it tells](run.md#what-it-tells)).
Beside them stand those of every controller: ` + "`go_…`, `process_…`, `rest_client_…`, `controller_runtime_…` and `workqueue_…`" + `.
What each alert asks for: [Runbook](runbook.md).

A histogram has ` + "`_bucket`, `_sum` and `_count`" + `. Labels are bounded: pools and budgets are as many as you made, markets those
in use and at most a hundred, and no metric of Spotter's own names a node or a pod.

## Alerts and dashboard

The chart ships both, by ` + "`metrics.prometheusRule.enabled` and `metrics.dashboards.enabled`" + `. They are made from a mixin, which stands
alone too. ` + "`_config`" + ` ([its fields](../charts/mixin/config.libsonnet)) selects the series and sets thresholds:

` + "```sh" + `
jb init && jb install github.com/spotter-dev/spotter/charts/mixin@main
cat > ours.libsonnet <<'END'
(import 'github.com/spotter-dev/spotter/charts/mixin/mixin.libsonnet') + { _config+:: { selector: 'job="spotter"' } }
END
jsonnet -J vendor -S -e "std.manifestYamlDoc((import 'ours.libsonnet').prometheusAlerts)" > alerts.yaml
jsonnet -J vendor -c -m dashboards -e "(import 'ours.libsonnet').grafanaDashboards"
` + "```" + `
`

// metricParts are the parts of the controller that have metrics, with the heading
// under which the reference has them.
func metricParts(t *testing.T) []struct {
	title, about string
	all          []metricRow
} {
	t.Helper()
	own := func(compat ...string) []metricRow {
		return metricsOf(t, func(r prometheus.Registerer) error {
			_, err := metrics.New(r, metrics.Config{Compat: compat, Writes: func() []limit.Count { return []limit.Count{{Verb: "patch"}} }, Clock: func() steady.State { return steady.State{} }})
			return err
		})
	}
	plain := own()
	parts := []struct {
		title, about string
		all          []metricRow
	}{
		{"Of every controller", "", plain},
		{"Of the record", "With `recording.dir`. The part `bucket` is there with `recording.bucket`.", metricsOf(t, func(r prometheus.Registerer) error { return registerRecord(r, &keep.Recorder{}, true) })},
		{"Of the queue of notices", "With `notices.queueURL`.", metricsOf(t, func(r prometheus.Registerer) error { return r.Register(&queue.Queue{}) })},
		{"Of the configuration", "With `--config`. It is followed while the controller runs.", metricsOf(t, newReloader(config.Default(), nil, nil, nil).register)},
		{"Of trained models", "Where a policy names a bundle.", metricsOf(t, registerModel)},
	}
	for _, system := range metrics.Systems {
		all := slices.DeleteFunc(own(system), func(x metricRow) bool { return slices.Contains(plain, x) })
		about := "With `metrics.compat: [" + system + "]`, so that dashboards of that system go on."
		if len(all) == 0 {
			about += " It has none beside those of every controller."
		}
		parts = append(parts, struct {
			title, about string
			all          []metricRow
		}{"Under the names of " + system, about, all})
	}
	return parts
}

// registerModel registers the metrics of a bundle that was asked once and failed, so that
// none is missing.
func registerModel(to prometheus.Registerer) error {
	l := &liveModel{state: modelState{dir: "bundle", failures: map[string]int{modelLate: 1}}}
	l.state.total.Calls = 1
	return to.Register(l)
}

// TestReferenceMetrics: the page on metrics is what the parts of the controller
// register.
func TestReferenceMetrics(t *testing.T) {
	var b strings.Builder
	b.WriteString(metricsHead)
	seen, labelled := map[string]bool{}, 0
	for _, part := range metricParts(t) {
		fmt.Fprintf(&b, "\n## %s\n", part.title)
		if part.about != "" {
			fmt.Fprintf(&b, "\n%s\n", part.about)
		}
		for i, x := range part.all {
			if i == 0 {
				b.WriteString("\n| metric | type | labels | what it is |\n|:--|:--|:--|:--|\n")
			}
			if seen[x.name] {
				t.Errorf("%s is of two parts", x.name)
			}
			seen[x.name] = true
			if x.labels != "" {
				labelled++
			}
			if x.kind == "untyped" || x.help == "" {
				t.Errorf("%s is %q and says %q", x.name, x.kind, x.help)
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", x.name, x.kind, x.labels, clitest.Barred(x.help))
		}
	}
	if len(seen) < 60 || labelled < 40 {
		t.Errorf("%d metrics are found, %d of them with labels", len(seen), labelled)
	}
	golden.Hold(t, "../../../../docs/reference-metrics.md", b.String())
}
