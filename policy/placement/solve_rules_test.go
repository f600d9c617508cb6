package placement_test

import (
	"slices"
	"testing"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
)

// port returns the host port of a pod. An empty address is every address.
func port(ip string, n int32, protocol string) []policy.HostPort {
	return []policy.HostPort{{IP: ip, Port: n, Protocol: protocol}}
}

// solveOf returns a space for the templates and a batch of pods[i] pods of template i, one template
// after the other. The offers are of one pool, and of nodes of 4 cores.
func solveOf(templates []policy.Template, pods []int, offers ...placement.Offer) (*placement.Space, *placement.Batch) {
	b := &placement.Batch{Offers: slices.Clone(offers)}
	for i := range templates {
		t := &templates[i]
		t.ID, t.Namespace, t.Requests = policy.TemplateID(i), "default", t.Requests.Plus(policy.Resources{CPU: 1000, Memory: testGiB, Pods: 1})
		for range pods[i] {
			b.Pods = append(b.Pods, policy.Pod{ID: policy.PodID(len(b.Pods)), Template: t.ID, Phase: policy.PodPending,
				Node: policy.None, Nominated: policy.None, VolumeZone: policy.None})
		}
	}
	for i := range b.Offers {
		o := &b.Offers[i]
		o.Market, o.Price = policy.MarketID(i), policy.Money(10+i)
		o.Allocatable = o.Allocatable.Plus(policy.Resources{CPU: 4000, Memory: 16 * testGiB, Pods: 20})
		o.Capacity = o.Allocatable
	}
	return placement.New(templates, []string{"a", "b"}), b
}

func zoned(zone string) []policy.Label {
	return []policy.Label{{Key: "topology.kubernetes.io/zone", Value: zone}}
}

// TestSolveOnNode: a node takes as many pods as it can attach volumes for, those that this run
// placed there counted, once for a claim that pods share, whichever pods use a claim that is
// ReadWriteOncePod. No limit is known of a node that has not joined. A node whose kubelet fails
// takes pods that tolerate its taint. Devices are of the kind that is requested, and of pods with
// one host port one runs there.
func TestSolveOnNode(t *testing.T) {
	own, tolerant := []policy.Volume{{}, {}}, []policy.Toleration{{Key: "node.kubernetes.io/not-ready", Exists: true}}
	gpu := func(kind string) policy.Template {
		return policy.Template{Requests: policy.Resources{GPU: 2}, GPUResource: kind}
	}
	gpus := policy.Node{Allocatable: policy.Resources{GPU: 4}, GPUResource: "nvidia.com/gpu", Phase: policy.NodeInitialized}
	for name, c := range map[string]struct {
		template policy.Template
		node     policy.Node
		zone     policy.ZoneID // of volumes
		onNode   int           // of three pods
	}{
		"own claims": {policy.Template{Volumes: own}, policy.Node{VolumesMax: 5, Phase: policy.NodeInitialized}, policy.None, 2},
		"one claim of all": {policy.Template{Volumes: []policy.Volume{{Claim: "c"}}},
			policy.Node{VolumesMax: 1, Phase: policy.NodeInitialized}, policy.None, 3},
		"claim of one pod": {policy.Template{Volumes: []policy.Volume{{Claim: "c", Once: true}}},
			policy.Node{VolumesMax: 1, Phase: policy.NodeInitialized}, policy.None, 3},
		"registered":     {policy.Template{Volumes: own}, policy.Node{VolumesMax: 5, Phase: policy.NodeRegistered}, policy.None, 2},
		"launching":      {policy.Template{Volumes: own}, policy.Node{VolumesMax: 1, Phase: policy.NodeLaunching}, policy.None, 3},
		"volumes here":   {policy.Template{Volumes: []policy.Volume{{Zonal: true}}}, policy.Node{Phase: policy.NodeInitialized}, 0, 3},
		"volumes there":  {policy.Template{Volumes: []policy.Volume{{Zonal: true}}}, policy.Node{Phase: policy.NodeInitialized}, 1, 0},
		"kubelet fails":  {policy.Template{}, policy.Node{Phase: policy.NodeInitialized, NotReady: true}, policy.None, 0},
		"that tolerated": {policy.Template{Tolerations: tolerant}, policy.Node{Phase: policy.NodeInitialized, NotReady: true}, policy.None, 3},
		"two GPUs each":  {gpu("nvidia.com/gpu"), gpus, policy.None, 2},
		"other GPUs":     {gpu("amd.com/gpu"), gpus, policy.None, 0},
		"a host port":    {policy.Template{HostPorts: port("", 80, "TCP")}, policy.Node{Phase: policy.NodeInitialized}, policy.None, 1},
		"storage": {policy.Template{Requests: policy.Resources{Storage: 3 * testGiB}}, policy.Node{Phase: policy.NodeInitialized,
			Allocatable: policy.Resources{Storage: 8 * testGiB}}, policy.None, 2},
	} {
		sp, b := solveOf([]policy.Template{c.template}, []int{3})
		n := &c.node
		n.Name, n.Labels, b.Nodes = "n", zoned("a"), []policy.NodeID{0}
		n.Allocatable = n.Allocatable.Plus(policy.Resources{CPU: 4000, Memory: 16 * testGiB, Pods: 20})
		sp.SetNode(n)
		for i := range b.Pods {
			b.Pods[i].VolumeZone = c.zone
		}
		for range 2 { // the first run leaves the node as it was
			onNode := 0
			for _, at := range sp.Solver().Solve(b).Nodes {
				if at == 0 {
					onNode++
				}
			}
			if onNode != c.onNode {
				t.Errorf("%s: %d on the node, want %d", name, onNode, c.onNode)
			}
		}
	}
}

