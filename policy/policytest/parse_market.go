package policytest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// instanceType reads a type with 4 GiB for each vCPU.
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

// experience reads when a market last refused a launch, or took a node of Spotter.
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

// market reads a market, with its zone at first use.
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
		if err := p.marketOption(&m, o); err != nil {
			return err
		}
	}
	p.s.Markets = append(p.s.Markets, m)
	return nil
}

// marketOption reads an option of a market.
func (p *parser) marketOption(m *policy.Market, o option) (err error) {
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
			if bid, err = strconv.ParseFloat(text, 64); err != nil {
				return err
			}
			m.BidPercentiles[k] = policy.Dollars(bid)
		}
	case "refused", "reclaimed":
		err = p.experience(&m.Experience, o)
	default:
		err = fmt.Errorf("unknown option %q", o.key)
	}
	return err
}

// pool reads a pool of all markets so far.
func (p *parser) pool(w []string) error {
	q := policy.Pool{
		ID: policy.PoolID(len(p.s.Pools)), Name: w[0], Provisioner: policy.ProvisionerKarpenter, Mode: policy.ModeActive,
		Share: policy.ShareRange{Max: 1}, Levers: policy.Levers{Weights: true, Limits: true, Launch: true},
	}
	for i := range p.s.Markets {
		q.Markets = append(q.Markets, policy.MarketID(i))
	}
	all := options(w[1:])
	for _, o := range all {
		if err := p.poolOption(&q, o); err != nil {
			return err
		}
	}
	q.Steer.Exact = q.Steer.Set && q.Share.Exact
	if !slices.ContainsFunc(all, func(o option) bool { return o.key == "steered" }) {
		q.Steer.Fallback = q.Steer.Set && q.OnDemandFallback
	}
	p.s.Pools = append(p.s.Pools, q)
	return nil
}

// poolOption reads an option of a pool.
func (p *parser) poolOption(q *policy.Pool, o option) (err error) {
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
	case "steered":
		if q.Steer.Fallback = o.value == "fallback"; !q.Steer.Fallback && o.value != "no-fallback" {
			err = fmt.Errorf("steered=%s: want fallback or no-fallback", o.value)
		}
	case "budget":
		number, percent := strings.CutSuffix(o.value, "%")
		var n int
		n, err = strconv.Atoi(number)
		q.Budgets = append(q.Budgets, policy.DisruptionBudget{
			Nodes: policy.Quantity{Set: true, Percent: percent, N: int32(n)}, Active: true,
		})
	case "frozen":
		q.Budgets = append(q.Budgets, policy.DisruptionBudget{Nodes: policy.Quantity{Set: true}, Active: true,
			Closed: "freeze: " + o.value})
	case "approve":
		q.Approval = approval(o.value)
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
		err = markets(q, o)
	default:
		err = fmt.Errorf("unknown option %q", o.key)
	}
	return err
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

// approval reads which changes a person has approved: nodes to drain, and shares to set such as 60%.
func approval(text string) policy.Approval {
	a := policy.Approval{Required: true}
	for _, name := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' }) {
		change := "drain " + name
		if strings.HasSuffix(name, "%") {
			change = "set the Spot share to " + name
		}
		a.Changes = append(a.Changes, change)
	}
	slices.Sort(a.Changes)
	return a
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
