package rights_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/live/rights"
	"github.com/spotter-dev/spotter/live/rights/rightstest"
	"github.com/spotter-dev/spotter/test/golden"
)

// titles are those of the parts in the documentation, with what turns them on.
var titles = map[rights.Part]string{
	rights.Core: "Every controller", rights.LeaderElection: "Leader election (`--leader-elect`, the default)",
	rights.SecureMetrics: "Metrics behind authentication (`metrics.secure`, the default)",
	rights.Karpenter:     "Karpenter (`--backends karpenter`, the default)", rights.Groups: "Auto Scaling groups (`--backends asg`)",
	rights.Rackspace: "Rackspace Spot (`--backends rackspace`)", rights.Prices: "Prices from AWS (`--region`)",
	rights.Queue: "Warnings from SQS (`notices.queueURL`)", rights.Bucket: "Recordings in S3 (`recording.bucket`)",
	rights.Prometheus: "Use from Prometheus (`usage.prometheus`)",
}

const preface = `# Rights

Every right that ` + "`spotter run`" + ` needs in Kubernetes and at AWS, by mode and by what is used. The [chart](install.md) grants exactly these.

*Shadow* rights are needed in every mode, *active* ones only with ` + "`--mode active`" + `. A right may be left out where the last column
says what happens without it.

`

const between = `
## AWS

` + "`spotter run --print-iam-policy`" + ` with the controller's flags prints the policy of its role. ` + "`--backends asg`" + ` needs ` + "`--cluster-name`" + `:
Spotter writes only to groups with the tag ` + "`kubernetes.io/cluster/NAME`" + `, which EKS sets. Actions that are allowed on "*" have no
narrower resource and are limited to the regions. A queue that is encrypted with a key of yours needs ` + "`kms:Decrypt`" + ` on that key as well.

`

const afterword = `
At Rackspace Spot a refresh token may do what its account may. In shadow Spotter only reads with it.

## How this is tested

` + "`make test`" + ` runs Spotter as its users against a real API server, and fails where audit log and grants differ in a verb, except
for a short list with reasons. Tests of each backend compare requests to AWS with the list.
`

// TestDocument: the documentation is what the package says.
func TestDocument(t *testing.T) { golden.Hold(t, "../../docs/rights.md", documentation()) }

// documentation returns the page on all rights, in Markdown.
func documentation() string {
	var b strings.Builder
	b.WriteString(preface)
	b.WriteString("## Kubernetes\n")
	for _, p := range rightstest.Parts {
		writeRights(&b, p)
	}
	b.WriteString(between)
	b.WriteString("| part | mode | action | on | for | without |\n|:--|:--|:--|:--|:--|:--|\n")
	for _, p := range rights.AWS() {
		fmt.Fprintf(&b, "| %s | %s | `%s` | %s | %s | %s |\n", p.Part, mode(p.Active), p.Action, p.On, p.Why, p.Without)
	}
	writePolicies(&b)
	b.WriteString(afterword)
	return b.String()
}

func mode(active bool) string {
	if active {
		return "active"
	}
	return "shadow"
}

// writeRights writes the table of one part, or nothing if the part needs no rights.
func writeRights(b *strings.Builder, p rights.Part) {
	rows := slices.DeleteFunc(rights.Kubernetes(), func(r rights.Right) bool { return r.Part != p })
	if len(rows) == 0 {
		return
	}
	fmt.Fprintf(b, "\n### %s\n\n", titles[p])
	b.WriteString("| mode | in | resources | verbs | for | without |\n|:--|:--|:--|:--|:--|:--|\n")
	for _, r := range rows {
		resources := make([]string, len(r.Resources))
		for i, x := range r.Resources {
			resources[i] = "`" + strings.TrimSuffix(x+"."+r.Group, ".") + "`"
			if at, sub, ok := strings.Cut(x, "/"); ok {
				resources[i] = "`" + strings.TrimSuffix(at+"."+r.Group, ".") + "/" + sub + "`"
			}
		}
		names := ""
		if len(r.Names) > 0 {
			names = " named `" + strings.Join(r.Names, "`, `") + "`"
		}
		fmt.Fprintf(b, "| %s | %s | %s%s | %s | %s | %s |\n", mode(r.Active), r.Scope, strings.Join(resources, ", "), names,
			strings.Join(r.Verbs, ", "), r.Why, cmp.Or(r.Without, "needed"))
	}
}

// writePolicies writes the policies of two common setups.
func writePolicies(b *strings.Builder) {
	queue, regions := "https://sqs.us-east-1.amazonaws.com/123456789012/spotter", []string{"us-east-1"}
	for _, x := range []struct {
		title string
		setup rights.Setup
	}{
		{"Shadow or active on Karpenter, with prices and a queue of warnings",
			rights.Setup{Parts: []rights.Part{rights.Prices, rights.Queue}, Regions: regions, Queue: queue}},
		{"Active on Auto Scaling groups, with prices and a queue of warnings",
			rights.Setup{Active: true, Parts: []rights.Part{rights.Groups, rights.Prices, rights.Queue}, Regions: regions,
				Cluster: "production", Queue: queue}},
	} {
		fmt.Fprintf(b, "\n### %s\n\n```json\n%s\n```\n", x.title, rights.PolicyOf(x.setup).JSON())
	}
}
