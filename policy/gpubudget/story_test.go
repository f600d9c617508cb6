package gpubudget

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/guard"
	"github.com/spotter-dev/spotter/policy/policytest"
)

// TestCases runs the decisions in testdata/decide. To the language of
// policytest.Parse they add, with a node of 8 devices everywhere:
//
//	gpus APP N
//	budget NAME APP[,APP…]|* [hours=N] [dollars=N] [window=HOURS] [action=Evict|Pause|AlertOnly] [delay=D] [grace=D] [gate] [closed] [live] [uid=UID] [invalid]
//	bound POD DURATION                   before now; all other pods since an hour ago
//	ended APP NODE FROM TO               a pod that went away: instants before now
//	used BUDGET DURATION HOURS [DOLLARS] in the hour that began DURATION before now
//	remember BUDGET [counted=D] [over=D] [closed] [enforced=D] [asked=POD] [device=DOLLARS] [uid=UID] [absent=D]
//	suspended APP [BUDGET]               by a user, or for a budget
//	drain NODE [launch|free] [after=NODE] the policy inside wants it, after a launch that
//	                                     replaces it, one that replaces no node, or that of
//	                                     another node
//	tried NODE                           its drain did not end, and it may be tried again
//	guarded                              guardrails wrap the policy inside, and the memory
//	                                     of the pools is printed too
//
// After a wanted change run the test with -rewrite and read the difference.
func TestCases(t *testing.T) {
	datadriven.Walk(t, "testdata/decide", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			x, err := parseStory(d.Input)
			if err != nil {
				d.Fatalf(t, "%v", err)
			}
			inside := policy.Policy(x.inside)
			if x.guarded {
				inside = guard.Around(inside, guard.DefaultConfig())
			}
			plan, next := Around(inside, DefaultConfig()).Decide(x.s, x.m)
			if err := policytest.Check(x.s, &plan); err != nil {
				d.Fatalf(t, "%v", err)
			}
			told := tell(x.s, &plan, &next)
			if x.guarded {
				told += tellPools(x.s, &next)
			}
			return told
		})
	})
}

