package rights_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/spotter-dev/spotter/live/asg"
	"github.com/spotter-dev/spotter/live/aws"
	"github.com/spotter-dev/spotter/live/rights"
	"github.com/spotter-dev/spotter/live/rights/rightstest"
)

type rbac = rbacv1.PolicyRule

// full is a controller that uses everything.
func full(active bool) rights.Setup { return rights.Setup{Active: active, Parts: rightstest.Parts} }

// writing are the verbs that change something.
var writing = []string{"create", "update", "patch", "delete", "deletecollection"}

// In shadow nothing may be written but what rule 13 lists, whatever is used.
func TestRule13RightsInShadow(t *testing.T) {
	may := []string{
		"coordination.k8s.io/leases", "spotter.dev/capacitypools/status", "spotter.dev/gpubudgets/status", "/configmaps",
		"events.k8s.io/events", "authentication.k8s.io/tokenreviews", "authorization.k8s.io/subjectaccessreviews",
	}
	seen := 0
	for _, scope := range []rights.Scope{rights.Cluster, rights.OwnNamespace, rights.Secrets} {
		for _, r := range rightstest.Rules(full(false), scope) {
			if !slices.ContainsFunc(r.Verbs, func(v string) bool { return slices.Contains(writing, v) }) {
				continue
			}
			for _, resource := range r.Resources {
				seen++
				if what := r.APIGroups[0] + "/" + resource; !slices.Contains(may, what) {
					t.Errorf("in shadow %s may be written: %v", what, r)
				}
				if resource == "configmaps" && scope != rights.OwnNamespace {
					t.Errorf("ConfigMaps may be written in the %s", scope)
				}
			}
		}
	}
	if seen < len(may) {
		t.Errorf("%d resources may be written in shadow, want %d", seen, len(may))
	}
	for _, a := range rightstest.Actions(full(false)) {
		_, name, _ := strings.Cut(a, ":")
		reads := slices.ContainsFunc([]string{"Describe", "Get", "List", "Receive", "Decrypt"},
			func(p string) bool { return strings.HasPrefix(name, p) })
		ours := slices.Contains([]string{"sqs:DeleteMessage", "s3:PutObject", "kms:GenerateDataKey"}, a)
		if !reads && !ours {
			t.Errorf("in shadow %s is allowed", a)
		}
	}
}

// The actions that the code declares for AWS, which its own tests compare with the requests that
// servers received, are the actions listed here.
func TestActionsAreThoseOfTheCode(t *testing.T) {
	only := func(active bool, p rights.Part) []string {
		return rightstest.Actions(rights.Setup{Active: active, Parts: []rights.Part{p}})
	}
	for _, c := range []struct {
		what      string
		got, want []string
	}{
		{"groups in shadow", only(false, rights.Groups), asg.ReadActions},
		{"groups when active", only(true, rights.Groups), slices.Concat(asg.ReadActions, asg.WriteActions)},
		{"prices", only(true, rights.Prices), aws.ReaderActions},
	} {
		slices.Sort(c.want)
		if !slices.Equal(c.got, c.want) {
			t.Errorf("%s: listed are %v, asked for is %v", c.what, c.got, c.want)
		}
	}
}

// The rules of a role name a resource once for the same names, and leave out what is
// not used.
func TestRules(t *testing.T) {
	for _, active := range []bool{false, true} {
		for _, scope := range []rights.Scope{rights.Cluster, rights.OwnNamespace, rights.Secrets} {
			seen := map[string]bool{}
			for _, r := range rightstest.Rules(full(active), scope) {
				for _, resource := range r.Resources {
					key := r.APIGroups[0] + "/" + resource + " " + strings.Join(r.ResourceNames, ",")
					if seen[key] {
						t.Errorf("%s, active %t: %s is in two rules", scope, active, key)
					}
					seen[key] = true
				}
			}
		}
	}
	for _, r := range rightstest.Rules(rights.Setup{Active: true}, rights.Cluster) {
		if g := r.APIGroups[0]; g == "karpenter.sh" || slices.Contains(r.Resources, "spotnodes") || slices.Contains(r.Resources, "tokenreviews") {
			t.Errorf("%v is granted to a controller that has no use for it", r)
		}
	}
	if got := rightstest.Rules(rights.Setup{}, rights.Secrets); len(got) > 0 {
		t.Errorf("secrets may be read without Rackspace: %v", got)
	}
	nodes := slices.IndexFunc(rightstest.Rules(rights.Setup{Active: true}, rights.Cluster), func(r rbac) bool {
		return slices.Contains(r.Resources, "nodes") && r.APIGroups[0] == "" && slices.Equal(r.Verbs, []string{"get", "list", "patch", "watch"})
	})
	if nodes < 0 {
		t.Error("no rule joins what is needed of nodes in shadow and when active")
	}
}

