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
//	type NAME VCPU [gpus=N] [arch=ARCH] [allocatable=CPU] with 4 GiB for each vCPU; the family is what stands before the dot
//	market ZONE TYPE spot|on-demand PRICE [closed] [confidence=X] [band=N] [hazard=X] [score=N] [refused=DURATION] [reclaimed=DURATION] [priced=DURATION] [auction] [bids=P20/P50/P80]
//	pool NAME [none] [off] [min=X] [max=X] [exact=X] [steer=X] [budget=N|N%] [cooldown=DURATION] [fallback] [no-launch] [after=DURATION] [expire-after=DURATION] [threshold=X] [when-empty] [taint=KEY] [score=N] [types=N] [zones=N]
//	app NAME CPU [memory=GIB] [kind=KIND] [pdb=ALLOWED] [critical] [zone=ZONE] [on=KEY:VALUE] [priority=N] [preempts=never] [safe-to-evict[=false]] [gpus=N] [tolerates=KEY] [spread] [near=APP] [port=N] [replicas=N]
//	node NAME POOL ZONE TYPE spot|on-demand [PHASE] [notice] [recommended] [ours] [by=ACTOR] [do-not-disrupt] [not-ready] [label=KEY:VALUE] [age=DURATION] [token=NAME]
//	pod APP NODE|pending [COUNT [CREATED [DELETION-COST]]]
//	memory POOL [moved=DURATION] [backoff=NODE] [batched=DURATION] [packed=DURATION] [wave=DURATION/NODES/TOKENS] [steered=DURATION] [selected=ZONE/TYPE/CAPACITY,…] [kept=ZONE/TYPE/CAPACITY,…] [spot-only]
//	reserved NAME TYPE COUNT [zone=ZONE]   instances that were paid for in advance
//	plan NAME DOLLARS                   an hour on demand that a savings plan covers
//	prices AGE                          since they were last read
//
// Durations are before now. The answer is the plan, its bids, the account of each hold,
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
	for i, l := range plan.Launches {
		if l.Bid != 0 {
			fmt.Fprintf(&b, "  launch %d bids %s\n", i+1, l.Bid.Short())
		}
	}
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
	cover := p.s.Coverage()
	for i := range p.s.Commitments {
		p.s.Commitments[i].Unused = cover.Unused(i)
	}
	return p.s, p.m, p.s.Validate()
}

func (p *parser) reserved(w []string) error {
	n, err := strconv.ParseInt(w[2], 10, 32)
	if err != nil {
		return err
	}
	c := policy.Commitment{Name: w[0], Type: w[1], Amount: n, Fee: policy.NoPrice}
	for _, o := range options(w[3:]) {
		if o.key != "zone" {
			return fmt.Errorf("unknown option %q", o.key)
		}
		c.Zone = o.value
	}
	p.s.Commitments = append(p.s.Commitments, c)
	return nil
}

func (p *parser) plan(w []string) error {
	hourly, err := strconv.ParseFloat(w[1], 64)
	if err != nil {
		return err
	}
	p.s.Commitments = append(p.s.Commitments, policy.Commitment{Name: w[0], Unit: policy.CoverDollars, Amount: int64(policy.Dollars(hourly)), Fee: policy.NoPrice})
	return nil
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
		"prices": {1, p.prices}, "reserved": {3, p.reserved}, "plan": {2, p.plan},
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
	r, free := policy.Resources{CPU: vcpu * 1000, Memory: vcpu * 4 * gib, Storage: 20 * gib, Pods: 50}, float64(vcpu)
	family, _, _ := strings.Cut(w[0], ".")
	t := policy.InstanceType{
		ID: policy.TypeID(len(p.s.Types)), Name: w[0], Provider: "aws", Family: family, Arch: "amd64", VCPU: vcpu, VolumesMax: 25,
	}
	for _, o := range options(w[2:]) {
		switch o.key {
		case "arch":
			t.Arch = o.value
		case "allocatable":
			if free, err = strconv.ParseFloat(o.value, 64); err != nil {
				return err
			}
		case "gpus":
			t.GPUResource = "nvidia.com/gpu"
			if r.GPU, err = strconv.ParseInt(o.value, 10, 64); err != nil {
				return err
			}
		default:
			return fmt.Errorf("unknown option %q", o.key)
		}
	}
	t.Capacity, t.Allocatable = r, r
	t.Allocatable.CPU = int64(free * 1000)
	p.s.Types = append(p.s.Types, t)
	return nil
}

