package main

import (
	"context"
	"fmt"
	"reflect"
	"runtime"
	"syscall"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/karpenter/pkg/controllers/disruption"

	"github.com/spotter-dev/spotter/sim/karpenter"
)

// A sizedCluster is a cluster of which no node can go: all nodes are full but for a little.
type sizedCluster struct{ nodes, podsPerNode, pools, types int }

// sizes are those of which the time of a simulation is measured.
var sizes = []sizedCluster{
	{30, 10, 1, 50}, {100, 10, 1, 50}, {300, 10, 1, 50}, {100, 3, 1, 50}, {100, 30, 1, 50},
	{100, 10, 5, 50}, {100, 10, 20, 50}, {100, 10, 1, 200}, {100, 10, 1, 600},
}

// measure prints how much processor time single-node consolidation takes for each candidate.
func measure() error {
	fmt.Println("nodes  pods/node  pools  types  ms/candidate")
	for _, x := range sizes {
		took, n, err := x.measure()
		if err != nil {
			return err
		}
		fmt.Printf("%5d  %9d  %5d  %5d  %12.2f\n", x.nodes, x.podsPerNode, x.pools, x.types, took.Seconds()*1000/float64(n))
	}
	return nil
}

// measure returns how long all candidates took and how many there were.
func (x sizedCluster) measure() (time.Duration, int, error) {
	s := x.state()
	c, err := newClusterOf(s, func(c client.Client) client.Client {
		return &rememberingClient{Client: c, lists: map[string]client.ObjectList{}}
	})
	if err != nil {
		return 0, 0, err
	}
	q := disruption.NewQueue(c.client, silence{}, c.state, c.clock, c.provisioner)
	method := c.method(karpenter.SingleNode, q)
	list, err := c.candidates(s, method, q)
	if err != nil {
		return 0, 0, fmt.Errorf("listing candidates: %w", err)
	}
	const tried = 15 // as the first candidates take as long as the others
	list = list[:min(tried, len(list))]
	budgets, err := disruption.BuildDisruptionBudgetMapping(c.ctx, c.state, c.clock, c.client, c.provider, silence{},
		method.Reason())
	if err != nil {
		return 0, 0, fmt.Errorf("reading budgets: %w", err)
	}
	runtime.GC()
	from := processorTime()
	cmds, err := method.ComputeCommands(c.ctx, budgets, list...)
	took := processorTime() - from
	if err != nil {
		return 0, 0, fmt.Errorf("deciding: %w", err)
	}
	if len(cmds) > 0 {
		return 0, 0, fmt.Errorf("%+v: a node can go", x)
	}
	return took, len(list), nil
}

func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// state returns a cluster of that size.
func (x sizedCluster) state() *State {
	s := &State{}
	for i := range x.pools {
		s.Pools = append(s.Pools, Pool{Name: fmt.Sprintf("pool-%02d", i), Policy: "WhenEmptyOrUnderutilized",
			ConsolidateAfter: 30,
			Budgets:          []Budget{{Nodes: "100%"}}})
	}
	for i := range x.types {
		t := Type{Name: fmt.Sprintf("type-%03d", i), Arch: "amd64", Family: fmt.Sprintf("family-%d", i%20), CPU: 4,
			Memory: 16, Pods: 110}
		t.CPU, t.Memory = t.CPU<<(i%3), t.Memory<<(i%3)
		for zone := range 3 {
			for _, capacity := range []string{"spot", "on-demand"} {
				t.Offerings = append(t.Offerings, Offering{Zone: fmt.Sprintf("zone-%d", zone), Capacity: capacity, Available: true,
					Price: t.CPU*50_000 + int64(i)})
			}
		}
		s.Types = append(s.Types, t)
	}
	free := s.Types[0].allocatable()
	pods := int64(x.podsPerNode)
	s.Workloads = []Workload{{Name: "web", Labels: map[string]string{"app": "web"}, CPU: free.CPU / pods,
		Memory: free.Memory / pods * 9 / 10}}
	for i := range x.nodes {
		n := Node{Name: fmt.Sprintf("node-%04d", i), Pool: s.Pools[i%x.pools].Name, Type: s.Types[0].Name, Zone: "zone-0",
			Capacity: "spot",
			Phase:    "initialized", Age: 3600, Initialized: 3570, LastPodEvent: 3000, Consolidable: true}
		s.Nodes = append(s.Nodes, n)
		for range pods {
			s.Pods = append(s.Pods, Pod{Node: n.Name, Age: 3000})
		}
	}
	return s
}

// A rememberingClient lists what it listed before, as Karpenter's cache does without reading
// objects from a server.
type rememberingClient struct {
	client.Client
	lists map[string]client.ObjectList
}

// List implements client.Reader.
func (r *rememberingClient) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	o := (&client.ListOptions{}).ApplyOptions(opts)
	key := fmt.Sprintf("%T %v %v %s", list, o.LabelSelector, o.FieldSelector, o.Namespace)
	if kept, ok := r.lists[key]; ok {
		reflect.ValueOf(list).Elem().Set(reflect.ValueOf(kept.DeepCopyObject()).Elem())
		return nil
	}
	if err := r.Client.List(ctx, list, opts...); err != nil {
		return err
	}
	r.lists[key] = list.DeepCopyObject().(client.ObjectList)
	return nil
}
