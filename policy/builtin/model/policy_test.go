package model_test

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"pgregory.net/rapid"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/builtin/model"
	"github.com/spotter-dev/spotter/policy/policytest"
)

// build makes the policy of a scripted case.
var build = policytest.Builder(model.DefaultConfig, model.New)

func TestRules(t *testing.T) {
	policytest.Rules(t, build, "", "calm=false;floor=0;spread=0", "cap=true;margin=0.5;cooldown=1h", "interval=10m")
}

// TestDecide runs the cases of testdata/decide, in the language of
// [policytest.Cases]; values=Q0/…/Q5 are those of the first pool, and at=DURATION
// is how long after midnight it is and target=X what it was steered to before.
func TestDecide(t *testing.T) {
	datadriven.Walk(t, "testdata/decide", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			spec, values, at, target := "", "", "0s", ""
			d.MaybeScanArgs(t, "target", &target)
			d.MaybeScanArgs(t, "at", &at)
			d.MaybeScanArgs(t, "policy", &spec)
			d.MaybeScanArgs(t, "values", &values)
			p, err := build(spec)
			if err != nil {
				return err.Error() + "\n"
			}
			s, m, err := policytest.Parse(d.Input)
			if err != nil {
				d.Fatalf(t, "%v", err)
			}
			after, err := time.ParseDuration(at)
			if err != nil {
				d.Fatalf(t, "%v", err)
			}
			shift(s, &m, after)
			if target != "" {
				pool := m.Pool(s.Pools[0].Name)
				pool.Target, pool.HasTarget = numbers(t, target)[0], true
				m = m.With(pool)
			}
			if values != "" {
				s.Pools[0].Actions = numbers(t, values)
			}
			plan, next := p.Decide(s, m)
			if err := policytest.Check(s, &plan); err != nil {
				d.Fatalf(t, "%v", err)
			}
			out := plan.Format(s)
			for _, h := range plan.Holds {
				out += fmt.Sprintf("  %s; second: %s\n", h.Why.Text, h.Why.RunnerUp)
			}
			for _, x := range plan.Steers {
				out += fmt.Sprintf("  %s; second: %s\n", x.Why.Text, x.Why.RunnerUp)
			}
			for _, pool := range next.Pools {
				out += fmt.Sprintf("target of %s: %g\n", pool.Name, pool.Target)
			}
			return out
		})
	})
}

// shift moves a scripted case to another time of the day.
func shift(s *policy.Snapshot, m *policy.Memory, by time.Duration) {
	s.Now = s.Now.Add(by)
	for i := range s.Nodes {
		if n := &s.Nodes[i]; n.ReclaimAt != 0 {
			n.NoticeAt, n.ReclaimAt = n.NoticeAt.Add(by), n.ReclaimAt.Add(by)
		}
	}
	for i := range m.Pools {
		if p := &m.Pools[i]; p.Steered != 0 {
			p.Steered = p.Steered.Add(by)
		}
	}
}

func numbers(t *testing.T, list string) []float64 {
	var all []float64
	for _, word := range strings.Split(list, "/") {
		x, err := strconv.ParseFloat(word, 64)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, x)
	}
	return all
}

// TestStaysWithinBounds draws any values: the target stays within what the pool allows, more is
// never bought because less is valued, and a pool without values keeps its target. No provisioner
// may move back to Spot what is on demand for the floor, which is on by default.
func TestStaysWithinBounds(t *testing.T) {
	steered := 0
	rapid.Check(t, func(t *rapid.T) {
		s := policytest.Snapshot().Draw(t, "snapshot")
		m := policytest.Memory(s).Draw(t, "memory")
		for i := range s.Pools {
			if rapid.Bool().Draw(t, "valued") {
				s.Pools[i].Actions = rapid.SliceOfN(rapid.Float64Range(-5, 5), 6, 6).Draw(t, "values")
			}
		}
		p, err := model.New(model.DefaultConfig())
		if err != nil {
			t.Fatal(err)
		}
		plan, next := p.Decide(s, m)
		if err := policytest.Check(s, &plan); err != nil {
			t.Fatal(err)
		}
		for _, x := range plan.Steers {
			if s.Pools[x.Pool].Provisioner == policy.ProvisionerKarpenter {
				steered++
				if !x.EmptyOnly {
					t.Fatalf("Karpenter may consolidate nodes of %s that are in use", s.Pools[x.Pool].Name)
				}
			}
		}
		for i := range s.Pools {
			pool := &s.Pools[i]
			was, now := m.Pool(pool.Name), next.Pool(pool.Name)
			if pool.Mode == policy.ModeOff || pool.Share.Exact {
				continue
			}
			if now.Steered == s.Now && was.HasTarget && (now.Target < pool.Share.Min-5e-4 || now.Target > pool.Share.Max+5e-4) {
				t.Fatalf("%s is told %v, outside of [%v, %v]", pool.Name, now.Target, pool.Share.Min, pool.Share.Max)
			}
			if len(pool.Actions) == 0 && was.HasTarget && math.Abs(now.Target-was.Target) > 5e-4 &&
				was.Target >= pool.Share.Min && was.Target <= pool.Share.Max && now.Target > was.Target {
				t.Fatalf("%s has no values and goes from %v to %v", pool.Name, was.Target, now.Target)
			}
		}
	})
	if steered == 0 {
		t.Error("no pool of Karpenter was steered")
	}
}

func TestParameters(t *testing.T) {
	for spec, want := range map[string]string{
		"": "model", "cap=false": "model", "cap=true": "model:cap=true", "margin=0.5;cooldown=1h": "model:cooldown=1h0m0s:margin=0.5",
		"interval=10m;cooldown=30m":     "model:interval=10m0s",
		"calm=false;floor=0.1;spread=0": "model:calm=false:floor=0.1:spread=0",
	} {
		p, err := build(spec)
		if err != nil || p.Name() != want {
			t.Errorf("%q is %v, %v, want %s", spec, p, err, want)
		}
	}
	for spec, want := range map[string]string{
		"margin=-1": "margin -1 is not in [0, 1e6]", "margin=NaN": "margin NaN", "margin=x": "margin \"x\" is not a number",
		"cooldown=1": "cooldown \"1\" is not a duration", "cooldown=-1m": "cooldown -1m0s", "interval=-1h": "interval -1h0m0s is not in", "cap=yes": "cap \"yes\" is not true or false",
		"floor=2": "floor 2 is not in [0, 1]", "floor=NaN": "floor NaN", "floor=-0.1": "floor -0.1", "calm=1h": "calm \"1h\" is not true or false",
		"share=1": "unknown parameter \"share\"",
	} {
		if _, err := build(spec); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", spec, err)
		}
	}
}
