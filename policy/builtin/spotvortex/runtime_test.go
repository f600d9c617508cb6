package spotvortex_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy/builtin/spotvortex"
	"github.com/spotter-dev/spotter/policy/policytest"
)

func parse(t *testing.T, text string) spotvortex.Config {
	t.Helper()
	c, err := spotvortex.ParseRuntime([]byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestParseRuntimeDefaults(t *testing.T) {
	want := spotvortex.DefaultConfig().Normal()
	for _, text := range []string{`{}`, `{"deterministic_policy":{}}`, `{"policy_mode":"whatever","rl_shadow_enabled":true}`} {
		if got := parse(t, text); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v\nwant %+v", text, got, want)
		}
	}
}

// The shipped file with its buckets written down is what Shipped returns.
func TestGoldenShipped(t *testing.T) {
	var file struct {
		Configs map[string]json.RawMessage `json:"configs"`
	}
	if err := json.Unmarshal(policytest.Golden(t, "spotvortex_policy.json"), &file); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]spotvortex.Config{"shipped": spotvortex.Shipped(), "default": spotvortex.DefaultConfig()} {
		if got := parse(t, string(file.Configs[name])); !reflect.DeepEqual(got, want.Normal()) {
			t.Errorf("%s: got %+v\nwant %+v", name, got, want.Normal())
		}
	}
}

func TestParseRuntimeLimits(t *testing.T) {
	c := parse(t, `{
		"risk_multiplier": 50, "min_spot_ratio": 0.6, "max_spot_ratio": 0.4, "target_spot_ratio": 0.9, "step_minutes": 500,
		"deterministic_policy": {
			"emergency_risk_threshold": 0.5, "high_risk_threshold": 0.7, "medium_risk_threshold": 0.9,
			"max_payback_hours_for_increase": 1000, "ood_mode": "off", "target_spot_ratio_drift_alpha": 0,
			"priority_cap_rules": [{"threshold": 0.2, "max_spot_ratio": 0.9}, {"threshold": 7, "max_spot_ratio": -1}],
			"feature_buckets": {"pod_startup_time_seconds": [9, 1, 9], "outage_penalty_hours": [1, 2], "priority_score": [0, 1], "cluster_utilization": [0, 1]}
		}}`)
	r := c.Rules
	for _, x := range []struct {
		name      string
		got, want any
	}{
		{"risk multiplier", c.RiskMultiplier, 10.0},
		{"maximum", c.MaxShare, 0.4},
		{"minimum, not above the maximum", c.MinShare, 0.4},
		{"target, between them", c.TargetShare, 0.4},
		{"step", c.Step, 2 * time.Hour},
		{"high, not above emergency", r.HighRisk, 0.5},
		{"medium, not above high", r.MediumRisk, 0.5},
		{"payback", r.Increase.PaybackMax, 168.0},
		{"outside", r.OutsideConservative, false},
		{"drift, which may be 0", r.Drift, 0.0},
		{"cap rules, falling and limited", r.PriorityCaps, spotvortex.Caps{{Threshold: 1, MaxShare: 0}, {Threshold: 0.2, MaxShare: 0.9}}},
		{"buckets, rising and each once", r.Buckets.Startup, []float64{1, 9}},
	} {
		if !reflect.DeepEqual(x.got, x.want) {
			t.Errorf("%s: got %v, want %v", x.name, x.got, x.want)
		}
	}
}

func TestParseRuntimeNoSpot(t *testing.T) {
	c := parse(t, `{"max_spot_ratio": 0, "min_spot_ratio": 0.167}`)
	if c.MaxShare != 0 || c.MinShare != 0 {
		t.Errorf("a maximum of 0 gives %v to %v, want no spot", c.MinShare, c.MaxShare)
	}
	c.Compat = true
	if got := c.Normal().MaxShare; got != 1 {
		t.Errorf("to the letter a maximum of 0 gives %v, want 1", got)
	}
}

