package keep

import (
	"fmt"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// BenchmarkRecord measures how long a step of 10,000 pods on 1,000 nodes waits for its recording,
// which is the time of the copy. Writing continues in the background.
func BenchmarkRecord(b *testing.B) {
	s := &policy.Snapshot{Now: began}
	for i := range 500 {
		s.Markets = append(s.Markets, policy.Market{
			ID: policy.MarketID(i), Name: fmt.Sprint("market-", i), Offered: true, Price: 50_000, OnDemand: 100_000,
			History: make([]policy.Money, 24),
		})
	}
	s.Pools = []policy.Pool{{Name: "web"}}
	for i := range 1000 {
		s.Nodes = append(s.Nodes, policy.Node{
			ID: policy.NodeID(i), Name: fmt.Sprint("node-", i), Phase: policy.NodeInitialized, Market: policy.MarketID(i % 500),
			Labels: []policy.Label{{Key: "a", Value: "b"}, {Key: "c", Value: "d"}},
		})
	}
	for i := range 10_000 {
		s.Pods = append(s.Pods, policy.Pod{ID: policy.PodID(i), Name: fmt.Sprint("default/pod-", i), Phase: policy.PodReady,
			Node: policy.NodeID(i % 1000)})
	}
	c := DefaultConfig()
	c.Dir = b.TempDir()
	r, err := New(c, testMeta)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		b.StopTimer()
		for len(r.queue) > 0 {
			time.Sleep(time.Millisecond)
		}
		s.Now += 600_000
		s.Pods[int(s.Now/600_000)%len(s.Pods)].Node++
		b.StartTimer()
		if err := r.Record(b.Context(), s, &policy.Memory{}, &policy.Plan{Wake: s.Now + 1}); err != nil {
			b.Fatal(err)
		}
	}
	if err := r.Close(b.Context()); err != nil {
		b.Fatal(err)
	}
}
