package charts

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
)

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

// unwatched returns the resources that may be watched and were not. Package live/rights checks
// over all suites that every permission is used.
func unwatched(rules []rbacv1.PolicyRule, used map[grant]bool) (left []grant) {
	for g := range plainly(grants(rules)) {
		if g.verb == "watch" && !used[g] {
			left = append(left, g)
		}
	}
	return left
}

// within fails the test for a permission that was used and that a role outside the chart granted.
func within(t *testing.T, profile string, rules []rbacv1.PolicyRule, used map[grant]bool) {
	t.Helper()
	granted := plainly(grants(rules))
	for g := range used {
		if !granted[g] {
			t.Errorf("%s: asked for, and granted by somebody else: %v", profile, g)
		}
	}
	t.Logf("%s: %d rights are granted, and %d were used", profile, len(granted), len(used))
}
