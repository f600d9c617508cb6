package registry_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/builtin/spotvortex"
	"github.com/spotter-dev/spotter/policy/guard"
	"github.com/spotter-dev/spotter/policy/policytest"
	"github.com/spotter-dev/spotter/policy/registry"
)

func TestNew(t *testing.T) {
	for spec, name := range map[string]string{
		"on-demand":                             "on-demand",
		"spot":                                  "spot",
		"karpenter":                             "karpenter",
		"as-is":                                 "as-is",
		"rescheduler":                           "rescheduler",
		"leftover":                              "leftover",
		"leftover:families=g5+g4dn:max_zones=3": "leftover:families=g4dn+g5:max_zones=3",
		"static":                                "static",
		"static:share=0.7":                      "static:share=0.7",
		"spotvortex":                            "spotvortex",
		"spotvortex:compat=true":                "spotvortex:compat=true",
		"manifest":                              "manifest",
	} {
		p, err := registry.New(spec, registry.Options{})
		if err != nil {
			t.Errorf("%s: %v", spec, err)
			continue
		}
		if p.Name() != name {
			t.Errorf("%s is called %s, want %s", spec, p.Name(), name)
		}
		if again, err := registry.New(p.Name(), registry.Options{}); err != nil || again.Name() != name {
			t.Errorf("the name %s does not make the policy again: %v", name, err)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	for _, c := range []struct {
		spec string
		is   error
		says []string
	}{
		{"statik", registry.ErrUnknown, []string{`"statik"`, "spot, spotvortex, static", `did you mean "static"?`}},
		{"ondemand", registry.ErrUnknown, []string{`did you mean "on-demand"?`}},
		{"SpotVortex", registry.ErrUnknown, []string{`did you mean "spotvortex"?`}},
		{"", registry.ErrUnknown, []string{"a name is missing"}},
		{":share=1", registry.ErrUnknown, []string{"a name is missing"}},
		{"static:share", registry.ErrParameter, []string{`"share"`, "key=value"}},
		{"static:share=0.1:share=0.2", registry.ErrParameter, []string{"given twice"}},
		{"static:share=2", registry.ErrParameter, []string{"share 2", "[0, 1]"}},
		{"static:ratio=0.5", registry.ErrParameter, []string{`"ratio"`, "it takes share"}},
		{"spot:share=1", registry.ErrParameter, []string{`"share"`}},
		{"on-demand:x=1", registry.ErrParameter, []string{`"x"`}},
		{"karpenter:x=1", registry.ErrParameter, []string{`"x"`}},
		{"as-is:x=1", registry.ErrParameter, []string{`"x"`}},
		{"manifest:x=1", registry.ErrParameter, []string{`"x"`}},
		{"spotvortex:compat=perhaps", registry.ErrParameter, []string{"compat", "perhaps"}},
		{"spotvortex:min=0.9:max=0.5", registry.ErrParameter, []string{"min = 0.9", "max = 0.5"}},
		{"spotvortex:max=0.5:min=0.9", registry.ErrParameter, []string{"min = 0.9", "max = 0.5"}},
		{"spotvortex:step=5s", registry.ErrParameter, []string{"step = 5s", "[1m0s, 2h0m0s]"}},
		{"leftover:max_zones=0", registry.ErrParameter, []string{"max_zones 0", "[1, 1000]"}},
		{"leftover:zones=2", registry.ErrParameter, []string{`"zones"`, "it takes families"}},
		{"spotvortex:nothing=1", registry.ErrParameter, []string{`"nothing"`}},
		{"spotvortex:runtime=x.json", registry.ErrParameter, []string{"cannot be read here"}},
		{"spotvortex:bundle=x", registry.ErrParameter, []string{`bundle "x" cannot be used here`}},
		{"spotvortex:bundle=", registry.ErrParameter, []string{"bundle names no folder"}},
		{"static:bundle=x", registry.ErrParameter, []string{`"bundle"`}},
		{"model", registry.ErrParameter, []string{"bundle is missing", "model:bundle=DIR"}},
		{"models", registry.ErrUnknown, []string{`did you mean "model"?`}},
	} {
		_, err := registry.New(c.spec, registry.Options{})
		if !errors.Is(err, c.is) {
			t.Errorf("%q: %v is not %v", c.spec, err, c.is)
			continue
		}
		for _, part := range c.says {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q: %q does not say %q", c.spec, err, part)
			}
		}
	}
	if _, err := registry.New("quite-another-thing", registry.Options{}); strings.Contains(err.Error(), "did you mean") {
		t.Errorf("a far name is suggested: %v", err)
	}
}

func TestParse(t *testing.T) {
	got, err := registry.Parse("on-demand, static:share=0.3,spotvortex:compat=true")
	if want := []string{"on-demand", "static:share=0.3", "spotvortex:compat=true"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v", got, err)
	}
	for list, part := range map[string]string{
		"":                  "a name is missing",
		"spot,,static":      "a name is missing",
		"spot,spot":         "named twice",
		"static:share,spot": "key=value",
	} {
		if _, err := registry.Parse(list); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%q: %v does not say %q", list, err, part)
		}
	}
}