// tell writes the plan, the accounts of what budgets added, and what the memory
// says of each budget.
func tell(s *policy.Snapshot, plan *policy.Plan, next *policy.Memory) string {
	var b strings.Builder
	b.WriteString(plan.Format(s))
	why := func(w *policy.Why) {
		fmt.Fprintf(&b, "  %s", w.Text)
		if w.Before != 0 || w.After != 0 {
			fmt.Fprintf(&b, " (%s/h → %s/h)", w.Before.Short(), w.After.Short())
		}
		if w.RunnerUp != "" {
			fmt.Fprintf(&b, "; second: %s", w.RunnerUp)
		}
		b.WriteString("\n")
	}
	for i := range plan.Gates {
		why(&plan.Gates[i].Why)
	}
	for i := range plan.Pauses {
		why(&plan.Pauses[i].Why)
	}
	for i := range plan.Evicts {
		why(&plan.Evicts[i].Why)
	}
	for i := range plan.Holds {
		why(&plan.Holds[i].Why)
	}
	for i := range next.Budgets {
		m := &next.Budgets[i]
		fmt.Fprintf(&b, "%s: %.4f device-hours, %s", m.Name, use{used: m.Used}.hours(), m.Cost.Short())
		if m.Over != 0 {
			fmt.Fprintf(&b, ", spent for %v", s.Now.Sub(m.Over))
		}
		if m.Closed {
			b.WriteString(", closed")
		}
		if m.Absent != 0 {
			fmt.Fprintf(&b, ", absent for %v", s.Now.Sub(m.Absent))
		}
		if m.DevicePrice != 0 {
			fmt.Fprintf(&b, ", devices at %s/h", m.DevicePrice.Short())
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "wake in %v\n", plan.Wake.Sub(s.Now))
	return b.String()
}

// tellPools writes when pools were moved and which nodes are left alone for a while.
func tellPools(s *policy.Snapshot, next *policy.Memory) string {
	var b strings.Builder
	for i := range s.Pools {
		pool := next.Pool(s.Pools[i].Name)
		fmt.Fprintf(&b, "%s:", pool.Name)
		if pool.Moved == 0 {
			b.WriteString(" never moved")
		} else {
			fmt.Fprintf(&b, " moved %v ago", s.Now.Sub(pool.Moved))
		}
		for _, x := range pool.Backoff {
			fmt.Fprintf(&b, ", %s left alone for %v after %d", x.Node, x.Until.Sub(s.Now), x.Tries)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// An ordered policy plans what a story says.
type ordered struct{ plan policy.Plan }

func (o *ordered) Name() string { return "ordered" }

func (o *ordered) Decide(s *policy.Snapshot, m policy.Memory) (policy.Plan, policy.Memory) {
	plan := o.plan
	plan.Wake = policy.NextStep(s.Now, policy.DefaultStep)
	m.Decisions++
	return plan, m
}

// A story is what one of them describes.
type story struct {
	s       *policy.Snapshot
	m       policy.Memory
	inside  *ordered
	guarded bool
}

func parseStory(text string) (*story, error) {
	var rest, own []string
	for _, line := range strings.Split(text, "\n") {
		word, _, _ := strings.Cut(line, " ")
		switch word {
		case "gpus", "budget", "bound", "ended", "used", "remember", "suspended", "drain", "tried", "guarded":
			own = append(own, line)
		default:
			rest = append(rest, line)
		}
	}
	s, m, err := policytest.Parse(strings.Join(rest, "\n"))
	if err != nil {
		return nil, err
	}
	x := &story{s: s, m: m, inside: &ordered{}}
	for i := range s.Types {
		s.Types[i].Allocatable.GPU, s.Types[i].GPUResource = 8, "nvidia.com/gpu"
	}
	for i := range s.Nodes {
		s.Nodes[i].Allocatable.GPU, s.Nodes[i].GPUResource = 8, "nvidia.com/gpu"
	}
	for i := range s.Templates {
		t := &s.Templates[i]
		t.Labels = []policy.Label{{Key: "app", Value: strings.TrimPrefix(t.Name, "default/")}}
	}
	for i := range s.Pods {
		s.Pods[i].Bound = s.Now.Add(-time.Hour)
	}
	for _, line := range own {
		if err := x.line(strings.Fields(line)); err != nil {
			return nil, fmt.Errorf("%q: %w", line, err)
		}
	}
	return x, s.Validate()
}

func (x *story) template(app string) *policy.Template {
	i := slices.IndexFunc(x.s.Templates, func(t policy.Template) bool { return t.Name == "default/"+app })
	return &x.s.Templates[i]
}

func (x *story) ago(text string) policy.Time {
	d, err := time.ParseDuration(text)
	if err != nil {
		panic(err)
	}
	return x.s.Now.Add(-d)
}

func (x *story) line(w []string) error {
	s := x.s
	switch w[0] {
	case "gpus":
		t := x.template(w[1])
		n, err := strconv.Atoi(w[2])
		t.Requests.GPU, t.GPUResource = int64(n), "nvidia.com/gpu"
		return err
	case "budget":
		return x.budget(w[1:])
	case "bound":
		i := slices.IndexFunc(s.Pods, func(p policy.Pod) bool { return p.Name == "default/"+w[1] })
		s.Pods[i].Bound = x.ago(w[2])
	case "ended":
		s.Ended = append(s.Ended, policy.EndedPod{
			Name: "default/" + w[1] + "-gone", Template: x.template(w[1]).ID, Node: w[2], Start: x.ago(w[3]), End: x.ago(w[4]),
		})
	case "used":
		m := x.memory(w[1])
		hours, err := strconv.ParseFloat(w[3], 64)
		if err != nil {
			return err
		}
		at := x.ago(w[2])
		b := policy.BudgetBucket{Hour: at - at%msPerHour, Used: int64(hours * 1000 * msPerHour)}
		if len(w) > 4 {
			dollars, err := strconv.ParseFloat(w[4], 64)
			if err != nil {
				return err
			}
			b.Cost = policy.Dollars(dollars)
		}
		m.Buckets = append(m.Buckets, b)
	case "remember":
		x.remember(w[1:])
	case "suspended":
		job := &s.Workloads[x.template(w[1]).Workload]
		job.Suspended = true
		if len(w) > 2 {
			job.PausedBy = "default/" + w[2]
		}
	case "drain":
		x.drain(w[1:])
	case "tried":
		m := x.m.Pool(x.s.Pools[0].Name)
		m.Backoff = append(m.Backoff, policy.Backoff{Node: w[1], Until: x.ago("1h"), Tries: 2})
		x.m = x.m.With(m)
	case "guarded":
		x.guarded = true
	}
	return nil
}

func (x *story) budget(w []string) error {
	b := policy.Budget{
		Name: "default/" + w[0], Namespace: "default", Resource: "nvidia.com/gpu", Window: 24 * time.Hour,
		Selector: policy.Selector{Everything: w[1] == "*"},
	}
	if w[1] != "*" {
		b.Selector.Requirements = []policy.Requirement{{Key: "app", Op: policy.OpIn, Values: strings.Split(w[1], ",")}}
	}
	var err error
	for _, option := range w[2:] {
		key, value, _ := strings.Cut(option, "=")
		switch key {
		case "hours":
			b.HasGPUHours = true
			b.GPUHours, err = strconv.ParseFloat(value, 64)
		case "dollars":
			var dollars float64
			dollars, err = strconv.ParseFloat(value, 64)
			b.HasDollars, b.Dollars = true, policy.Dollars(dollars)
		case "window":
			var hours int
			hours, err = strconv.Atoi(value)
			b.Window = time.Duration(hours) * time.Hour
		case "action":
			for b.Action = policy.BudgetAlert; b.Action < policy.BudgetEvict && b.Action.String() != value; {
				b.Action++
			}
		case "delay":
			b.OverQuotaDelay, err = time.ParseDuration(value)
		case "grace":
			b.HasPodGrace = true
			b.PodGrace, err = time.ParseDuration(value)
		case "gate":
			b.Gate = true
		case "closed":
			b.Closed = true
		case "live":
			b.LiveObjects = true
		case "uid":
			b.UID = value
		case "invalid":
			b.Invalid = true
		default:
			err = fmt.Errorf("unknown option %q", key)
		}
		if err != nil {
			return err
		}
	}
	x.s.Budgets = append(x.s.Budgets, b)
	return nil
}

// memory returns what is remembered of a budget, counted up to now.
func (x *story) memory(name string) *policy.BudgetMemory {
	name = "default/" + name
	i := slices.IndexFunc(x.m.Budgets, func(b policy.BudgetMemory) bool { return b.Name == name })
	if i < 0 {
		i = len(x.m.Budgets)
		x.m.Budgets = append(x.m.Budgets, policy.BudgetMemory{Name: name, Counted: x.s.Now})
	}
	return &x.m.Budgets[i]
}

func (x *story) remember(w []string) {
	m := x.memory(w[0])
	for _, option := range w[1:] {
		key, value, _ := strings.Cut(option, "=")
		switch key {
		case "counted":
			m.Counted = x.ago(value)
		case "over":
			m.Over = x.ago(value)
		case "closed":
			m.Closed = true
		case "enforced":
			m.Enforced = x.ago(value)
		case "asked":
			m.Asked = append(m.Asked, policy.AskedPod{Pod: "default/" + value, At: x.s.Now.Add(-30 * time.Second)})
		case "device":
			dollars, err := strconv.ParseFloat(value, 64)
			if err != nil {
				panic(err)
			}
			m.DevicePrice = policy.Dollars(dollars)
		case "uid":
			m.UID = value
		case "absent":
			m.Absent = x.ago(value)
		}
	}
}

func (x *story) drain(w []string) {
	why := policy.Why{Reason: policy.ReasonCheaper, Text: "it is dear"}
	i := slices.IndexFunc(x.s.Nodes, func(n policy.Node) bool { return n.Name == w[0] })
	d := policy.Drain{Node: policy.NodeID(i), Why: why}
	for _, option := range w[1:] {
		if other, ok := strings.CutPrefix(option, "after="); ok {
			d.After = append(d.After, "token-"+other)
			continue
		}
		l := policy.Launch{Token: "token-" + w[0], Pool: 0, Markets: []policy.MarketID{0}, Replaces: d.Node, Why: why}
		if option == "free" {
			l.Replaces = policy.None
		}
		d.After = append(d.After, l.Token)
		x.inside.plan.Launches = append(x.inside.plan.Launches, l)
	}
	x.inside.plan.Drains = append(x.inside.plan.Drains, d)
}
