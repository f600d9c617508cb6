package policytest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/spotter-dev/spotter/policy"
)

// Stories runs the decisions that are written in the files of dir. Each
// "decide" names the policy to build and describes a snapshot a line at a time:
//
//	type NAME VCPU                      with 4 GiB for each vCPU
//	market ZONE TYPE spot|on-demand PRICE [closed] [confidence=X] [band=N] [hazard=X] [refused=DURATION]
//	pool NAME [none] [off] [min=X] [max=X] [steer=X] [budget=N|N%] [cooldown=DURATION] [fallback] [no-launch]
//	app NAME CPU [memory=GIB] [kind=KIND] [pdb=ALLOWED] [critical] [zone=ZONE] [on=KEY:VALUE] [priority=N] [preempts=never] [safe-to-evict[=false]]
//	node NAME POOL ZONE TYPE spot|on-demand [PHASE] [notice] [recommended] [ours] [by=ACTOR] [do-not-disrupt] [not-ready] [label=KEY:VALUE]
//	pod APP NODE|pending [COUNT]
//	memory POOL [moved=DURATION] [backoff=NODE]
//
// Durations are before now. The answer is the plan, the account of each hold,
// and what the memory says of pools that were moved. After a wanted change of
// behaviour run the test with -rewrite and read the difference.
func Stories(t *testing.T, dir string, build func(spec string) (policy.Policy, error)) {
	datadriven.Walk(t, dir, func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			spec := ""
			d.MaybeScanArgs(t, "policy", &spec)
			p, err := build(spec)
			if err != nil {
				return fmt.Sprintf("error: %v\n", err)
			}
			s, m, err := Parse(d.Input)
			if err != nil {
				d.Fatalf(t, "%v", err)
			}
			plan, next := p.Decide(s, m)
			if err := Check(s, &plan); err != nil {
				d.Fatalf(t, "%v", err)
			}
			return account(s, &plan, &next)
		})
	})
}

func account(s *policy.Snapshot, plan *policy.Plan, next *policy.Memory) string {
	var b strings.Builder
	b.WriteString(plan.Format(s))
	for _, h := range plan.Holds {
		fmt.Fprintf(&b, "  %s\n", h.Why.Text)
	}
	for _, p := range next.Pools {
		if p.Moved == s.Now {
			fmt.Fprintf(&b, "moved %s\n", p.Name)
		}
	}
	if b.Len() == 0 {
		return "nothing\n"
	}
	return b.String()
}

// Parse reads the description of a snapshot, and of the memory that goes with
// it, in the language of [Stories].
func Parse(text string) (*policy.Snapshot, policy.Memory, error) {
	p := parser{s: &policy.Snapshot{Now: Epoch.Add(24 * time.Hour)}}
	for i, line := range strings.Split(text, "\n") {
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		if err := p.line(words); err != nil {
			return nil, policy.Memory{}, fmt.Errorf("line %d, %q: %w", i+1, line, err)
		}
	}
	return p.s, p.m, p.s.Validate()
}

// A parser builds a snapshot. Names must come in the order of the tables, so
// that what is written is what is decided on.
type parser struct {
	s *policy.Snapshot
	m policy.Memory
}

func (p *parser) line(words []string) error {
	kinds := map[string]struct {
		least int
		read  func([]string) error
	}{
		"type": {2, p.instanceType}, "market": {4, p.market}, "pool": {1, p.pool}, "app": {2, p.app},
		"node": {5, p.node}, "pod": {2, p.pod}, "memory": {1, p.memory},
	}
	k, ok := kinds[words[0]]
	if !ok {
		return fmt.Errorf("unknown word %q", words[0])
	}
	if len(words) <= k.least {
		return fmt.Errorf("too few words")
	}
	return k.read(words[1:])
}

func (p *parser) instanceType(w []string) error {
	vcpu, err := strconv.ParseInt(w[1], 10, 64)
	if err != nil {
		return err
	}
	r := policy.Resources{CPU: vcpu * 1000, Memory: vcpu * 4 * gib, Storage: 20 * gib, Pods: 50}
	p.s.Types = append(p.s.Types, policy.InstanceType{
		ID: policy.TypeID(len(p.s.Types)), Name: w[0], Provider: "aws", Arch: "amd64", VCPU: vcpu, Capacity: r, Allocatable: r, VolumesMax: 25,
	})
	return nil
}