func TestRuntime(t *testing.T) {
	o := registry.Options{ReadRuntime: func(path string) (spotvortex.Config, error) {
		if path != "a.json" {
			return spotvortex.Config{}, errors.New("no such file")
		}
		cfg := spotvortex.Shipped()
		cfg.TargetShare = 0.25
		return cfg, nil
	}}
	p, err := registry.New("spotvortex:compat=true:runtime=a.json", o)
	if err != nil {
		t.Fatal(err)
	}
	if want := "spotvortex:compat=true:target=0.25"; p.Name() != want {
		t.Errorf("called %s, want %s: what stands before the file must not be lost to it", p.Name(), want)
	}
	if _, err := registry.New("spotvortex:runtime=b.json", o); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("missing file: %v", err)
	}
}

// TestBundle takes a bundle for the policies that read forecasts, keeps it in
// their names, and asks whether it is good.
func TestBundle(t *testing.T) {
	asked := ""
	o := registry.Options{OpenBundle: func(dir string) error {
		asked = dir
		if dir == "bad" {
			return errors.New("a byte is flipped")
		}
		return nil
	}}
	for spec, want := range map[string]registry.Bundle{
		"model:bundle=a/b":                   {Dir: "a/b", Actions: true},
		"model:margin=0.1:bundle=a":          {Dir: "a", Actions: true},
		"portfolio:bundle=a":                 {Dir: "a"},
		"spotvortex:bundle=a":                {Dir: "a"},
		"spotvortex:compat=true:bundle=a":    {Dir: "a", Letter: true},
		"spotvortex:bundle=a:compat=false":   {Dir: "a"},
		"spotvortex:compat=true:target=0.25": {Letter: true},
		"static":                             {},
	} {
		asked = ""
		p, err := registry.New(spec, o)
		if err != nil || asked != want.Dir {
			t.Errorf("%s: asked for %q, %v", spec, asked, err)
			continue
		}
		if again, err := registry.New(p.Name(), o); err != nil || again.Name() != p.Name() {
			t.Errorf("%s: its name %s does not make it again: %v", spec, p.Name(), err)
		}
		for _, s := range []string{spec, p.Name()} {
			if got, err := registry.BundleOf(s); err != nil || got != want {
				t.Errorf("%s: %+v, %v, want %+v", s, got, err, want)
			}
		}
	}
	if _, err := registry.New("model:bundle=bad", o); !errors.Is(err, registry.ErrParameter) ||
		!strings.Contains(err.Error(), "a byte is flipped") {
		t.Error(err)
	}
	if slices.Contains(registry.Names(), "model") {
		t.Error("model is among the policies that need no parameter")
	}
}

// market is a scenario of two markets, as scripted cases write it.
const market = `type b.4 4
market z b.4 on-demand 0.20
market z b.4 spot 0.06 confidence=0.9
`