// TestSolveClaims: how many claims are opened for pods of two workloads, and how many pods are
// left. Ports conflict by number, protocol and address; devices of two kinds are on separate nodes;
// limits count the devices of what a claim may become; and what a claim may become has as many
// values of a label as its pool requires.
func TestSolveClaims(t *testing.T) {
	gpu := func(kind string) policy.Template {
		return policy.Template{Requests: policy.Resources{GPU: 1}, GPUResource: kind}
	}
	has := func(kind string, n int64) placement.Offer {
		return placement.Offer{GPUResource: kind, Allocatable: policy.Resources{GPU: n}}
	}
	alone := gpu("x/a")
	alone.HostPorts = port("", 80, "TCP")
	ports := func(list []policy.HostPort) policy.Template { return policy.Template{HostPorts: list} }
	families := []placement.Offer{{Labels: []policy.Label{{Key: "family", Value: "c"}}},
		{Labels: []policy.Label{{Key: "family", Value: "m"}}, Allocatable: policy.Resources{CPU: -2000}}}
	wanted := func(n int) placement.Pool {
		return placement.Pool{MinValues: []placement.MinValues{{Key: "family", N: n}}}
	}
	for name, c := range map[string]struct {
		a, b       policy.Template
		offers     []placement.Offer
		pool       placement.Pool
		bins, left int
	}{
		"one port":      {ports(port("", 80, "TCP")), ports(port("", 80, "TCP")), make([]placement.Offer, 1), placement.Pool{}, 4, 0},
		"two ports":     {ports(port("", 80, "TCP")), ports(port("", 81, "TCP")), make([]placement.Offer, 1), placement.Pool{}, 2, 0},
		"two protocols": {ports(port("", 80, "TCP")), ports(port("", 80, "UDP")), make([]placement.Offer, 1), placement.Pool{}, 2, 0},
		"two addresses": {ports(port("10.0.0.1", 80, "TCP")), ports(port("10.0.0.2", 80, "TCP")),
			make([]placement.Offer, 1), placement.Pool{}, 2, 0},
		"all addresses": {ports(port("10.0.0.1", 80, "TCP")), ports(port("0.0.0.0", 80, "")), make([]placement.Offer, 1),
			placement.Pool{}, 4, 0},
		"two kinds of GPU": {gpu("x/a"), gpu("x/b"), []placement.Offer{has("x/a", 2), has("x/b", 2)}, placement.Pool{}, 2, 0},
		"too few GPUs":     {gpu("x/a"), gpu("x/a"), []placement.Offer{has("x/a", 1)}, placement.Pool{Limits: policy.Resources{GPU: 3}}, 3, 1},
		"as large as it gets": {alone, alone, []placement.Offer{has("x/a", 8), has("x/a", 4)},
			placement.Pool{Limits: policy.Resources{GPU: 13}, Used: policy.Resources{GPU: 4}}, 1, 3},
		"GPUs of no claim": {gpu("x/a"), gpu("x/a"), []placement.Offer{has("x/a", 4)},
			placement.Pool{Limits: policy.Resources{GPU: 7}, Used: policy.Resources{GPU: 4}}, 0, 4},
		"one family":     {policy.Template{}, policy.Template{}, families, wanted(1), 1, 0},
		"two families":   {policy.Template{}, policy.Template{}, families, wanted(2), 2, 0},
		"three families": {policy.Template{}, policy.Template{}, families, wanted(3), 0, 4},
	} {
		sp, b := solveOf([]policy.Template{c.a, c.b}, []int{2, 2}, c.offers...)
		b.Pools = []placement.Pool{c.pool}
		if sol := sp.Solver().Solve(b); len(sol.Bins) != c.bins || len(sol.Unplaced) != c.left {
			t.Errorf("%s: %d claims, %d left, want %d, %d", name, len(sol.Bins), len(sol.Unplaced), c.bins, c.left)
		}
	}
}