func (p *parser) market(w []string) error {
	zone := slices.Index(p.s.Zones, w[0])
	if zone < 0 {
		zone = len(p.s.Zones)
		p.s.Zones = append(p.s.Zones, w[0])
	}
	price, err := strconv.ParseFloat(w[3], 64)
	if err != nil {
		return err
	}
	m := policy.Market{
		ID: policy.MarketID(len(p.s.Markets)), Name: strings.Join([]string{"aws", "region", w[0], w[1], w[2]}, "/"),
		Provider: "aws", Region: "region", Zone: policy.ZoneID(zone), Offered: true, Price: policy.Dollars(price), OnDemand: policy.Dollars(price),
		Band: policy.BandUnknown, PlacementScore: -1,
	}
	if m.Type, err = p.typeOf(w[1]); err != nil {
		return err
	}
	if w[2] == "spot" {
		m.Capacity = policy.Spot
	}
	for _, o := range options(w[4:]) {
		switch o.key {
		case "closed":
			m.Offered = false
		case "confidence":
			m.Forecast.Source = policy.SourceClosedForm
			m.Forecast.Confidence, err = strconv.ParseFloat(o.value, 64)
		case "hazard":
			m.Forecast.Source = policy.SourceClosedForm
			m.Forecast.Hazard, err = strconv.ParseFloat(o.value, 64)
		case "band":
			var band int
			band, err = strconv.Atoi(o.value)
			m.Band = policy.Band(band)
		case "refused":
			m.Experience.Refused, err = p.ago(o.value)
			m.Experience.At, m.Experience.Refusals = p.s.Now, 1
		default:
			err = fmt.Errorf("unknown option %q", o.key)
		}
		if err != nil {
			return err
		}
	}
	p.s.Markets = append(p.s.Markets, m)
	return nil
}

func (p *parser) pool(w []string) error {
	q := policy.Pool{
		ID: policy.PoolID(len(p.s.Pools)), Name: w[0], Provisioner: policy.ProvisionerKarpenter, Mode: policy.ModeActive,
		Share: policy.ShareRange{Max: 1}, Levers: policy.Levers{Weights: true, Limits: true, Launch: true},
	}
	for i := range p.s.Markets {
		q.Markets = append(q.Markets, policy.MarketID(i))
	}
	var err error
	for _, o := range options(w[1:]) {
		switch o.key {
		case "none":
			q.Provisioner = policy.ProvisionerNone
		case "off":
			q.Mode = policy.ModeOff
		case "min":
			q.Share.Min, err = strconv.ParseFloat(o.value, 64)
		case "max":
			q.Share.Max, err = strconv.ParseFloat(o.value, 64)
		case "steer":
			q.Steer = policy.SteerState{Set: true, Since: Epoch}
			q.Steer.Share, err = strconv.ParseFloat(o.value, 64)
		case "budget":
			number, percent := strings.CutSuffix(o.value, "%")
			var n int
			n, err = strconv.Atoi(number)
			q.Budgets = append(q.Budgets, policy.DisruptionBudget{
				Nodes: policy.Quantity{Set: true, Percent: percent, N: int32(n)}, Active: true,
			})
		case "cooldown":
			q.Cooldown, err = time.ParseDuration(o.value)
		case "fallback":
			q.OnDemandFallback = true
		case "no-launch":
			q.Levers.Launch = false
		default:
			err = fmt.Errorf("unknown option %q", o.key)
		}
		if err != nil {
			return err
		}
	}
	p.s.Pools = append(p.s.Pools, q)
	return nil
}

func (p *parser) app(w []string) error {
	cpu, err := strconv.ParseFloat(w[1], 64)
	if err != nil {
		return err
	}
	id := policy.WorkloadID(len(p.s.Workloads))
	name := "default/" + w[0]
	kind := policy.KindDeployment
	t := policy.Template{
		ID: policy.TemplateID(id), Workload: id, Name: name, Namespace: "default",
		Requests: policy.Resources{CPU: int64(cpu * 1000), Memory: gib, Pods: 1}, OutagePenalty: -1, MigrationTier: -1,
	}
	for _, o := range options(w[2:]) {
		switch o.key {
		case "kind":
			for kind = policy.KindBare; kind < policy.KindDaemonSet && kind.String() != o.value; {
				kind++
			}
			t.DaemonSet = kind == policy.KindDaemonSet
		case "pdb":
			var allowed int
			allowed, err = strconv.Atoi(o.value)
			b := policy.PDB{ID: policy.PDBID(len(p.s.PDBs)), Name: name, Allowed: int32(allowed)}
			p.s.PDBs = append(p.s.PDBs, b)
			t.PDBs = append(t.PDBs, b.ID)
		case "memory":
			t.Requests.Memory, err = strconv.ParseInt(o.value, 10, 64)
			t.Requests.Memory *= gib
		case "on":
			key, value, _ := strings.Cut(o.value, ":")
			t.NodeSelector = append(t.NodeSelector, policy.Label{Key: key, Value: value})
		case "priority":
			var priority int
			priority, err = strconv.Atoi(o.value)
			t.Priority = int32(priority)
		case "preempts":
			t.PreemptionNever = o.value == "never"
		case "safe-to-evict":
			t.SafeToEvict, t.NotSafeToEvict = o.value != "false", o.value == "false"
		case "critical":
			t.Critical = true
		case "zone":
			t.NodeSelector = []policy.Label{{Key: "topology.kubernetes.io/zone", Value: o.value}}
		default:
			err = fmt.Errorf("unknown option %q", o.key)
		}
		if err != nil {
			return err
		}
	}
	p.s.Workloads = append(p.s.Workloads, policy.Workload{ID: id, Name: name, Kind: kind})
	p.s.Templates = append(p.s.Templates, t)
	return nil
}