func TestParseRuntimeBuckets(t *testing.T) {
	asked := ""
	read := func(source string) ([]byte, error) {
		asked = source
		return []byte(`{"pod_startup_time":{"count":9,"min":1,"p05":2,"p50":3,"p95":4,"max":5},
			"outage_penalty_hours":{"min":0.1,"p05":0.2,"p50":0.3,"p95":0.4,"max":0.5},
			"cluster_utilization_typical":{"min":0.5,"p05":0.6,"p50":0.7,"p95":0.8,"max":0.9},
			"migration_cost":{"min":0,"p05":0,"p50":0,"p95":0,"max":0}}`), nil
	}
	c, err := spotvortex.ParseRuntime([]byte(`{"deterministic_policy":{"feature_buckets":{"source":"some/file.yaml"}}}`), read)
	if err != nil {
		t.Fatal(err)
	}
	want := spotvortex.Buckets{
		Startup: []float64{1, 2, 3, 4, 5}, Penalty: []float64{0.1, 0.2, 0.3, 0.4, 0.5},
		Priority: []float64{0, 0.25, 0.5, 0.75, 1}, Utilization: []float64{0.5, 0.6, 0.7, 0.8, 0.9},
	}
	if asked != "some/file.yaml" || !reflect.DeepEqual(c.Rules.Buckets, want) {
		t.Errorf("from %q: got %+v, want %+v", asked, c.Rules.Buckets, want)
	}
}

func TestParseRuntimeErrors(t *testing.T) {
	unreadable := func(string) ([]byte, error) { return nil, errors.New("no such file") }
	for _, c := range []struct {
		name, text, want string
		buckets          func(string) ([]byte, error)
	}{
		{"unknown key", `{"risk_multipler": 1}`, `unknown key "risk_multipler"`, nil},
		{"unknown key in the rules", `{"deterministic_policy":{"high_risk": 1}}`, `unknown key "high_risk"`, nil},
		{"truncated", `{"risk_multiplier": 1`, "unexpected EOF", nil},
		{"two values", `{} {}`, "more than one", nil},
		{"wrong kind", `{"risk_multiplier": "1"}`, "risk_multiplier", nil},
		{"decided by a model", `{"policy_mode": "rl"}`, "policy_mode", nil},
		{"nobody reads the source", `{"deterministic_policy":{"feature_buckets":{"source":"f.yaml"}}}`, `"f.yaml"`, nil},
		{"unreadable source", `{"deterministic_policy":{"feature_buckets":{"source":"f.yaml"}}}`, "no such file", unreadable},
		{"foreign source", `{"deterministic_policy":{"feature_buckets":{"source":"f.yaml"}}}`, "lacks one of",
			func(string) ([]byte, error) { return []byte(`{}`), nil }},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := spotvortex.ParseRuntime([]byte(c.text), c.buckets)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
	if _, err := spotvortex.ParseRuntime([]byte(`{"policy_mode": "rl"}`), nil); !errors.Is(err, spotvortex.ErrModelMode) {
		t.Errorf("got %v, want ErrModelMode", err)
	}
}

func TestSet(t *testing.T) {
	c := spotvortex.Shipped()
	for _, kv := range [][2]string{{"target", "0.6"}, {"max", "0.1"}, {"risk_multiplier", "2"}, {"step", "30m"},
		{"calm", "0s"}, {"compat", "true"}} {
		if err := c.Set(kv[0], kv[1]); err != nil {
			t.Fatal(err)
		}
	}
	if c.MaxShare != 0.1 || c.MinShare != 0.1 || c.Step != 30*time.Minute || c.Calm != 0 || !c.Compat {
		t.Errorf("got %+v", c)
	}
	if got, want := spotvortex.New(c).Name(), "spotvortex:compat=true:target=0.1:min=0.1:max=0.1:risk_multiplier=2:step=30m0s:calm=0s"; got != want {
		t.Errorf("name %q, want %q", got, want)
	}
	if got := spotvortex.New(spotvortex.Shipped()).Name(); got != "spotvortex" {
		t.Errorf("name %q, want spotvortex", got)
	}
	before := c
	for _, c1 := range [][3]string{
		{"targt", "1", `no parameter "targt"`}, {"target", "half", `target "half" is not a number`}, {"target", "1.5",
			"target = 1.5 is not in [0, 1]"},
		{"risk_multiplier", "NaN", "risk_multiplier"}, {"step", "10", `step "10" is not a duration`}, {"min", "0.9",
			"above max"}, {"compat", "yes!", `compat "yes!" is not true or false`},
	} {
		if err := c.Set(c1[0], c1[1]); err == nil || !strings.Contains(err.Error(), c1[2]) {
			t.Errorf("%s=%s: got %v, want an error with %q", c1[0], c1[1], err, c1[2])
		}
		if !reflect.DeepEqual(c, before) {
			t.Fatalf("%s=%s was refused and changed the configuration", c1[0], c1[1])
		}
	}
}
