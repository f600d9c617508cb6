package policy_test

import (
	"encoding/json"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/spotter-dev/spotter"

// A rule says which packages of this module the packages that match a pattern
// may import. The first rule that matches a package holds for it.
type rule struct {
	pkg  string
	ours []string // patterns; "x/..." matches x and all below it

	// except lists packages that are left out of `ours`.
	except []string

	// decides says that pkg is part of a decision: it may use the standard
	// library only.
	decides bool
}

// forPolicies is what every policy may import.
var forPolicies = []string{"policy", "policy/replan", "policy/placement", "policy/workload", "policy/billing",
	"policy/share", "policy/scratch", "policy/portable", "policy/figures"}

// architecture is the table of the packages. One that no rule matches fails
// the test: who adds a package says here what it may know of the others.
var architecture = []rule{
	{pkg: "policy", ours: []string{"policy/figures"}, decides: true},
	{pkg: "policy/figures", decides: true},
	{pkg: "policy/portable", decides: true},
	{pkg: "policy/scratch", decides: true},
	{pkg: "policy/share", ours: []string{"policy"}, decides: true},
	{pkg: "policy/guard", ours: []string{"policy/figures", "policy", "policy/scratch", "policy/share"}, decides: true},
	{pkg: "policy/replan", ours: []string{"policy", "policy/placement", "policy/billing", "policy/share", "policy/scratch"}, decides: true},
	{pkg: "policy/billing", ours: []string{"policy"}, decides: true},
	{pkg: "policy/workload", ours: []string{"policy", "policy/share", "policy/scratch"}, decides: true},
	{pkg: "policy/placement", ours: []string{"policy", "policy/share", "policy/billing", "policy/scratch"}, decides: true},
	{pkg: "policy/gpubudget", ours: []string{"policy/figures", "policy", "policy/billing"}, decides: true},
	{pkg: "policy/registry", ours: []string{"policy/...", "internal/nearest"},
		except: []string{"policy/driver", "policy/record", "policy/v1alpha1", "policy/kube", "policy/policytest"}},
	{pkg: "policy/driver", ours: []string{"policy"}},
	{pkg: "policy/record", ours: []string{"policy", "policy/billing", "policy/driver", "policy/registry", "policy/figures"}},
	{pkg: "policy/policytest", ours: []string{"policy", "policy/billing", "policy/driver", "policy/guard"}},
	{pkg: "policy/v1alpha1", ours: []string{"policy"}},
	{pkg: "policy/kube", ours: []string{"policy", "policy/v1alpha1"}},
	{pkg: "policy/builtin/model", ours: append(slices.Clone(forPolicies), "policy/builtin/portfolio"), decides: true},
	{pkg: "policy/builtin/*", ours: forPolicies, decides: true},
	{pkg: "models", ours: []string{"policy", "policy/workload", "policy/share", "policy/scratch", "policy/portable"}},
	{pkg: "models/onnx", ours: []string{"models", "policy"}},
	{pkg: "scenarios/chance", ours: []string{"policy/portable"}},
	{pkg: "scenarios/catalog", ours: []string{"policy"}},
	{pkg: "scenarios/weather", ours: []string{"policy", "scenarios/catalog", "scenarios/chance", "policy/portable"}},
	{pkg: "scenarios/trace", ours: []string{"policy", "policy/portable"}},
	{pkg: "scenarios/trace/importer", ours: []string{"internal/nearest", "policy", "scenarios/catalog", "scenarios/trace"}},
	{pkg: "scenarios/trace/tracetest", ours: []string{"policy", "scenarios/trace"}},
	{pkg: "scenarios/trace/measure", ours: []string{"policy", "policy/portable", "scenarios/catalog", "scenarios/trace"}},
	{pkg: "scenarios/trace/generate", ours: []string{"policy", "policy/portable", "scenarios/catalog", "scenarios/chance", "scenarios/trace"}},
	{pkg: "scenarios", ours: []string{"internal/nearest", "policy", "policy/v1alpha1", "policy/kube", "scenarios/chance",
		"sim/kueue", "scenarios/catalog", "scenarios/karpenter", "scenarios/weather", "scenarios/trace"}},
	{pkg: "scenarios/edit", ours: []string{"internal/nearest"}},
	{pkg: "scenarios/karpenter"},
	{pkg: "sim/fleet", ours: []string{"policy"}},
	{pkg: "sim/autoscaler", ours: []string{"policy", "policy/placement"}},
	{pkg: "sim/karpenter", ours: []string{"policy", "policy/placement", "policy/portable"}},
	{pkg: "sim/kueue", ours: []string{"policy"}},
	{pkg: "sim/scheduler", ours: []string{"policy", "policy/placement", "policy/portable"}},
	{pkg: "sim/fixed", ours: []string{"policy", "policy/figures", "policy/kube", "policy/placement", "policy/v1alpha1",
		"scenarios", "sim/scheduler"}},
	{pkg: "sim/engine", ours: []string{"policy", "policy/portable"}},
	{pkg: "sim/market", ours: []string{"sim/engine", "policy", "policy/billing", "policy/portable", "scenarios/..."}},
	{pkg: "sim/result", ours: []string{"policy", "policy/billing", "policy/figures"}},
	{pkg: "sim/setup", ours: []string{"sim/engine", "sim/market", "sim/result", "policy", "policy/billing",
		"policy/placement", "scenarios", "scenarios/weather"}},
	{pkg: "sim/simtest", ours: []string{"sim/market", "sim/setup", "policy", "scenarios"}},
	{pkg: "sim/cluster", ours: []string{"sim/engine", "sim/kueue", "sim/result", "sim/scheduler", "sim/setup", "policy",
		"policy/placement", "policy/billing", "policy/portable", "scenarios/..."}},
	{pkg: "sim/machines", ours: []string{"sim/cluster", "sim/engine", "sim/market", "policy", "policy/placement",
		"policy/billing", "policy/figures", "policy/kube", "scenarios/..."}},
	{pkg: "sim/nodepools", ours: []string{"sim/cluster", "sim/engine", "sim/fleet", "sim/karpenter", "sim/machines",
		"policy", "policy/placement", "policy/portable", "scenarios/..."}},
	{pkg: "sim/groups", ours: []string{"sim/autoscaler", "sim/cluster", "sim/engine", "sim/machines", "sim/market",
		"policy", "policy/placement", "policy/driver", "scenarios/..."}},
	{pkg: "sim/controller", ours: []string{"sim/cluster", "sim/engine", "sim/groups", "sim/machines", "sim/nodepools",
		"policy", "policy/driver", "policy/portable", "scenarios"}},
	{pkg: "sim", ours: []string{"sim/cluster", "sim/controller", "sim/engine", "sim/groups", "sim/machines",
		"sim/market", "sim/nodepools", "sim/result", "sim/setup", "policy", "policy/billing", "policy/driver", "scenarios/..."}},
	{pkg: "eval/stats", ours: []string{"policy/portable"}},
	{pkg: "eval/oracle", ours: []string{"policy/scratch", "sim", "policy", "policy/billing", "policy/placement",
		"scenarios", "scenarios/weather"}},
	{pkg: "eval/chart", ours: []string{"policy", "policy/figures"}},
	{pkg: "eval/timeline", ours: []string{"sim", "policy/...", "scenarios/..."}},
	{pkg: "eval/evaltest", ours: []string{"sim", "models", "policy", "policy/billing", "policy/registry", "scenarios",
		"scenarios/chance", "scenarios/trace"}},
	{pkg: "eval/tabular", ours: []string{"policy"}},
	{pkg: "eval/shard", ours: []string{"eval", "eval/oracle", "sim", "policy", "scenarios"}},
	{pkg: "eval/bill", ours: []string{"eval/tabular", "sim", "policy", "policy/billing", "policy/record"}},
	{pkg: "eval/sweep", ours: []string{"internal/ranges", "eval", "eval/format", "eval/stats", "eval/tabular", "sim",
		"scenarios", "scenarios/chance", "scenarios/edit"}},
	{pkg: "eval/format", ours: []string{"eval", "eval/tabular", "eval/oracle", "eval/stats", "sim", "policy",
		"scenarios", "scenarios/weather", "policy/figures"}},
	{pkg: "eval/format/formattest"},
	{pkg: "eval/report", ours: []string{"eval", "eval/format", "eval/stats", "eval/chart", "eval/timeline", "sim",
		"policy/...", "scenarios/..."}},
	{pkg: "eval", ours: []string{"internal/nearest", "eval/oracle", "eval/stats", "sim", "policy/...", "scenarios/...", "models"}},
	{pkg: "live", ours: []string{"policy/...", "models/...", "scenarios/...", "live/..."}},
	{pkg: "live/backend", ours: []string{"policy", "policy/driver"}},
	{pkg: "test/testenv", ours: []string{"policy", "policy/v1alpha1", "live/crd"}},
	{pkg: "live/packed"},
	{pkg: "live/*", ours: []string{"policy/...", "models", "scenarios/...", "live/..."}},
	{pkg: "live/aws/wire"},
	{pkg: "live/rights/rightstest", ours: []string{"live/rights"}},
	{pkg: "live/aws/s3", ours: []string{"live/aws/wire"}},
	{pkg: "live/azure/fake", ours: []string{"scenarios/...", "live/pricelist/fake"}},
	{pkg: "live/gcp/fake", ours: []string{"policy", "scenarios/...", "live/pricelist/fake"}},
	{pkg: "live/*/fake", ours: []string{"policy/...", "models", "scenarios/...", "live/backend"}},
	{pkg: "charts", ours: []string{"live/crd", "live/rights"}},
	{pkg: "test/karpenter", ours: []string{"test/testenv", "test/e2e/bill"}},
	{pkg: "test/..."},
	{pkg: "internal/nearest"},
	{pkg: "internal/ranges", ours: []string{"policy/figures", "policy/portable"}},
	{pkg: "internal/cli", ours: []string{"internal/nearest", "policy", "policy/figures", "scenarios"}},
	{pkg: "internal/objects", ours: []string{"internal/cli", "live/aws/s3"}},
	{pkg: "internal/objects/objectstest", ours: []string{"live/aws/s3"}},
	{pkg: "internal/cli/clitest", ours: []string{"internal/cli", "internal/bundles", "policy/policytest"}},
	{pkg: "internal/lab", ours: []string{"internal/cli"}},
	{pkg: "internal/pictures", ours: []string{"policy", "eval/chart", "internal/cli"}},
	{pkg: "internal/input", ours: []string{"policy/...", "scenarios/...", "eval", "eval/format", "internal/cli",
		"internal/objects", "internal/ranges"}},
	{pkg: "internal/bundles", ours: []string{"policy/...", "models/...", "internal/cli"}},
	{pkg: "cmd/spotter/config", ours: []string{"policy/...", "models/...", "scenarios/...", "live/..."}},
	{pkg: "cmd/spotter/internal/manifest"},
	{pkg: "cmd/spotter/internal/access", ours: []string{"internal/cli", "live/aws", "live/azure", "live/gcp"}},
	{pkg: "cmd/spotter/internal/mcp", ours: []string{"eval", "eval/stats", "internal/cli", "internal/input"}},
	{pkg: "cmd/spotter/internal/progress", ours: []string{"eval", "internal/cli", "policy/figures"}},
	{pkg: "cmd/spotter/internal/runner", ours: []string{"policy/...", "models/...", "scenarios/...", "sim", "eval",
		"internal/cli", "internal/input", "internal/bundles"}},
	{pkg: "cmd/spotter/internal/schedule", ours: []string{"policy", "policy/figures", "scenarios/catalog", "sim/fixed",
		"internal/cli", "internal/input"}},
	{pkg: "cmd/spotter/internal/...", ours: []string{"policy/...", "models/...", "scenarios/...", "sim", "eval/...",
		"live/...", "internal/...", "cmd/spotter/config", "cmd/spotter/internal/..."}},
	{pkg: "cmd/web/week", ours: []string{"policy/registry", "models", "scenarios/...", "sim", "eval/..."}},
	{pkg: "cmd/...", ours: []string{"policy/...", "models/...", "scenarios/...", "sim", "eval/...", "live/...", "internal/...", "cmd/..."}},
}

func matches(pattern, pkg string) bool {
	if above, ok := strings.CutSuffix(pattern, "/..."); ok {
		return pkg == above || strings.HasPrefix(pkg, above+"/")
	}
	ok, err := path.Match(pattern, pkg)
	return err == nil && ok
}

func anyMatches(patterns []string, pkg string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return matches(p, pkg) })
}