func (p *parser) node(w []string) error {
	name := strings.Join([]string{"aws", "region", w[2], w[3], w[4]}, "/")
	market := slices.IndexFunc(p.s.Markets, func(m policy.Market) bool { return m.Name == name })
	pool := slices.IndexFunc(p.s.Pools, func(q policy.Pool) bool { return q.Name == w[1] })
	if market < 0 || pool < 0 {
		return fmt.Errorf("there is no market %q or no pool %q", name, w[1])
	}
	m := &p.s.Markets[market]
	it := &p.s.Types[m.Type]
	n := policy.Node{
		ID: policy.NodeID(len(p.s.Nodes)), Name: w[0], Pool: policy.PoolID(pool), Market: m.ID, Phase: policy.NodeInitialized,
		Allocatable: it.Allocatable, VolumesMax: it.VolumesMax, Launched: Epoch,
		Labels: []policy.Label{
			{Key: "karpenter.sh/capacity-type", Value: m.Capacity.String()},
			{Key: "node.kubernetes.io/instance-type", Value: it.Name},
			{Key: "topology.kubernetes.io/zone", Value: w[2]},
		},
	}
	for _, o := range options(w[5:]) {
		switch o.key {
		case "launching", "registered", "draining", "deleting":
			for n.Phase = policy.NodeLaunching; n.Phase.String() != o.key; {
				n.Phase++
			}
		case "notice":
			n.NoticeAt, n.ReclaimAt = p.s.Now, p.s.Now.Add(2*time.Minute)
		case "recommended":
			n.Recommended = p.s.Now
		case "ours":
			n.Token = "token"
		case "do-not-disrupt":
			n.DoNotDisrupt = true
		case "not-ready":
			n.NotReady = true
		case "label":
			key, value, _ := strings.Cut(o.value, ":")
			n.Labels = append(n.Labels, policy.Label{Key: key, Value: value})
			slices.SortFunc(n.Labels, func(a, b policy.Label) int { return strings.Compare(a.Key, b.Key) })
		case "by":
			for n.ActedBy = policy.ActorUs; n.ActedBy < policy.ActorPerson && n.ActedBy.String() != o.value; {
				n.ActedBy++
			}
		default:
			return fmt.Errorf("unknown option %q", o.key)
		}
	}
	p.s.Nodes = append(p.s.Nodes, n)
	return nil
}

func (p *parser) pod(w []string) error {
	t := slices.IndexFunc(p.s.Templates, func(t policy.Template) bool { return t.Name == "default/"+w[0] })
	if t < 0 {
		return fmt.Errorf("there is no app %q", w[0])
	}
	node := slices.IndexFunc(p.s.Nodes, func(n policy.Node) bool { return n.Name == w[1] })
	if node < 0 && w[1] != "pending" {
		return fmt.Errorf("there is no node %q", w[1])
	}
	count := 1
	if len(w) > 2 {
		var err error
		if count, err = strconv.Atoi(w[2]); err != nil {
			return err
		}
	}
	for range count {
		x := policy.Pod{
			ID: policy.PodID(len(p.s.Pods)), Template: policy.TemplateID(t), Phase: policy.PodPending,
			Node: policy.NodeID(node), Nominated: policy.None, VolumeZone: policy.None, Created: Epoch,
		}
		x.Name = fmt.Sprintf("default/%s-%d", w[0], x.ID)
		if node >= 0 {
			x.Phase, x.Bound, x.ReadySince = policy.PodReady, Epoch, Epoch
		}
		p.s.Pods = append(p.s.Pods, x)
	}
	return nil
}

func (p *parser) memory(w []string) error {
	m := p.m.Pool(w[0])
	for _, o := range options(w[1:]) {
		switch o.key {
		case "moved":
			at, err := p.ago(o.value)
			if err != nil {
				return err
			}
			m.Moved = at
		case "backoff":
			m.Backoff = append(m.Backoff, policy.Backoff{Node: o.value, Until: p.s.Now + 1, Tries: 1})
		default:
			return fmt.Errorf("unknown option %q", o.key)
		}
	}
	p.m = p.m.With(m)
	return nil
}

func (p *parser) typeOf(name string) (policy.TypeID, error) {
	i := slices.IndexFunc(p.s.Types, func(t policy.InstanceType) bool { return t.Name == name })
	if i < 0 {
		return 0, fmt.Errorf("there is no type %q", name)
	}
	return policy.TypeID(i), nil
}

func (p *parser) ago(text string) (policy.Time, error) {
	d, err := time.ParseDuration(text)
	return p.s.Now.Add(-d), err
}

type option struct{ key, value string }

func options(words []string) []option {
	var list []option
	for _, w := range words {
		key, value, _ := strings.Cut(w, "=")
		list = append(list, option{key, value})
	}
	return list
}
