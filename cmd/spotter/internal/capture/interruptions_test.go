package capture

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/history"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/kube"
)

// nodeOf is a node that exists between the hours from and to after begin.
func nodeOf(name, instance, kind, capacity string, begin policy.Time, from, to float64) history.Node {
	at := func(hours float64) policy.Time { return begin.Add(time.Duration(hours * float64(time.Hour))) }
	return history.Node{Name: name, Instance: instance, From: at(from), To: at(to), Kind: &history.NodeKind{Labels: map[string]string{
		"node.kubernetes.io/instance-type": kind, "topology.kubernetes.io/zone": "us-east-1a", "karpenter.sh/capacity-type": capacity,
	}}}
}

// TestInterrupted counts what was taken of this cluster alone, in the hours of nodes of
// which it is known which instance they are.
func TestInterrupted(t *testing.T) {
	begin := policy.TimeOf(time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC))
	trail := func(instances ...string) string {
		return `{"Records":[{"eventTime":"2026-01-02T04:00:00Z","eventSource":"ec2.amazonaws.com","eventName":"BidEvictedEvent","serviceEventDetails":{"instanceIdSet":["` + strings.Join(instances, `","`) + `"]}}]}`
	}
	const head = "timestamp,resource-region,spot-total-interruptions-inst,spot-total-usage-hrs-inst\n2026-01-02T01:00:00Z,"
	known := []history.Node{
		nodeOf("ip-1", "i-0a", "m5.large", "spot", begin, 0, 4), nodeOf("ip-1", "i-0b", "m5.large", "spot", begin, 4, 10),
		nodeOf("i-0c.ec2.internal", "", "m5.large", "spot", begin, 0, 4), nodeOf("ip-2", "i-0d", "m5.large", "on-demand", begin, 0, 10),
	}
	unknown := nodeOf("ip-3", "", "m5.large", "spot", begin, 0, 8)
	google := nodeOf("gke-a", "", "n2-standard-4", "spot", begin, 0, 5)
	for name, c := range map[string]struct {
		text  string
		nodes []history.Node
		want  history.Count
		said  string
	}{
		"known": {trail("i-0a", "i-0c", "i-0d", "i-0x"), known, history.Count{N: 2, Hours: 14},
			"4 interruptions, 2 of them of Spot nodes of this cluster and 2 of no known node"},
		"partly": {trail("i-0a"), append([]history.Node{unknown}, known...), history.Count{N: 1, Hours: 14},
			"for 1 of 4 Spot nodes no source gives"},
		"late": {trail("i-0b"), []history.Node{nodeOf("ip-1", "i-0b", "m5.large", "spot", begin, 5, 6)},
			history.Count{Hours: 1}, "and 1 of no known node"},
		"google": {`[{"timestamp":"2026-01-02T05:00:00Z","protoPayload":{"methodName":"compute.instances.preempted","resourceName":"projects/p/zones/z/instances/gke-a"}}]`, []history.Node{google}, history.Count{N: 1, Hours: 5}, "1 of them of Spot nodes"},
		"regions": {head + "us-east-1,3,90\n2026-01-02T01:00:00Z,eu-west-1,5,10\n", known, history.Count{N: 3, Hours: 90},
			"1 regions without nodes of this cluster are skipped"},
		"unknown": {trail("i-0a"), []history.Node{unknown}, history.Count{}, ""},
		"nowhere": {head + "eu-west-1,5,10\n", known, history.Count{}, ""},
	} {
		path := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		h := &history.History{From: begin, To: begin.Add(10 * time.Hour), Nodes: c.nodes, Reclaims: history.Count{N: 7, Source: "a metric"}}
		err := (&sinceFlags{interruptions: []string{path}}).interrupted(t.Context(), h, &kube.CapacityResolver{})
		if c.said == "" {
			if err == nil || h.Reclaims.N != 7 {
				t.Errorf("%s: %v, %+v", name, err, h.Reclaims)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := h.Reclaims; got.N != c.want.N || got.Hours != c.want.Hours || got.Source == "a metric" {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
		if said := strings.Join(h.Uncertain, "\n"); !strings.Contains(said, c.said) || !strings.Contains(said, "; a metric counted 7") {
			t.Errorf("%s: said is %q, want %q", name, said, c.said)
		}
	}
}

// TestIntensityElsewhere takes a rate that was counted in other hours than the cluster's, and
// compares as many reclaims as that makes of its own.
func TestIntensityElsewhere(t *testing.T) {
	was := &figure{spot: 500, total: 500, reclaims: history.Count{N: 40, Source: "x", Hours: 1000}}
	is := &figure{spot: 1000, total: 500, reclaimed: 20, reclaims: history.Count{N: 11}}
	if x, said := intensity(was, is); x != 2 || !strings.Contains(said, "40 in 1000 Spot node-hours by x, 0.04 per node-hour") {
		t.Errorf("%v, %q", x, said)
	}
	if said := deviation(was, is); !strings.Contains(said, "reclaims 11 for 20") {
		t.Error(said)
	}
}