// TestGuarded shows which policies run behind guardrails: those that do drain one node of three,
// and hold the others.
func TestGuarded(t *testing.T) {
	s, m, err := policytest.Parse(market + `pool web steer=1
app one 1
node n1 web z b.4 on-demand
node n2 web z b.4 on-demand
node n3 web z b.4 on-demand
pod one n1
pod one n2
pod one n3
`)
	if err != nil {
		t.Fatal(err)
	}
	p, err := registry.New("static:share=1", registry.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if plan, _ := p.Decide(s, m); len(plan.Drains) != 1 || len(plan.Holds) != 2 || len(plan.Launches) != 1 {
		t.Errorf("not guarded:\n%s", plan.Format(s))
	}
	free := guard.DefaultConfig()
	free.FractionMax = 1
	if p, err = registry.New("static:share=1", registry.Options{Guard: &free}); err != nil {
		t.Fatal(err)
	}
	if plan, _ := p.Decide(s, m); len(plan.Drains) != 3 {
		t.Errorf("the given guardrails are not used:\n%s", plan.Format(s))
	}
	free.FractionMax = 0
	if _, err := registry.New("static", registry.Options{Guard: &free}); err == nil {
		t.Error("guardrails that are not valid were taken")
	}
}

// TestBare shows which policies stand without guardrails: wrapped, a policy
// that is followed to the letter would not be what it says it is.
func TestBare(t *testing.T) {
	for spec, bare := range map[string]bool{
		"on-demand": true, "spot": true, "spotvortex:compat=true": true, "static": false, "spotvortex": false, "leftover": false,
	} {
		p, err := registry.New(spec, registry.Options{})
		if err != nil {
			t.Fatal(err)
		}
		around, ok := p.(interface{ Inside() policy.Policy })
		if !ok {
			t.Fatalf("%s is a %T, without budgets", spec, p)
		}
		if guarded := strings.HasSuffix(fmt.Sprintf("%T", around.Inside()), ".guarded"); guarded == bare {
			t.Errorf("%s is a %T", spec, around.Inside())
		}
	}
}

// TestManifest lets each pool be decided by its own policy.
func TestManifest(t *testing.T) {
	s, m, err := policytest.Parse(market + "pool api none\npool batch\npool odd\npool web\napp one 1\npod one pending\n")
	if err != nil {
		t.Fatal(err)
	}
	s.Pools[0].Policy, s.Pools[1].Policy, s.Pools[2].Policy = "on-demand", "static:share=0.3", "unheard-of"
	p, err := registry.New("manifest", registry.Options{Manifests: []string{"on-demand", "static:share=0.3", "", "on-demand"}})
	if err != nil {
		t.Fatal(err)
	}
	plan, next := p.Decide(s, m)
	if err := policytest.Check(s, &plan); err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(plan.Holds, func(h policy.Hold) bool { return h.Pool == policy.None }) {
		t.Errorf("a policy decided for pools that are not its own:\n%s", plan.Format(s))
	}
	share := make(map[string]float64)
	for _, st := range plan.Steers {
		share[s.Pools[st.Pool].Name] = st.Share
	}
	if share["api"] != 0 || share["batch"] != 0.3 || len(share) < 2 {
		t.Errorf("shares %v:\n%s", share, plan.Format(s))
	}
	if _, steered := share["odd"]; steered || !slices.ContainsFunc(plan.Holds, func(h policy.Hold) bool { return h.Pool == 2 }) {
		t.Errorf("the pool of an unknown policy is not held:\n%s", plan.Format(s))
	}
	if next.Decisions != m.Decisions+1 {
		t.Errorf("%d decisions after %d", next.Decisions, m.Decisions)
	}
	for _, bad := range []string{"statik", "static:share=7", "manifest"} {
		if _, err := registry.New("manifest", registry.Options{Manifests: []string{bad}}); err == nil {
			t.Errorf("a manifest may name %s", bad)
		}
	}
}

// TestManifestDefault: a pool that names no policy is decided by portfolio.
func TestManifestDefault(t *testing.T) {
	s, m, err := policytest.Parse(market + "pool web\napp api 1 pdb=1 replicas=2\nnode n1 web z b.4 on-demand\npod api n1 2\n")
	if err != nil {
		t.Fatal(err)
	}
	plans := make(map[string]string)
	for _, spec := range []string{"manifest", "portfolio", "spotvortex"} {
		p, err := registry.New(spec, registry.Options{})
		if err != nil {
			t.Fatal(err)
		}
		plan, _ := p.Decide(s, m)
		plans[spec] = plan.Format(s)
	}
	if plans["manifest"] != plans["portfolio"] || plans["manifest"] == plans["spotvortex"] {
		t.Errorf("the manifest's plan is\n%s\nof portfolio\n%s\nand of spotvortex\n%s", plans["manifest"],
			plans["portfolio"], plans["spotvortex"])
	}
}

// TestManifestKeepsApart has two pools that no provisioner serves, each with a
// policy of its own: one pod that waits is bought for once, and what a policy
// does with its pool leaves no trace in the memory of another's.
func TestManifestKeepsApart(t *testing.T) {
	s, m, err := policytest.Parse(market + `pool api none steer=1
pool web none steer=1
app one 1
node n1 api z b.4 on-demand do-not-disrupt
node n2 web z b.4 on-demand
app big 3.5
pod one n1
pod one n2
pod big pending
`)
	if err != nil {
		t.Fatal(err)
	}
	s.Pools[0].Policy, s.Pools[1].Policy = "static:share=1.0", "static:share=1"
	p, err := registry.New("manifest", registry.Options{Manifests: []string{"static:share=1.0", "static:share=1"}})
	if err != nil {
		t.Fatal(err)
	}
	plan, next := p.Decide(s, m)
	bought := 0
	for _, l := range plan.Launches {
		if l.Why.Reason == policy.ReasonShortage {
			bought++
		}
	}
	if bought != 1 {
		t.Errorf("%d nodes bought for one pod:\n%s", bought, plan.Format(s))
	}
	if len(plan.Drains) != 1 || s.Nodes[plan.Drains[0].Node].Name != "n2" {
		t.Errorf("the second policy does not move its node:\n%s", plan.Format(s))
	}
	if next.Pool("web").Moved != s.Now || next.Pool("api").Moved != 0 {
		t.Errorf("memory %+v after\n%s", next, plan.Format(s))
	}
}

// TestRules runs the suite on the policies as they are used.
func TestRules(t *testing.T) {
	for _, spec := range []string{"manifest"} {
		t.Run(spec, func(t *testing.T) {
			policytest.Run(t, func() policy.Policy {
				p, err := registry.New(spec, registry.Options{})
				if err != nil {
					t.Fatal(err)
				}
				return p
			})
		})
	}
}
