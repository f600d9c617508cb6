package placement_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
)

// TestCases runs the placements written in testdata/cases. After a wanted
// change of behaviour run "go test ./policy/placement -rewrite", and read the diff.
//
// A story tells a cluster line by line: "node NAME key=value…", "template NAME
// key=value…", "offer NAME PRICE key=value…", "bound TEMPLATE NODE…". Then
// check asks every node about one more pod of a template; provision and pack
// buy nodes for COUNT*TEMPLATE…
func TestCases(t *testing.T) {
	datadriven.Walk(t, "testdata/cases", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			c := parseCase(t, d)
			switch d.Cmd {
			case "check":
				return c.check(d)
			case "provision", "pack":
				return c.buy(d)
			case "emptiest":
				return c.emptiest()
			}
			return fmt.Sprintf("unknown command %q\n", d.Cmd)
		})
	})
}

type testCase struct {
	s      policy.Snapshot
	offers []placement.Offer
	names  []string // of offers
}

var shortKeys = map[string]string{"zone": "topology.kubernetes.io/zone", "host": hostKey}

func longKey(k string) string {
	if long, ok := shortKeys[k]; ok {
		return long
	}
	return k
}

func parseCase(t *testing.T, d *datadriven.TestData) *testCase {
	t.Helper()
	c := &testCase{s: policy.Snapshot{Now: 1, Zones: zoneNames}}
	for line := range strings.Lines(d.Input) {
		f := strings.Fields(line)
		switch f[0] {
		case "node":
			c.s.Nodes = append(c.s.Nodes, c.node(t, f[1], f[2:]))
		case "offer":
			n := c.node(t, f[1], f[3:])
			price, err := strconv.ParseFloat(f[2], 64)
			if err != nil {
				d.Fatalf(t, "price %q: %v", f[2], err)
			}
			c.names = append(c.names, f[1])
			c.offers = append(c.offers, placement.Offer{
				Pool: n.Pool, Market: policy.MarketID(len(c.offers)), Price: policy.Dollars(price), Allocatable: n.Allocatable,
				VolumesMax: n.VolumesMax, GPUResource: n.GPUResource, Labels: n.Labels, Taints: n.Taints,
			})
		case "template":
			c.s.Templates = append(c.s.Templates, c.template(t, f[1], f[2:]))
		case "bound", "ending":
			for _, name := range f[2:] {
				p := c.pod(f[1])
				p.Node, p.Phase = c.nodeID(name), policy.PodReady
				if f[0] == "ending" {
					p.Phase = policy.PodTerminating
				}
				c.s.Pods = append(c.s.Pods, p)
			}
		default:
			d.Fatalf(t, "line %q", line)
		}
	}
	return c
}

func (c *testCase) nodeID(name string) policy.NodeID {
	return policy.NodeID(slices.IndexFunc(c.s.Nodes, func(n policy.Node) bool { return n.Name == name }))
}

func (c *testCase) pod(template string) policy.Pod {
	at := slices.IndexFunc(c.s.Templates, func(t policy.Template) bool { return t.Name == template })
	return policy.Pod{
		ID: policy.PodID(len(c.s.Pods)), Template: policy.TemplateID(at), Phase: policy.PodPending,
		Node: policy.None, Nominated: policy.None, VolumeZone: policy.None,
	}
}

