package rescheduler_test

import (
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy/builtin/rescheduler"
	"github.com/spotter-dev/spotter/policy/policytest"
)

// build makes the policy of a scripted case.
var build = policytest.Builder(rescheduler.DefaultConfig, rescheduler.New)

func TestRules(t *testing.T) {
	policytest.Rules(t, build, "", "drains=budget;delete_non_replicated=true;spot_label=karpenter.sh/capacity-type=spot")
}

func TestDecide(t *testing.T) { policytest.Cases(t, "testdata/decide", build) }

func TestParameters(t *testing.T) {
	for _, c := range []struct{ spec, name, says string }{
		{"", "rescheduler", ""},
		{"drain_delay=10m;drains=one;scale_up=true", "rescheduler", ""},
		{"spot_label=a/spot;on_demand_label=role=worker", "rescheduler:on_demand_label=role=worker:spot_label=a/spot", ""},
		{"drain_delay=5m0s", "rescheduler:drain_delay=5m0s", ""},
		{"drains=budget;delete_non_replicated=true;scale_up=false", "rescheduler:drains=budget:delete_non_replicated=true:scale_up=false", ""},
		{"drain_delay=-1s", "", "drain_delay -1s is negative"},
		{"drain_delay=soon", "", `drain_delay "soon" is not a duration`},
		{"drains=all", "", `drains "all" is neither one nor budget`},
		{"scale_up=perhaps", "", `scale_up "perhaps" is not true or false`},
		{"delete_non_replicated=2", "", `delete_non_replicated "2" is not true or false`},
		{"spot_label=", "", "the spot node label is not correctly formatted"},
		{"on_demand_label==x", "", "the on demand node label is not correctly formatted"},
		{"label=x", "", `unknown parameter "label"`},
	} {
		p, err := build(c.spec)
		switch {
		case c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)):
			t.Errorf("%s: %v does not say %s", c.spec, err, c.says)
		case c.says == "" && err != nil:
			t.Errorf("%s: %v", c.spec, err)
		case c.says == "" && p.Name() != c.name:
			t.Errorf("%s is called %s, want %s", c.spec, p.Name(), c.name)
		}
	}
	for _, cfg := range []rescheduler.Config{
		{DrainDelay: -time.Second, Drains: rescheduler.OneNode}, {Drains: "two"},
		{Drains: rescheduler.OneNode, SpotLabel: "a=b=c"}, {Drains: rescheduler.OneNode, OnDemandLabel: "a=b=c"},
	} {
		if _, err := rescheduler.New(cfg); err == nil {
			t.Errorf("%+v was taken", cfg)
		}
	}
}
