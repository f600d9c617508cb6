package history_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/history"
	"github.com/spotter-dev/spotter/cmd/spotter/internal/history/historytest"
	"github.com/spotter-dev/spotter/policy"
)

var begin = policy.TimeOf(time.Date(2026, 3, 2, 5, 0, 0, 0, time.UTC))

func after(hours float64) policy.Time {
	return begin.Add(time.Duration(hours * float64(time.Hour)))
}

func spotNode(name string, from, to float64) history.Node {
	return history.Node{Name: name, From: after(from), To: after(to), Kind: &history.NodeKind{Labels: map[string]string{
		"node.kubernetes.io/instance-type": "m5.large", "topology.kubernetes.io/zone": "us-east-1a", "karpenter.sh/capacity-type": "spot", "karpenter.sh/nodepool": "general",
		"eks.amazonaws.com/capacityType": "SPOT",
	}}}
}

// twoDays is a cluster that does a little of everything in two days.
func twoDays() *historytest.Cluster {
	web := history.Pod{Requests: policy.Resources{CPU: 500, Memory: 1 << 30}, Start: 40 * time.Second}
	c := &historytest.Cluster{
		From: begin.Add(-24 * time.Hour), To: after(100),
		Nodes: []history.Node{spotNode("a", -10, 50), spotNode("b", 3.5, 20), spotNode("c", 47, 50), spotNode("before", -5, -1)},
		Workloads: []history.Workload{
			{Name: "shop/web", Kind: policy.KindDeployment, Replicas: []history.Change{{At: after(-20), N: 3},
				{At: after(8), N: 6}, {At: after(20), N: 2}}, Rollouts: []policy.Time{after(9), after(11.97)}, Pod: web},
			{Name: "shop/db", Kind: policy.KindStatefulSet, Replicas: []history.Change{{At: after(-20), N: 1}}, Pod: web},
			{Name: "shop/late", Kind: policy.KindDeployment, Replicas: []history.Change{{At: after(-20), N: -1}, {At: after(10), N: 4}, {At: after(30), N: -1}}, Rollouts: []policy.Time{after(10)}, Pod: web}, // it is made then
			{Name: "shop/none", Kind: policy.KindDeployment, Replicas: []history.Change{{At: after(-20), N: 0}}},
		},
		Jobs:     []history.Job{{Name: "batch/report", Took: 90 * time.Minute, Parallelism: 2, Completions: 2, Pod: web}},
		Reclaims: []policy.Time{after(-3), after(4), after(9), after(20), after(60)},
		Hourly:   2.5,
	}
	c.Jobs = append(c.Jobs, history.Job{ // just before slices of time meet, where a query looks twice
		Name: "batch/short", Took: time.Minute, Parallelism: 1, Completions: 1, Pod: web, Runs: []policy.Time{after(6.95), after(12.97)},
	})
	for h := -1.0; h < 50; h += 6 {
		c.Jobs[0].Runs = append(c.Jobs[0].Runs, after(h))
	}
	return c
}

// read reads two days of a server.
func read(t testing.TB, s *historytest.Server, cache string) (*history.History, error) {
	t.Helper()
	at, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	p := &history.Prometheus{Client: history.Client{URL: at, Cache: cache, Tries: 3, Wait: time.Millisecond}}
	return p.Read(t.Context(), begin, after(48))
}