// experience reads when a market last refused us, or took a node of ours.
func (p *parser) experience(x *policy.Experience, o option) error {
	ago, err := p.ago(o.value)
	x.At = p.s.Now
	if o.key == "refused" {
		x.Refused, x.Refusals = ago, 1
	} else {
		x.Reclaimed, x.Reclaims = ago, 1
	}
	return err
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
		case "score":
			var score int
			score, err = strconv.Atoi(o.value)
			m.PlacementScore = int8(score)
		case "priced":
			m.PricedAt, err = p.ago(o.value)
		case "auction":
			m.Provider, m.OnDemand = policy.Rackspace, policy.Dollar
		case "bids":
			for k, text := range strings.SplitN(o.value, "/", 3) {
				var bid float64
				bid, err = strconv.ParseFloat(text, 64)
				m.BidPercentiles[k] = policy.Dollars(bid)
			}
		case "refused", "reclaimed":
			err = p.experience(&m.Experience, o)
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
		case "exact":
			q.Share.Target, err = strconv.ParseFloat(o.value, 64)
			q.Share.Min, q.Share.Max, q.Share.Exact, q.Share.HasTarget = q.Share.Target, q.Share.Target, true, true
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
		case "expire-after":
			q.ExpireAfter, err = time.ParseDuration(o.value)
		case "threshold":
			q.SavingsThreshold, err = strconv.ParseFloat(o.value, 64)
		case "when-empty":
			q.Consolidation = policy.WhenEmpty
		case "fallback":
			q.OnDemandFallback = true
		case "no-launch":
			q.Levers.Launch = false
		case "since":
			q.Steer.Since, err = p.ago(o.value)
		case "after":
			q.ConsolidateAfter, err = time.ParseDuration(o.value)
		case "taint":
			q.Taints = append(q.Taints, policy.Taint{Key: o.value, Effect: policy.NoSchedule})
		case "score", "types", "zones", "own", "allows":
			err = markets(&q, o)
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

// markets reads what a manifest says of the choice among markets, and of what the pool
// bought by itself when it was captured.
func markets(q *policy.Pool, o option) (err error) {
	switch o.key {
	case "own":
		q.OwnShare, err = strconv.ParseFloat(o.value, 64)
		return err
	case "score", "types", "zones":
		return choice(&q.Choice, o)
	}
	for _, name := range strings.Split(o.value, ",") {
		capacity, known := map[string]policy.CapacityType{"spot": policy.Spot, "on-demand": policy.OnDemand}[name]
		if !known {
			return fmt.Errorf("capacity type %q is neither spot nor on-demand", name)
		}
		q.CapacityTypes = append(q.CapacityTypes, capacity)
	}
	return nil
}

// choice reads what a manifest says of the choice among markets.
func choice(c *policy.MarketChoice, o option) error {
	n, err := strconv.Atoi(o.value)
	switch o.key {
	case "score":
		c.ScoreMin, c.HasScoreMin = int8(n), true
	case "types":
		c.TypesMax = int32(n)
	case "zones":
		c.ZonesMax = int32(n)
	}
	return err
}

func (p *parser) app(w []string) error {
	cpu, err := strconv.ParseFloat(w[1], 64)
	if err != nil {
		return err
	}
	id := policy.WorkloadID(len(p.s.Workloads))
	name := "default/" + w[0]
	x := policy.Workload{ID: id, Name: name, Kind: policy.KindDeployment}
	t := policy.Template{
		ID: policy.TemplateID(id), Workload: id, Name: name, Namespace: "default", Labels: []policy.Label{{Key: "app", Value: w[0]}},
		Requests: policy.Resources{CPU: int64(cpu * 1000), Memory: gib, Pods: 1}, OutagePenalty: -1, MigrationTier: -1,
	}
	for _, o := range options(w[2:]) {
		if err := p.appOption(&x, &t, o); err != nil {
			return err
		}
	}
	for _, b := range t.PDBs {
		if x.Replicas > 0 { // what the budget allows is then what it says, too
			p.s.PDBs[b].MaxUnavailable = policy.Quantity{Set: true, N: p.s.PDBs[b].Allowed}
		}
	}
	p.s.Workloads = append(p.s.Workloads, x)
	p.s.Templates = append(p.s.Templates, t)
	return nil
}

// appOption reads what a line says of the workload x and of the pods t of it.
func (p *parser) appOption(x *policy.Workload, t *policy.Template, o option) (err error) {
	switch o.key {
	case "kind":
		for x.Kind = policy.KindBare; x.Kind < policy.KindDaemonSet && x.Kind.String() != o.value; {
			x.Kind++
		}
		t.DaemonSet = x.Kind == policy.KindDaemonSet
	case "pdb":
		b := policy.PDB{ID: policy.PDBID(len(p.s.PDBs)), Name: x.Name}
		b.Allowed, err = count(o.value)
		p.s.PDBs = append(p.s.PDBs, b)
		t.PDBs = append(t.PDBs, b.ID)
	case "memory":
		t.Requests.Memory, err = strconv.ParseInt(o.value, 10, 64)
		t.Requests.Memory *= gib
	case "priority":
		t.Priority, err = count(o.value)
	case "preempts":
		t.PreemptionNever = o.value == "never"
	case "safe-to-evict":
		t.SafeToEvict, t.NotSafeToEvict = o.value != "false", o.value == "false"
	case "critical":
		t.Critical = true
	case "replicas":
		x.Replicas, err = count(o.value)
	case "gpus":
		t.GPUResource = "nvidia.com/gpu"
		t.Requests.GPU, err = strconv.ParseInt(o.value, 10, 64)
	default:
		return whereOption(t, o)
	}
	return err
}

// whereOption reads what bounds the nodes on which the pods of t may run.
func whereOption(t *policy.Template, o option) error {
	switch o.key {
	case "on":
		key, value, _ := strings.Cut(o.value, ":")
		t.NodeSelector = append(t.NodeSelector, policy.Label{Key: key, Value: value})
	case "tolerates":
		t.Tolerations = append(t.Tolerations, policy.Toleration{Key: o.value, Exists: true})
	case "near":
		t.PodAffinity = append(t.PodAffinity, policy.PodTerm{
			TopologyKey: "topology.kubernetes.io/zone",
			Selector:    policy.Selector{Requirements: []policy.Requirement{{Key: "app", Op: policy.OpIn, Values: []string{o.value}}}},
		})
	case "port":
		port, err := count(o.value)
		t.HostPorts = append(t.HostPorts, policy.HostPort{Port: port})
		return err
	case "spread":
		t.Spread = append(t.Spread, policy.Spread{TopologyKey: "topology.kubernetes.io/zone", MaxSkew: 1})
	case "zone":
		t.NodeSelector = []policy.Label{{Key: "topology.kubernetes.io/zone", Value: o.value}}
	default:
		return fmt.Errorf("unknown option %q", o.key)
	}
	return nil
}

func count(text string) (int32, error) {
	n, err := strconv.ParseInt(text, 10, 32)
	return int32(n), err
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
		Allocatable: it.Allocatable, VolumesMax: it.VolumesMax, GPUResource: it.GPUResource, Launched: Epoch,
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
		case "group-min":
			n.AtGroupMin = true
		case "age":
			at, err := p.ago(o.value)
			if err != nil {
				return err
			}
			n.Launched, n.Initialized = at, at
		case "token":
			n.Token = o.value
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
	created := Epoch
	if len(w) > 3 {
		var err error
		if created, err = p.ago(w[3]); err != nil {
			return err
		}
	}
	cost := 0
	if len(w) > 4 {
		var err error
		if cost, err = strconv.Atoi(w[4]); err != nil {
			return err
		}
	}
	for range count {
		x := policy.Pod{
			ID: policy.PodID(len(p.s.Pods)), Template: policy.TemplateID(t), Phase: policy.PodPending,
			Node: policy.NodeID(node), Nominated: policy.None, VolumeZone: policy.None, Created: created, DeletionCost: int32(cost),
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
		case "wave":
			parts := strings.SplitN(o.value, "/", 3) // DURATION/NODE+NODE/TOKEN+TOKEN
			at, err := p.ago(parts[0])
			if err != nil || len(parts) < 3 {
				return fmt.Errorf("wave %q is not DURATION/NODES/TOKENS", o.value)
			}
			m.Wave = policy.Wave{Since: at, Nodes: strings.Split(parts[1], "+"), Tokens: strings.Split(parts[2], "+")}
		case "batched", "packed":
			at, err := p.ago(o.value)
			if err != nil {
				return err
			}
			if o.key == "batched" {
				m.Batched = at
			} else {
				m.Packed = at
			}
		case "backoff":
			m.Backoff = append(m.Backoff, policy.Backoff{Node: o.value, Until: p.s.Now + 1, Tries: 1})
		case "steered":
			at, err := p.ago(o.value)
			if err != nil {
				return err
			}
			m.Steered = at
		case "selected":
			m.Selected = marketNames(o.value)
		case "spot-only":
			m.SpotOnly = true
		case "kept":
			m.Kept = marketNames(o.value)
		default:
			return fmt.Errorf("unknown option %q", o.key)
		}
	}
	p.m = p.m.With(m)
	return nil
}

// marketNames returns the names of markets written as ZONE/TYPE/CAPACITY,
// ascending.
func marketNames(list string) []string {
	var names []string
	for _, m := range strings.Split(list, ",") {
		names = append(names, "aws/region/"+m)
	}
	slices.Sort(names)
	return names
}

// prices says how long ago prices were last read.
func (p *parser) prices(w []string) error {
	at, err := p.ago(w[0])
	p.s.Sources = append(p.s.Sources, policy.Source{Name: "prices", At: at})
	return err
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
