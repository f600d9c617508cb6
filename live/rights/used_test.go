package rights_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/spotter-dev/spotter/live/rights"
	"github.com/spotter-dev/spotter/live/rights/rightstest"
	"github.com/spotter-dev/spotter/test/testenv"
)

// collectedIn is the environment variable that names the folder of what all suites have
// collected. It is another than theirs, since they run before.
const collectedIn = "SPOTTER_RIGHTS_COLLECTED"

const likeKwok = "as those of kwok, with another provider of Karpenter"

// unasked are the rights that no suite makes use of, with the reason.
var unasked = map[string]string{
	"list aksnodeclasses.karpenter.azure.com": likeKwok,
	"list ec2nodeclasses.karpenter.k8s.aws":   likeKwok,
	"list gcenodeclasses.karpenter.k8s.gcp":   likeKwok,
	"list nodeclasses.eks.amazonaws.com":      likeKwok,

	"list clusterroles.rbac.authorization.k8s.io":        "with notices.queueURL, who may drain nodes: live/queue lists them with the fake client of its tests",
	"list clusterrolebindings.rbac.authorization.k8s.io": "the same",

	"get leases.coordination.k8s.io spotter-leader in all namespaces": "of another release that has claimed the pools: live/permit tests it, where access control is not",
	"get spotnodes.spotter.dev":                                       "of an order that the ledger has and the process does not remember: live/rackspace kills it there, where access control is not",
	"create nodepools.karpenter.sh":                                   "asked for in addition to patch, when one is applied that is not there yet",
	"delete nodepools.karpenter.sh":                                   "live/karpenter deletes them, as administrator",
	"patch events.events.k8s.io":                                      "an Event that is said again within minutes is counted up: no suite waits for that",
}

// unaskedByJobs are those of the chart's Jobs, by their names.
var unaskedByJobs = map[string]map[rbacAtom]string{"-cleanup": {
	{"get", "", "nodes", ""}:                   afterConflict,
	{"get", "", "pods", ""}:                    afterConflict,
	{"get", "batch", "jobs", ""}:               afterConflict,
	{"get", "karpenter.sh", "nodeclaims", ""}:  afterConflict,
	{"patch", "karpenter.sh", "nodepools", ""}: "live/karpenter takes back what was written of an adopted one, as administrator",
}}

const afterConflict = "read again where somebody else wrote between the list and the patch: no suite can have that happen for certain"

// An atom is one verb on one resource, in a scope.
type atom struct {
	scope                       rights.Scope
	verb, group, resource, name string
}

func (a atom) String() string {
	text := strings.TrimSpace(fmt.Sprintf("%s %s.%s %s", a.verb, a.resource, a.group, a.name))
	if shared()[a] {
		text += " in all namespaces"
	}
	return text
}

// atoms returns what a controller is granted, one by one.
func atoms(s rights.Setup) map[atom]bool {
	all := map[atom]bool{}
	for _, r := range rights.Kubernetes() {
		if !s.Needs(&r) {
			continue
		}
		names := r.Names
		if len(names) == 0 {
			names = []string{""}
		}
		for _, resource := range r.Resources {
			for _, verb := range r.Verbs {
				for _, name := range names {
					all[atom{r.Scope, verb, r.Group, resource, name}] = true
				}
			}
		}
	}
	return all
}

// ever returns what any controller of a mode may be granted.
func ever(active bool) map[atom]bool {
	all := atoms(full(active))
	maps.Copy(all, atoms(rights.Setup{Active: active})) // what other parts take the place of
	return all
}

// shared are the rights in all namespaces that every controller has in its own, too.
var shared = sync.OnceValue(func() map[atom]bool {
	both, all := map[atom]bool{}, ever(true)
	for a := range all {
		own := a
		own.scope = rights.OwnNamespace
		if a.scope == rights.Cluster && all[own] {
			both[a] = true
		}
	}
	return both
})

// isAny reports whether a use is one of the rights.
func isAny(all map[atom]bool, u testenv.Use) bool {
	for a := range all {
		if a.is(u) {
			return true
		}
	}
	return false
}

// isDocumented reports whether a use is one of the rights, by whatever name where the
// user may reach all: which object it was is not collected then.
func isDocumented(all map[atom]bool, u testenv.Use) bool {
	for a := range all {
		if u.Name == "" {
			a.name = ""
		}
		if a.is(u) {
			return true
		}
	}
	return false
}