// ruleOf returns the rule that holds for pkg, nil without one.
func ruleOf(pkg string) *rule {
	for i := range architecture {
		if matches(architecture[i].pkg, pkg) {
			return &architecture[i]
		}
	}
	return nil
}

// A listed is a package as go list describes it.
type listed struct {
	ImportPath string
	Dir        string
	Export     string
	GoFiles    []string
	Imports    []string
}

// list runs go list on patterns, relative to the root of the module.
func list(t *testing.T, args ...string) []listed {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-e", "-json=ImportPath,Dir,Export,GoFiles,Imports"}, args...)...)
	cmd.Dir = ".."
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []listed
	for d := json.NewDecoder(strings.NewReader(string(out))); d.More(); {
		var p listed
		if err := d.Decode(&p); err != nil {
			t.Fatalf("go list: %v", err)
		}
		all = append(all, p)
	}
	return all
}

// TestImports holds the architecture: which of our packages may use which, and
// which of them may use a library.
func TestImports(t *testing.T) {
	for _, p := range list(t, "./...") {
		name, _ := strings.CutPrefix(p.ImportPath, module+"/")
		for _, fault := range faults(name, p.Imports) {
			t.Error(fault)
		}
	}
}

// faults returns what is wrong with the imports of pkg.
func faults(pkg string, imports []string) []string {
	r := ruleOf(pkg)
	if r == nil {
		return []string{pkg + ": no rule says what it may import"}
	}
	var wrong []string
	for _, imp := range imports {
		name, ours := strings.CutPrefix(imp, module+"/")
		library := !ours && strings.Contains(strings.Split(imp, "/")[0], ".")
		switch {
		case ours && (!anyMatches(r.ours, name) || anyMatches(r.except, name)):
			wrong = append(wrong, pkg+" imports "+name)
		case library && r.decides:
			wrong = append(wrong, pkg+" decides and imports the library "+imp)
		case imp == "C" && pkg != "models/onnx":
			wrong = append(wrong, pkg+" uses cgo")
		}
	}
	return wrong
}

// TestImportsAreRefused shows that the table refuses what it is there for.
func TestImportsAreRefused(t *testing.T) {
	for _, c := range []struct{ pkg, imp string }{
		{"policy", module + "/policy/placement"},
		{"policy/guard", "pgregory.net/rapid"},
		{"policy/guard", module + "/policy/placement"},
		{"policy/builtin/static", "pgregory.net/rapid"},
		{"policy/builtin/static", module + "/policy/builtin/spotvortex"},
		{"policy/registry", module + "/policy/driver"},
		{"sim", module + "/live"},
		{"live/kube", module + "/sim"},
		{"eval", module + "/cmd/spotter"},
		{"eval", module + "/eval/format"},
		{"eval/oracle", module + "/eval"},
		{"scenarios/chance", module + "/policy"},
		{"helpers", "fmt"},
		{"sim", "C"},
	} {
		if len(faults(c.pkg, []string{c.imp})) == 0 {
			t.Errorf("%s may import %s", c.pkg, c.imp)
		}
	}
	if wrong := faults("sim", []string{"fmt", module + "/policy", module + "/scenarios/weather"}); wrong != nil {
		t.Errorf("unexpected faults: %v", wrong)
	}
}
