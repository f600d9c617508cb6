package charts

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/spotter-dev/spotter/live/rights"
)

// The tests whose audit log, or whose user of a real API server, shows that a right is
// used which a release without nodes of its own has no use for.
const (
	byRule13    = "cmd/spotter/run_rights_test.go TestRule13RightsAreExact"
	byKarpenter = "cmd/spotter/run_karpenter_linux_test.go TestRunKarpenter"
	byPause     = "live/budget/keeper_test.go TestPause"
	byGitOps    = "charts/gitops_test.go TestGitOps"
	byRackspace = "live/rackspace/server_test.go TestOnARealAPIServer"
)

// elsewhere names, for each right that the life of a release has no use for, the test
// that makes use of it; of the others it says why they are granted all the same.
var elsewhere = map[string]string{
	"delete configmaps.":                               byRule13,
	"update configmaps.":                               byRule13,
	"get gpubudgets.spotter.dev":                       byRule13,
	"create nodeclaims.karpenter.sh":                   byKarpenter,
	"delete nodeclaims.karpenter.sh":                   byKarpenter,
	"get nodeclaims.karpenter.sh":                      byKarpenter,
	"patch nodeclaims.karpenter.sh":                    byKarpenter,
	"create nodepools.karpenter.sh":                    byKarpenter,
	"delete nodepools.karpenter.sh":                    byKarpenter,
	"get nodepools.karpenter.sh":                       byKarpenter,
	"patch nodepools.karpenter.sh":                     byGitOps,
	"get kwoknodeclasses.karpenter.kwok.sh":            byKarpenter,
	"list kwoknodeclasses.karpenter.kwok.sh":           byGitOps,
	"get nodes.":                                       byKarpenter,
	"patch nodes.":                                     byKarpenter,
	"patch pods.":                                      byKarpenter,
	"create pods/eviction.":                            byKarpenter,
	"get deployments.apps":                             byKarpenter,
	"get replicasets.apps":                             byKarpenter,
	"get jobs.batch":                                   byPause,
	"patch jobs.batch":                                 byPause,
	"list spotnodes.spotter.dev":                       byRackspace,
	"create spotnodes.spotter.dev":                     byRackspace,
	"get spotnodes.spotter.dev":                        byRackspace,
	"delete spotnodes.spotter.dev":                     byRackspace,
	"patch spotnodes/status.spotter.dev":               byRackspace,
	"patch capacitypools.spotter.dev":                  byRackspace,
	"list nodes.metrics.k8s.io":                        "without metrics-server nobody can be asked; live/cluster/usage_test.go TestUsage asks one that is played",
	"patch events.events.k8s.io":                       "an Event that is said again within minutes is counted up; no test waits for that",
	"get statefulsets.apps":                            "as Deployments, for pods of another owner: no plan of TestRunKarpenter has one",
	"get replicationcontrollers.":                      "as ReplicaSets, for pods of another owner: no plan of TestRunKarpenter has one",
	"get configmaps.":                                  "with --queue-url: whose queue it is; live/queue reads them with a client that is played",
	"get aksnodeclasses.karpenter.azure.com":           "as those of kwok, with another provider of Karpenter",
	"get ec2nodeclasses.karpenter.k8s.aws":             "as those of kwok, with another provider of Karpenter",
	"get gcenodeclasses.karpenter.k8s.gcp":             "as those of kwok, with another provider of Karpenter",
	"list aksnodeclasses.karpenter.azure.com":          "as those of kwok, with another provider of Karpenter",
	"list ec2nodeclasses.karpenter.k8s.aws":            "as those of kwok, with another provider of Karpenter",
	"list gcenodeclasses.karpenter.k8s.gcp":            "as those of kwok, with another provider of Karpenter",
	"create leases.coordination.k8s.io":                byRule13,
	"create tokenreviews.authentication.k8s.io":        byRule13,
	"create subjectaccessreviews.authorization.k8s.io": byRule13,
	"create configmaps.":                               byRule13,
}

// plainly returns grants without the names of objects, which an audit log of a list
// does not have.
func plainly(all map[grant]bool) map[grant]bool {
	plain := map[grant]bool{}
	for g := range all {
		g.name = ""
		plain[g] = true
	}
	return plain
}

// TestRightsUsedElsewhere: what is said to be used elsewhere is granted to somebody, and
// the test that is named is there.
func TestRightsUsedElsewhere(t *testing.T) {
	granted := map[string]bool{}
	for _, scope := range []rights.Scope{rights.Cluster, rights.OwnNamespace} {
		all := rights.Rules(rights.Setup{Active: true, Parts: rights.Parts()}, scope)
		all = append(all, rights.Rules(rights.Setup{Active: true}, scope)...) // what other parts take the place of
		for g := range plainly(grants(all)) {
			granted[g.String()] = true
		}
	}
	tests := 0
	for right, by := range elsewhere {
		if !granted[right] {
			t.Errorf("%s is granted to nobody", right)
		}
		file, name, named := strings.Cut(by, " Test")
		if !named || strings.Contains(file, " ") {
			continue // a reason
		}
		tests++
		text, err := os.ReadFile(filepath.Join("..", filepath.FromSlash(file)))
		if err != nil {
			t.Error(err)
		} else if !strings.Contains(string(text), "\nfunc Test"+name+"(t *testing.T) {") {
			t.Errorf("%s: there is no %s", right, by)
		}
	}
	if tests < 20 {
		t.Errorf("%d rights are used by tests elsewhere", tests)
	}
}

// isUsed reports whether a right is among those that were used.
func isUsed(g grant, used map[grant]bool) bool {
	watched := g
	watched.verb = "watch" // which a server before 1.34 cannot begin with what there is
	return used[g] || g.verb == "list" && used[watched]
}

// unused returns the rights that were neither used nor are known to be used elsewhere.
func unused(rules []rbacv1.PolicyRule, used map[grant]bool) (left []grant) {
	for g := range plainly(grants(rules)) {
		if !isUsed(g, used) && elsewhere[g.String()] == "" {
			left = append(left, g)
		}
	}
	return left
}

// exactly fails the test for a right that was granted and neither used here nor known
// to be used elsewhere, and for one that was used and granted by somebody else.
func exactly(t *testing.T, profile string, rules []rbacv1.PolicyRule, used map[grant]bool) {
	t.Helper()
	granted, n := plainly(grants(rules)), 0
	for g := range granted {
		if isUsed(g, used) {
			n++
		}
	}
	for _, g := range unused(rules, used) {
		t.Errorf("%s: granted and used by nobody: %v", profile, g)
	}
	for g := range used {
		if !granted[g] {
			t.Errorf("%s: asked for, and granted by somebody else: %v", profile, g)
		}
	}
	t.Logf("%s: %d rights are granted, %d of them were used here", profile, len(granted), n)
}