// What another part takes the place of is granted without that part only.
func TestPrometheusTakesThePlaceOfMetricsServer(t *testing.T) {
	for _, c := range []struct {
		parts []rights.Part
		want  bool
	}{{nil, true}, {[]rights.Part{rights.Karpenter}, true}, {[]rights.Part{rights.Prometheus}, false}} {
		got := slices.ContainsFunc(rightstest.Rules(rights.Setup{Active: true, Parts: c.parts}, rights.Cluster),
			func(r rbac) bool { return r.APIGroups[0] == "metrics.k8s.io" })
		if got != c.want {
			t.Errorf("with %v the metrics of nodes may be listed: %t", c.parts, got)
		}
	}
}

// A policy allows the actions of a setup and no others, and nothing that changes
// anything on all resources.
func TestPolicyIsScoped(t *testing.T) {
	for _, s := range []rights.Setup{
		{Parts: []rights.Part{rights.Prices}},
		{Parts: []rights.Part{rights.Groups, rights.Queue}},
		{Active: true, Parts: []rights.Part{rights.Groups, rights.Prices}},
		{Active: true, Parts: rightstest.Parts, Key: "1234"},
		{Active: true, Parts: rightstest.Parts, Key: "arn:aws:kms:us-east-1:1:key/1234"},
	} {
		s.Regions, s.Cluster, s.Queue, s.Bucket = []string{"us-east-1",
			"cn-north-1"}, "prod", "https://sqs.us-east-1.amazonaws.com/1/q", "s3://b/p"
		var got []string
		for _, x := range rights.PolicyOf(s).Statement {
			got = append(got, x.Action...)
			for _, a := range x.Action {
				_, name, _ := strings.Cut(a, ":")
				reads := strings.HasPrefix(name, "Describe") || strings.HasPrefix(name, "Get")
				if slices.Contains(x.Resource, "*") && (!reads || len(x.Condition["StringEquals"]["aws:RequestedRegion"]) == 0) ||
					len(x.Resource) == 0 {
					t.Errorf("%s is allowed on %v under %v", a, x.Resource, x.Condition)
				}
			}
		}
		slices.Sort(got)
		want := slices.DeleteFunc(rightstest.Actions(s), func(a string) bool { return strings.HasPrefix(a, "kms:") && s.Key == "" })
		if !slices.Equal(slices.Compact(got), want) {
			t.Errorf("active %t, %v: allowed are %v, needed %v", s.Active, s.Parts, got, want)
		}
	}
}

// TestKeyOfBucket: the key is in the bucket's region, not in those of prices, and an alias is a
// condition on keys.
func TestKeyOfBucket(t *testing.T) {
	for key, want := range map[string]string{
		"1234":                             `["arn:aws:kms:eu-central-1:*:key/1234"] StringEquals`,
		"alias/k":                          `["arn:aws:kms:eu-central-1:*:key/*"] alias/k StringEquals`,
		"arn:aws:kms:eu-west-1:1:alias/k":  `["arn:aws:kms:eu-west-1:1:key/*"] alias/k`,
		"arn:aws:kms:eu-west-1:1:key/1234": `["arn:aws:kms:eu-west-1:1:key/1234"]`,
	} {
		for _, regions := range [][]string{nil, {"us-east-1", "us-west-2"}} {
			s := rights.Setup{Parts: []rights.Part{rights.Bucket}, Regions: regions, Bucket: "s3://b", BucketRegion: "eu-central-1", Key: key}
			var got string
			for _, x := range rights.PolicyOf(s).Statement {
				if slices.Contains(x.Action, "kms:Decrypt") {
					got = fmt.Sprintf("%q", x.Resource)
					for _, alias := range x.Condition["ForAnyValue:StringEquals"]["kms:ResourceAliases"] {
						got += " " + alias
					}
					if len(x.Condition["StringEquals"]["aws:ResourceAccount"]) > 0 {
						got += " StringEquals"
					}
				}
			}
			if got != want {
				t.Errorf("%s with prices of %v: %s, want %s", key, regions, got, want)
			}
		}
	}
	s := rights.Setup{Parts: []rights.Part{rights.Bucket}, Bucket: "s3://b", Key: "1234"}
	if text := string(rights.PolicyOf(s).JSON()); !strings.Contains(text, `"arn:aws:kms:*:*:key/1234"`) || strings.Contains(text, "null") {
		t.Errorf("without a region: %s", text)
	}
}