// TestSolveVolumeZone: pods whose volumes are bound get a node in their zone; without a bound
// volume the cheapest offer decides.
func TestSolveVolumeZone(t *testing.T) {
	for zone, want := range map[policy.ZoneID]string{policy.None: "a", 0: "a", 1: "b"} {
		sp, b := solveOf([]policy.Template{{Volumes: []policy.Volume{{Zonal: true}}}}, []int{1},
			placement.Offer{Labels: zoned("a")}, placement.Offer{Labels: zoned("b")})
		b.Pods[0].VolumeZone = zone
		bins := sp.Solver().Solve(b).Bins
		if len(bins) != 1 {
			t.Fatalf("zone %d: %d claims, want 1", zone, len(bins))
		}
		if got := b.Offers[bins[0].Offers[0]].Labels[0].Value; got != want {
			t.Errorf("zone %d: a node in %s, want %s", zone, got, want)
		}
	}
}

// TestSolveLabelDomains: a spread by a label that pools give their nodes has the values of all
// pools as domains, and pods alternate among them.
func TestSolveLabelDomains(t *testing.T) {
	template := policy.Template{Labels: []policy.Label{{Key: "app", Value: "a"}}, Spread: []policy.Spread{even("team", 0)}}
	sp, b := solveOf([]policy.Template{template}, []int{4},
		placement.Offer{Pool: 0, Labels: []policy.Label{{Key: "team", Value: "blue"}}}, placement.Offer{Pool: 1,
			Labels: []policy.Label{{Key: "team", Value: "red"}}})
	pods := map[string]int{}
	for _, bin := range sp.Solver().Solve(b).Bins {
		pods[b.Offers[bin.Offers[0]].Labels[0].Value] += len(bin.Pods)
	}
	if pods["blue"] != 2 || pods["red"] != 2 {
		t.Errorf("pods by team: %v, want 2 each", pods)
	}
}

// TestSolveDaemonsDoNotFit: no pod is placed on a node that has too little of a resource for its
// DaemonSets, whether or not the pod requests that resource.
func TestSolveDaemonsDoNotFit(t *testing.T) {
	daemon := policy.Template{DaemonSet: true, Requests: policy.Resources{Storage: 10 * testGiB}}
	small := placement.Offer{Allocatable: policy.Resources{Storage: 5 * testGiB}}
	large := placement.Offer{Allocatable: policy.Resources{Storage: 20 * testGiB}}
	for name, c := range map[string]struct {
		offers []placement.Offer
		left   int
		offer  int // the cheapest of the claim
	}{"small": {[]placement.Offer{small}, 2, 0}, "both": {[]placement.Offer{small, large}, 0,
		1}, "large first": {[]placement.Offer{large, small}, 0, 0}} {
		sp, b := solveOf([]policy.Template{{}, daemon}, []int{2, 0}, c.offers...)
		sol := sp.Solver().Solve(b)
		if len(sol.Unplaced) != c.left || c.left == 0 && !slices.Equal(sol.Bins[0].Offers, []int{c.offer}) {
			t.Errorf("%s: %d left, claims %v; want %d left, else a claim of offer %d", name, len(sol.Unplaced), sol.Bins, c.left, c.offer)
		}
	}
}