// is reports whether a use is one of the right. What is granted in the own namespace
// and in all others, too, is distinguished by where the object is.
func (a atom) is(u testenv.Use) bool {
	if a.group != u.Group || a.resource != u.Resource || a.name != "" && a.name != u.Name {
		return false
	}
	// A list may be had as the beginning of a watch, which servers before 1.34 cannot.
	if a.verb != u.Verb && (a.verb != "list" || u.Verb != "watch") {
		return false
	}
	return a.scope == rights.OwnNamespace && !u.Away || a.scope != rights.OwnNamespace && (u.Away || !shared()[a])
}

// holds reports whether the grants cover all of these atoms, and maybe more.
func holds(grants []testenv.Grant, all map[atom]bool) bool {
	has := func(list []string, x string) bool { return slices.Contains(list, x) || slices.Contains(list, "*") }
	for a := range all {
		if !slices.ContainsFunc(grants, func(g testenv.Grant) bool {
			r := g.Rule
			return (g.Namespace == "" || a.scope != rights.Cluster) && has(r.APIGroups, a.group) &&
				has(r.Resources, a.resource) && has(r.Verbs, a.verb) &&
				(len(r.ResourceNames) == 0 || slices.Contains(r.ResourceNames, a.name))
		}) {
			return false
		}
	}
	return true
}

// A deed is a use, and the test that made it.
type deed struct {
	use  testenv.Use
	test string
}

// What all suites did.
type suites struct {
	// shadow and active are by whole controllers in these modes, and of parts of one
	// what it may do only when it is active.
	shadow, active []deed

	// hooks are the grants and uses of the accounts of the chart's Jobs, by their names.
	granted map[string]map[rbacAtom]bool
	hooks   map[string]map[rbacAtom]bool
}

// An rbacAtom is one verb on one resource, as granted to a Job.
type rbacAtom struct{ verb, group, resource, name string }

// read returns what was collected. It refuses reports of tests that no longer exist.
func read(t *testing.T, dir string) suites {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s=%s: nothing is collected there; run the suites with %s (%v)", collectedIn, dir, testenv.UseVariable, err)
	}
	s := suites{granted: map[string]map[rbacAtom]bool{}, hooks: map[string]map[rbacAtom]bool{}}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var r testenv.UseReport
		if err := json.Unmarshal(text, &r); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if !exists(t, r.Package, r.Test) {
			t.Errorf("%s is of a test that is no more: delete it", file)
		}
		for _, u := range r.Users {
			s.add(t, u, r.Package+" "+r.Test)
		}
	}
	return s
}

// exists reports whether a package has a test.
func exists(t *testing.T, pkg, test string) bool {
	t.Helper()
	top, _, _ := strings.Cut(test, "/")
	files, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(pkg), "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "\nfunc "+top+"(") {
			return true
		}
	}
	return false
}

// add adds what a user did in a test.
func (s *suites) add(t *testing.T, u testenv.UserUse, test string) {
	t.Helper()
	for _, hook := range []string{"-cleanup", "-test"} {
		if strings.HasSuffix(u.User, hook) {
			s.hook(hook, u)
			return
		}
	}
	whole := holds(u.Grants, atoms(rights.Setup{Parts: []rights.Part{rights.Prometheus}}))
	active := whole && holds(u.Grants, atoms(rights.Setup{Active: true, Parts: []rights.Part{rights.Prometheus}}))
	known := ever(false)
	if active {
		known = ever(true)
	}
	in := partsOf(u.Grants)
	for _, use := range u.Uses {
		d := deed{use, test}
		if whole && !isDocumented(known, use) {
			t.Errorf("%s: %s asked for what is documented nowhere (active %t): %v", test, u.User, active, use)
		}
		switch {
		case active, !whole && isAny(ever(true), use) && !isAny(ever(false), use), !whole && isAny(in[true], use):
			s.active = append(s.active, d)
		case whole, isAny(in[false], use):
			s.shadow = append(s.shadow, d)
		}
	}
}

// partsOf returns the rights of the parts that an account without a whole controller's rights is
// granted whole, by whether the parts are active.
func partsOf(grants []testenv.Grant) map[bool]map[atom]bool {
	in := map[bool]map[atom]bool{false: {}, true: {}}
	for _, p := range rightstest.Parts {
		for _, active := range []bool{true, false} {
			own := atoms(rights.Setup{Active: active, Parts: []rights.Part{p}})
			core := atoms(rights.Setup{Active: active})
			maps.DeleteFunc(own, func(a atom, _ bool) bool { return core[a] })
			if len(own) > 0 && holds(grants, own) {
				maps.Copy(in[active], own)
				break
			}
		}
	}
	return in
}