func number(t *testing.T, s string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func (c *testCase) node(t *testing.T, name string, fields []string) policy.Node {
	n := policy.Node{
		ID: policy.NodeID(len(c.s.Nodes)), Name: name, Pool: 0, Market: policy.None, Phase: policy.NodeInitialized,
		Allocatable: policy.Resources{CPU: 4000, Memory: 16, Storage: 20, Pods: 10},
	}
	for _, f := range fields {
		key, value, _ := strings.Cut(f, "=")
		switch key {
		case "cpu":
			n.Allocatable.CPU = number(t, value)
		case "memory":
			n.Allocatable.Memory = number(t, value)
		case "pods":
			n.Allocatable.Pods = number(t, value)
		case "storage":
			n.Allocatable.Storage = number(t, value)
		case "gpu":
			n.Allocatable.GPU, n.GPUResource = number(t, value), "nvidia.com/gpu"
		case "amd":
			n.Allocatable.GPU, n.GPUResource = number(t, value), "amd.com/gpu"
		case "volumes":
			n.VolumesMax = int32(number(t, value))
		case "pool":
			n.Pool = policy.PoolID(number(t, value))
		case "phase":
			for p := policy.NodeGone; p <= policy.NodeDeleting; p++ {
				if p.String() == value {
					n.Phase = p
				}
			}
		case "notready":
			n.NotReady = true
		case "noticed":
			n.NoticeAt, n.ReclaimAt = 1, 2
		case "taint":
			n.Taints = append(n.Taints, parseTaint(value))
		default:
			n.Labels = append(n.Labels, policy.Label{Key: longKey(key), Value: value})
		}
	}
	slices.SortFunc(n.Labels, func(a, b policy.Label) int { return strings.Compare(a.Key, b.Key) })
	return n
}

// parseTaint reads key:value:Effect.
func parseTaint(s string) policy.Taint {
	f := strings.Split(s, ":")
	effects := map[string]policy.TaintEffect{"NoSchedule": policy.NoSchedule,
		"PreferNoSchedule": policy.PreferNoSchedule, "NoExecute": policy.NoExecute}
	return policy.Taint{Key: f[0], Value: f[1], Effect: effects[f[2]]}
}

func (c *testCase) template(t *testing.T, name string, fields []string) policy.Template {
	x := policy.Template{
		ID: policy.TemplateID(len(c.s.Templates)), Workload: policy.None, Name: name, Namespace: "default",
		Requests: policy.Resources{Pods: 1}, Labels: []policy.Label{{Key: "app", Value: name}},
	}
	for _, f := range fields {
		key, value, _ := strings.Cut(f, "=")
		switch key {
		case "cpu":
			x.Requests.CPU = number(t, value)
		case "memory":
			x.Requests.Memory = number(t, value)
		case "storage":
			x.Requests.Storage = number(t, value)
		case "gpu":
			x.Requests.GPU, x.GPUResource = number(t, value), "nvidia.com/gpu"
		case "app":
			x.Labels[0].Value = value
		case "namespace":
			x.Namespace = value
		case "daemon":
			x.DaemonSet = true
		default:
			c.placement(t, &x, key, value)
		}
	}
	return x
}

// placement reads what bounds where the pods of x go.
func (c *testCase) placement(t *testing.T, x *policy.Template, key, value string) {
	part := append(strings.Split(value, ":"), "", "", "")
	switch key {
	case "tolerates": // key[:value[:effect]], or * for everything
		tol := policy.Toleration{Key: part[0], Value: part[1], Exists: part[1] == ""}
		if value == "*" {
			tol.Key = ""
		}
		if part[2] != "" {
			tol.Effect = parseTaint("::" + part[2]).Effect
		}
		x.Tolerations = append(x.Tolerations, tol)
	case "select": // key:value
		x.NodeSelector = append(x.NodeSelector, policy.Label{Key: longKey(part[0]), Value: part[1]})
	case "wants": // one term: key:op:value,value
		x.Affinity = append(x.Affinity, policy.NodeTerm{Labels: []policy.Requirement{parseRequirement(part)}})
	case "named":
		x.Affinity = append(x.Affinity, policy.NodeTerm{Fields: []policy.Requirement{{Key: "metadata.name", Values: []string{value}}}})
	case "near", "away": // key:app[:namespace]
		term := policy.PodTerm{TopologyKey: longKey(part[0]), Selector: appSelector(part[1])}
		if part[2] != "" {
			term.Namespaces = []string{part[2]}
		}
		if key == "near" {
			x.PodAffinity = append(x.PodAffinity, term)
		} else {
			x.PodAntiAffinity = append(x.PodAntiAffinity, term)
		}
	case "spread": // key:maxSkew[:minDomains[:flags]]
		s := policy.Spread{TopologyKey: longKey(part[0]), MaxSkew: int32(number(t, part[1])), Selector: appSelector(x.Labels[0].Value)}
		if part[2] != "" {
			s.MinDomains = int32(number(t, part[2]))
		}
		s.IgnoreAffinity, s.HonorTaints = strings.Contains(part[3], "ignore"), strings.Contains(part[3], "honor")
		s.Soft = strings.Contains(part[3], "soft")
		x.Spread = append(x.Spread, s)
	case "port": // port[:ip[:protocol]]
		x.HostPorts = append(x.HostPorts, policy.HostPort{Port: int32(number(t, part[0])), IP: part[1], Protocol: part[2]})
	case "volume": // own, or a claim's name; then flags
		v := policy.Volume{Zonal: strings.Contains(value, ":zonal"), Once: strings.Contains(value, ":once")}
		if part[0] != "own" {
			v.Claim = part[0]
		}
		x.Volumes = append(x.Volumes, v)
	default:
		t.Fatalf("template %s: %q", x.Name, key)
	}
}

func parseRequirement(part []string) policy.Requirement {
	ops := []string{"in", "notin", "exists", "absent", "gt", "lt"}
	return policy.Requirement{Key: longKey(part[0]), Op: policy.Operator(slices.Index(ops, part[1])), Values: strings.Split(part[2], ",")}
}

func appSelector(app string) policy.Selector {
	return policy.Selector{Requirements: []policy.Requirement{{Key: "app", Values: []string{app}}}}
}

func (c *testCase) check(d *datadriven.TestData) string {
	var b strings.Builder
	sp := placement.FromSnapshot(&c.s)
	p := c.pod(d.CmdArgs[0].Key)
	expected := false
	for _, arg := range d.CmdArgs[1:] {
		switch arg.Key {
		case "volumes-in":
			p.VolumeZone = policy.ZoneID(slices.Index(c.s.Zones, arg.Vals[0]))
		case "expected":
			expected = true
		}
	}
	for i := range c.s.Nodes {
		v := sp.Check(&p, policy.NodeID(i))
		if expected {
			v = sp.CheckExpected(&p, policy.NodeID(i))
		}
		fmt.Fprintf(&b, "%s: %v\n", c.s.Nodes[i].Name, v)
	}
	return b.String()
}

func (c *testCase) emptiest() string {
	var ids []policy.NodeID
	for i := range c.s.Nodes {
		ids = append(ids, policy.NodeID(i))
	}
	placement.EmptiestFirst(&c.s, placement.FromSnapshot(&c.s), ids)
	var names []string
	for _, id := range ids {
		names = append(names, c.s.Nodes[id].Name)
	}
	return strings.Join(names, " ") + "\n"
}

func (c *testCase) buy(d *datadriven.TestData) string {
	sp := placement.FromSnapshot(&c.s)
	var pods []policy.Pod
	for _, arg := range d.CmdArgs {
		count, name, _ := strings.Cut(arg.Key, "*")
		n, err := strconv.Atoi(count)
		if err != nil {
			return err.Error() + "\n"
		}
		for range n {
			pods = append(pods, c.pod(name))
		}
	}
	buy := placement.Provision
	if d.Cmd == "pack" {
		buy = placement.Pack
	}
	p := buy(sp, pods, c.offers)
	var b strings.Builder
	fmt.Fprintf(&b, "total %s\n", p.Total.Short())
	count := func(list []int) string {
		per := make([]int, len(c.s.Templates))
		for _, i := range list {
			per[pods[i].Template]++
		}
		var words []string
		for t, n := range per {
			if n > 0 {
				words = append(words, fmt.Sprintf("%d*%s", n, c.s.Templates[t].Name))
			}
		}
		return strings.Join(words, " ")
	}
	for _, bin := range p.Bins {
		var names []string
		for _, o := range bin.Offers {
			names = append(names, c.names[o])
		}
		fmt.Fprintf(&b, "%s on %s\n", count(bin.Pods), strings.Join(names, ", "))
	}
	if len(p.Unplaced) > 0 {
		fmt.Fprintf(&b, "no place for %s\n", count(p.Unplaced))
	}
	return b.String()
}