func mustRead(t *testing.T, s *historytest.Server, cache string) *history.History {
	t.Helper()
	h, err := read(t, s, cache)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// TestRead reads replicas, nodes, jobs, reclaims and dollars out of metrics.
func TestRead(t *testing.T) {
	c := twoDays()
	c.Nodes[2].Kind.Labels[history.LabelControlPlane] = "true"
	h := mustRead(t, historytest.New(t, c.Source), "")
	if h.Nodes[0].Kind.Labels[history.LabelControlPlane] != "" || h.Nodes[2].Kind.Labels[history.LabelControlPlane] == "" {
		t.Errorf("of the control plane: %+v", h.Nodes[2].Kind)
	}
	want := map[string][]history.Change{
		"shop/web":  {{At: begin, N: 3}, {At: after(8), N: 6}, {At: after(20), N: 2}},
		"shop/db":   {{At: begin, N: 1}},
		"shop/late": {{At: begin, N: 0}, {At: after(10), N: 4}, {At: after(30), N: 0}},
	}
	for _, w := range h.Workloads {
		if !reflect.DeepEqual(w.Replicas, want[w.Name]) {
			t.Errorf("%s: %v, want %v", w.Name, w.Replicas, want[w.Name])
		}
		if rollouts := map[string][]policy.Time{"shop/web": {after(9), after(11.97)}}[w.Name]; !slices.Equal(w.Rollouts, rollouts) {
			t.Errorf("%s: rolled out at %v, want %v", w.Name, w.Rollouts, rollouts)
		}
		if w.Start != 40*time.Second || w.Requests.CPU != 500 || w.Requests.Memory != 1<<30 {
			t.Errorf("%s: pods %+v", w.Name, w.Pod)
		}
		delete(want, w.Name)
	}
	if len(want) > 0 {
		t.Errorf("not read: %v", want)
	}
	var nodes []string
	for _, n := range h.Nodes {
		nodes = append(nodes, fmt.Sprintf("%s %.2f-%.2f %s", n.Name, n.From.Sub(begin).Hours(), n.To.Sub(begin).Hours(),
			n.Kind.Labels["eks.amazonaws.com/capacityType"]))
	}
	if got, want := strings.Join(nodes, "; "), "a 0.00-48.00 SPOT; b 3.50-19.99 SPOT; c 47.00-48.00 SPOT"; got != want {
		t.Errorf("nodes %s\nwant  %s", got, want)
	}
	if len(h.Jobs) != 3 {
		t.Fatalf("jobs: %+v", h.Jobs)
	}
	if j := h.Jobs[2]; j.Name != "batch/short" || j.Took != time.Minute ||
		!reflect.DeepEqual(j.Runs, []policy.Time{after(6.95), after(12.97)}) {
		t.Errorf("short jobs: %+v", j)
	}
	cut, whole := h.Jobs[0], h.Jobs[1] // the one that is running at the start of the range, and those that start in it
	if cut.Took != 30*time.Minute || len(cut.Runs) != 1 || cut.Runs[0] != begin {
		t.Errorf("the job that went on: %+v", cut)
	}
	if whole.Name != "batch/report" || whole.Took != 90*time.Minute || len(whole.Runs) != 8 ||
		whole.Runs[0] != after(5) || whole.Parallelism != 2 || whole.Completions != 2 || whole.Requests.CPU != 500 {
		t.Errorf("jobs: %+v", whole)
	}
	if h.Reclaims != (history.Count{N: 3, Source: "karpenter_nodeclaims_disrupted_total"}) {
		t.Errorf("reclaims: %+v", h.Reclaims)
	}
	if !h.HasDollars || h.Dollars < 119.9 || h.Dollars > 120.1 {
		t.Errorf("dollars: %v", h.Dollars)
	}
	if most, mean := h.Count(); most != 2 || mean < 1.36 || mean > 1.37 {
		t.Errorf("nodes: at most %v, on average %v", most, mean)
	}
}

// faultIf returns a fault with the code and text, or nil if failed is false.
func faultIf(failed bool, code int, text string) *historytest.Fault {
	if !failed {
		return nil
	}
	return &historytest.Fault{Code: code, Text: text}
}

// TestReadFaults rides out what passes, divides what is too much, and names what does not
// pass. Nothing is counted twice.
func TestReadFaults(t *testing.T) {
	want := mustRead(t, historytest.New(t, twoDays().Source), "")
	for name, fault := range map[string]func(int, time.Time, time.Time) *historytest.Fault{
		"busy": func(call int, _, _ time.Time) *historytest.Fault {
			return faultIf(call%3 == 0, http.StatusServiceUnavailable, "busy")
		},
		"cut off": func(call int, _, _ time.Time) *historytest.Fault {
			if call%4 == 1 {
				return &historytest.Fault{Truncate: true}
			}
			return nil
		},
		"too much": func(_ int, from, to time.Time) *historytest.Fault {
			return faultIf(to.Sub(from) > 3*time.Hour, http.StatusUnprocessableEntity,
				"query processing would load too many samples into memory")
		},
	} {
		s := historytest.New(t, twoDays().Source)
		s.Fault = fault
		if got := mustRead(t, s, ""); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v\nwant %+v", name, got, want)
		}
	}
	unmatched := historytest.New(t, twoDays().Source)
	unmatched.Fault = func(call int, _, _ time.Time) *historytest.Fault { // some query of every slice
		return faultIf(call%27 == 18, http.StatusUnprocessableEntity, "found duplicate series for the match group")
	}
	if h := mustRead(t, unmatched, ""); !strings.Contains(strings.Join(h.Uncertain, "\n"),
		"could not be read at all times: series do not match each other: 422") || len(h.Nodes) != len(want.Nodes) {
		t.Errorf("where one query does not match: %q, %d nodes", h.Uncertain, len(h.Nodes))
	}
	s := historytest.New(t, twoDays().Source)
	s.Fault = func(int, time.Time, time.Time) *historytest.Fault {
		return faultIf(true, http.StatusUnauthorized, "no token")
	}
	if _, err := read(t, s, ""); err == nil || !strings.Contains(err.Error(), "401 Unauthorized: no token") || s.Calls() != 1 {
		t.Errorf("a call that is not allowed: %v after %d calls", err, s.Calls())
	}
	empty := historytest.New(t, (&historytest.Cluster{}).Source)
	if _, err := read(t, empty, ""); !errors.Is(err, history.ErrNothing) {
		t.Errorf("of no metrics: %v", err)
	}
}

