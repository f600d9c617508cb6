package history_test

import (
	"errors"
	"iter"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/history"
	"github.com/spotter-dev/spotter/cmd/spotter/internal/history/historytest"
	"github.com/spotter-dev/spotter/policy"
)

// seriesOf are the nodes of one cluster, or those that one of several scrapers has of it.
type seriesOf struct {
	nodes    []string
	labels   []string
	from, to float64 // hours in which there are any
}

// survey serves twoDays, whose kube_node_created has the series of all when it is asked with all of
// its labels.
func survey(t *testing.T, all ...seriesOf) *historytest.Server {
	t.Helper()
	base := twoDays().Source
	return historytest.New(t, func(q historytest.Query) iter.Seq[historytest.Series] {
		if q.Metric != "kube_node_created" || !strings.HasPrefix(q.Aggregation, "max without") {
			return base(q)
		}
		return func(yield func(historytest.Series) bool) {
			for _, x := range all {
				for i, name := range x.nodes {
					yield(historytest.Series{Labels: append([]string{"node", name}, x.labels...), At: func(at policy.Time) (float64, bool) {
						return float64(1000 + i), at >= after(x.from) && at < after(x.to)
					}})
				}
			}
		}
	})
}

func readCluster(t *testing.T, s *historytest.Server, nodes ...string) (*history.History, error) {
	t.Helper()
	at, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, n := range nodes {
		known[n] = true
	}
	return (&history.Prometheus{Client: history.Client{URL: at, Tries: 1, Wait: time.Millisecond},
		Nodes: known}).Read(t.Context(), begin, after(48))
}

// TestSeveralClusters refuses metrics of several clusters and names the label that tells them
// apart, and takes copies, shards and a label that was changed for one cluster.
func TestSeveralClusters(t *testing.T) {
	of := func(from, to float64, labels string, nodes ...string) seriesOf {
		return seriesOf{nodes: nodes, labels: strings.FieldsFunc(labels, func(r rune) bool { return r == '=' || r == ' ' }), from: from, to: to}
	}
	for name, c := range map[string]struct {
		all      []seriesOf
		label    string
		selector string
		unsure   string
	}{
		"one": {all: []seriesOf{of(0, 48, "job=k cluster=a", "a", "b")}},
		"by cluster": {all: []seriesOf{of(0, 48, "job=k cluster=x env=p", "x", "y"),
			of(0, 48, "job=k cluster=a env=q", "a", "b")}, label: "cluster", selector: `cluster="a"`},
		"by another label": {all: []seriesOf{of(0, 48, "job=k zone=1 env=p", "x", "y"),
			of(0, 48, "job=k zone=1 env=q", "a", "b", "c")}, label: "env", selector: `env="q"`},
		"one has no label": {all: []seriesOf{of(0, 48, "job=k", "a", "b"), of(0, 48, "job=k k8s_cluster=x", "x")},
			label: "k8s_cluster", selector: `k8s_cluster=""`},
		"a cluster for a while": {all: []seriesOf{of(0, 48, "cluster_id=a", "a", "b"), of(10, 20, "cluster_id=x", "x")},
			label: "cluster_id", selector: `cluster_id="a"`},
		"some names are alike": {all: []seriesOf{of(0, 48, "site=1", "n1", "n2", "a", "b", "c", "d"),
			of(0, 48, "site=2", "n3", "a", "n5")}, label: "site", selector: `site="1"`},
		"none of them is known": {all: []seriesOf{of(0, 48, "cluster=x", "x", "y"), of(0, 48, "cluster=z", "z")},
			label: "cluster", selector: `cluster="x"`},
		"copies": {all: []seriesOf{of(0, 48, "prometheus_replica=0", "a", "b", "x"),
			of(0, 48, "prometheus_replica=1", "a", "b")}},
		"shards":                 {all: []seriesOf{of(0, 48, "instance=1 pod=k-0", "a", "old"), of(0, 48, "instance=2 pod=k-1", "b", "older")}},
		"shards of another name": {all: []seriesOf{of(0, 48, "part=1", "a", "old"), of(0, 48, "part=2", "b", "older")}},
		"another label in time":  {all: []seriesOf{of(0, 20, "job=old", "old", "older"), of(20, 48, "job=new", "a", "b")}},
		"it got its label":       {all: []seriesOf{of(0, 20, "job=k", "old", "older"), of(20, 48, "job=k cluster=a", "a", "b")}},
		"undecided": {all: []seriesOf{of(0, 48, "env=p", "x", "y"), of(0, 48, "env=q", "z")},
			unsure: "values of the label env have different nodes"},
	} {
		known := []string{"a", "b", "c", "d"}
		if name == "undecided" || name == "none of them is known" {
			known = nil
		}
		h, err := readCluster(t, survey(t, c.all...), known...)
		if c.label == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			} else if text := strings.Join(h.Uncertain, "\n"); strings.Contains(text, "different nodes") != (c.unsure != "") ||
				!strings.Contains(text, c.unsure) {
				t.Errorf("%s: %s", name, text)
			}
			continue
		}
		var several *history.SeveralClustersError
		if !errors.As(err, &several) || several.Label != c.label || several.Selector() != c.selector ||
			!strings.Contains(err.Error(), "are of 2 clusters, by the label "+c.label) {
			t.Errorf("%s: %v, want %s by %s", name, err, c.selector, c.label)
		}
	}
}

// TestCopies counts what several copies of a counter have once.
func TestCopies(t *testing.T) {
	s := survey(t, seriesOf{[]string{"a"}, []string{"replica", "0"}, 0, 48}, seriesOf{[]string{"a"}, []string{"replica", "1"}, 0, 48})
	if _, err := readCluster(t, s); err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, q := range s.Queries() {
		if strings.Contains(q, "karpenter_nodeclaims_disrupted_total") {
			found++
			if q != "max without (replica) (karpenter_nodeclaims_disrupted_total)" {
				t.Error(q)
			}
		}
	}
	if found == 0 {
		t.Error("the counter was not read")
	}
}

// TestExportedLabels reads labels of kube-state-metrics that Prometheus has renamed.
func TestExportedLabels(t *testing.T) {
	want, err := readCluster(t, historytest.New(t, twoDays().Source))
	if err != nil {
		t.Fatal(err)
	}
	base := twoDays().Source
	s := historytest.New(t, func(q historytest.Query) iter.Seq[historytest.Series] {
		if !strings.HasPrefix(q.Aggregation, "count by (renamed)") {
			return base(q)
		}
		return func(yield func(historytest.Series) bool) {
			for _, l := range []string{"namespace", "node"} {
				yield(historytest.Series{Labels: []string{"renamed", l}, At: func(policy.Time) (float64, bool) { return 1, true }})
			}
		}
	})
	got, err := readCluster(t, s)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v\nwant %+v", got, err, want)
	}
	all := strings.Join(s.Queries()[2:], "\n")
	for _, want := range []string{
		`max by (namespace, deployment) (label_replace(label_replace(kube_deployment_spec_replicas, "namespace", "$1", "exported_namespace", "(.+)"), "node", "$1", "exported_node", "(.+)"))`,
		`label_replace(last_over_time(kube_pod_info{created_by_kind=~"ReplicaSet|StatefulSet"}[21600s]), "namespace"`,
		`kube_pod_info{created_by_kind!~"DaemonSet|Node",exported_node!=""}`,
	} {
		if !strings.Contains(all, want) {
			t.Errorf("no query has %s", want)
		}
	}
	if strings.Contains(all, "label_replace(karpenter") {
		t.Error("metrics of Karpenter have no such labels")
	}
}