// hook adds what the account of a Job of the chart did.
func (s *suites) hook(name string, u testenv.UserUse) {
	if s.granted[name] == nil {
		s.granted[name], s.hooks[name] = map[rbacAtom]bool{}, map[rbacAtom]bool{}
	}
	for _, g := range u.Grants {
		for a := range ruleAtoms(g.Rule) {
			s.granted[name][a] = true
		}
	}
	for _, use := range u.Uses {
		s.hooks[name][rbacAtom{use.Verb, use.Group, use.Resource, use.Name}] = true
	}
}

func ruleAtoms(r rbacv1.PolicyRule) map[rbacAtom]bool {
	all := map[rbacAtom]bool{}
	names := r.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	for _, resource := range r.Resources {
		for _, verb := range r.Verbs {
			for _, name := range names {
				all[rbacAtom{verb, r.APIGroups[0], resource, name}] = true
			}
		}
	}
	return all
}

// profiles are the ways to run a controller that the chart has values for.
func profiles() map[string]rights.Setup {
	all := map[string]rights.Setup{}
	for backend, parts := range map[string][]rights.Part{
		"karpenter": {rights.Karpenter}, "asg": {rights.Groups, rights.Prices}, "rackspace": {rights.Rackspace},
		"karpenter with Prometheus": {rights.Karpenter, rights.Prometheus},
		"all":                       {rights.Karpenter, rights.Groups, rights.Rackspace, rights.Prices, rights.Queue, rights.Bucket},
	} {
		for _, active := range []bool{false, true} {
			name := map[bool]string{false: "shadow, ", true: "active, "}[active] + backend
			all[name] = rights.Setup{Active: active, Parts: append([]rights.Part{rights.LeaderElection, rights.SecureMetrics}, parts...)}
		}
	}
	return all
}

// TestExcusesAreGranted: a right that is excused for not being used is granted to some account.
func TestExcusesAreGranted(t *testing.T) {
	granted := map[string]bool{}
	for a := range ever(true) {
		granted[a.String()] = true
	}
	for right := range unasked {
		if !granted[right] {
			t.Errorf("%s is granted to nobody", right)
		}
	}
}

// TestGrantedIsUsed compares what is granted, profile by profile and verb by verb, with what the
// suites did according to the audit logs of a real API server. It fails for a right that is granted
// and used by no suite, and for a request of a controller that is not documented.
func TestGrantedIsUsed(t *testing.T) {
	dir := os.Getenv(collectedIn)
	if dir == "" {
		t.Skipf("%s is not set: it is run after the suites", collectedIn)
	}
	s := read(t, dir)
	idle := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(profiles())) {
		setup, used := profiles()[name], 0
		did := s.shadow
		if setup.Active {
			did = s.active
		}
		granted := atoms(setup)
		for a := range granted {
			if slices.ContainsFunc(did, func(d deed) bool { return a.is(d.use) }) {
				used++
			} else {
				idle[a.String()] = append(idle[a.String()], name)
			}
		}
		t.Logf("%s: %d rights are granted, %d of them were used", name, len(granted), used)
	}
	for _, right := range slices.Sorted(maps.Keys(idle)) {
		if unasked[right] == "" {
			t.Errorf("granted and used by no suite: %s, in %s", right, strings.Join(idle[right], "; "))
		}
	}
	for _, right := range slices.Sorted(maps.Keys(unasked)) {
		if idle[right] == nil { // by chance: days that are drawn may do what no suite does for certain
			t.Logf("%s is excused (%s), and was used", right, unasked[right])
		}
	}
	for _, hook := range []string{"-cleanup", "-test"} {
		if len(s.granted[hook]) == 0 {
			t.Errorf("no Job %s of the chart was seen", hook)
		}
		for a := range s.granted[hook] {
			if !s.hooks[hook][a] && unaskedByJobs[hook][a] == "" {
				t.Errorf("granted to the Job %s and used by no suite: %v", hook, a)
			}
		}
		t.Logf("the chart's Job %s: %d rights are granted", hook, len(s.granted[hook]))
	}
}