// TestReadGoesOn keeps answers: what was read before an interruption is not asked again.
func TestReadGoesOn(t *testing.T) {
	cache := filepath.Join(t.TempDir(), "cache")
	want := mustRead(t, historytest.New(t, twoDays().Source), "")
	s := historytest.New(t, twoDays().Source)
	s.Fault = func(call int, _, _ time.Time) *historytest.Fault {
		return faultIf(call == 60, http.StatusForbidden, "no more")
	}
	if _, err := read(t, s, cache); err == nil {
		t.Fatal("a call that is refused is no error")
	}
	before := s.Calls()
	got := mustRead(t, s, cache)
	all := s.Calls() - before
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
	fresh := historytest.New(t, twoDays().Source)
	mustRead(t, fresh, "")
	if all != fresh.Calls()-59 {
		t.Errorf("%d calls to go on after 59, of %d", all, fresh.Calls())
	}
	if entries, err := os.ReadDir(cache); err != nil || len(entries) != fresh.Calls() {
		t.Errorf("%d answers are kept of %d, %v", len(entries), fresh.Calls(), err)
	}
}

// TestReadGaps assumes that objects that existed before a gap in the metrics exist throughout it,
// and reports the gap. An object that is missing while others were scraped did not exist.
func TestReadGaps(t *testing.T) {
	c := twoDays()
	c.Gone = []policy.Time{after(6), after(9), after(21), after(21.05)}
	c.Unlabelled = true
	h := mustRead(t, historytest.New(t, c.Source), "")
	text := strings.Join(h.Uncertain, "\n")
	for _, want := range []string{
		"nothing was recorded for 3h0m0s in 1 gaps of more than 5m0s, the longest from 2026-03-02T11:00:00Z to 2026-03-02T14:00:00Z",
		"kube_node_labels is not there", "--metric-labels-allowlist=nodes=[", "DaemonSets are those of now",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	for _, w := range h.Workloads {
		if w.Name == "shop/web" && !reflect.DeepEqual(w.Replicas, []history.Change{{At: begin, N: 3}, {At: after(9), N: 6},
			{At: after(20), N: 2}}) {
			t.Errorf("web: %v", w.Replicas)
		}
	}
	if len(h.Nodes) != 3 || h.Nodes[1].Kind != nil {
		t.Errorf("nodes: %+v", h.Nodes)
	}
}
