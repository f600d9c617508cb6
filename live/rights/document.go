package rights

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// titles are those of the parts in the documentation, with what turns them on.
var titles = map[Part]string{
	Core: "Every controller", LeaderElection: "Leader election (`--leader-elect`, the default)",
	SecureMetrics: "Metrics behind authentication (`metrics.secure`, the default)",
	Karpenter:     "Karpenter (`--backends karpenter`, the default)", Groups: "Auto Scaling groups (`--backends asg`)",
	Rackspace: "Rackspace Spot (`--backends rackspace`)", Prices: "Prices from AWS (`--region`)",
	Queue: "Warnings from SQS (`notices.queueURL`)", Bucket: "Recordings in S3 (`recording.bucket`)",
	Prometheus: "Use from Prometheus (`usage.prometheus`)",
}

const preface = `# Rights

What ` + "`spotter run`" + ` must be let do, and nothing besides. It is written from the package ` + "`live/rights`" + `, which the
chart is tested against. [How it is held](#how-this-is-held) against what is done stands at the end.

*Shadow* rights are needed in every mode. *Active* ones only where the controller is started with ` + "`--mode active`" + `; grant
none of them to one that is to look and touch nothing. Rows that say what happens without them may be left out.

`

const between = `
## AWS

` + "`spotter run --print-iam-policy`" + ` with the flags of the controller prints the policy of the role that it takes on, for its mode
and for what it uses, and does nothing else. ` + "`--cluster-name`" + ` is then needed with ` + "`--backends asg`" + `: groups are written to only if they carry
the tag ` + "`kubernetes.io/cluster/NAME`" + `, which EKS sets and which the nodes of other clusters need in order to join. What is allowed on "*"
knows no narrower resource and is limited to the regions. In shadow nothing is allowed that changes anything but the queue.
A queue that is encrypted with a key of yours needs ` + "`kms:Decrypt`" + ` on that key besides.

`

const afterword = `
Rackspace Spot knows no rights: a refresh token may do what its account may. In shadow Spotter only reads with it.

## How this is held

Of AWS, what is asked of the servers that play it is held against the list by tests of each backend.

Of Kubernetes, tests run Spotter against a real API server with role-based access control, as users named ` + "`spotter…`" + ` and as
the service accounts of the chart. Where ` + "`SPOTTER_RIGHTS_USED`" + ` names a folder, each such test leaves there, from the
audit log, what these users were let do, under which rules. After all suites ` + "`make test`" + ` goes through what is in ` + "`bin/rights`" + `,
where ` + "`make testenv charttools`" + ` have made what a cluster needs.

It compares, for each mode and the backends of the chart's values, verb by verb, and fails for what is granted and used by no
suite, but for a short list with a reason each, and for what a controller asked for that stands nowhere above. The rights of the
chart's Jobs are held likewise. A test leaves one file, which it writes anew when it runs. Go keeps the results of tests and
does not run them again; each looks at the file ` + "`begun`" + `, so that in a folder that is new all run.
`

// Document returns the documentation of all rights, in Markdown.
func Document() []byte {
	var b strings.Builder
	b.WriteString(preface)
	b.WriteString("## Kubernetes\n")
	for _, p := range Parts() {
		writeRights(&b, p)
	}
	b.WriteString(between)
	b.WriteString("| part | mode | action | on | for | without |\n|:--|:--|:--|:--|:--|:--|\n")
	for _, p := range AWS() {
		fmt.Fprintf(&b, "| %s | %s | `%s` | %s | %s | %s |\n", p.Part, mode(p.Active), p.Action, p.On, p.Why, p.Without)
	}
	writePolicies(&b)
	b.WriteString(afterword)
	return []byte(b.String())
}

func mode(active bool) string {
	if active {
		return "active"
	}
	return "shadow"
}

// writeRights writes the table of one part; nothing where it asks for nothing.
func writeRights(b *strings.Builder, p Part) {
	rows := slices.DeleteFunc(Kubernetes(), func(r Right) bool { return r.Part != p })
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
		setup Setup
	}{
		{"Shadow or active on Karpenter, with prices and a queue of warnings", Setup{Parts: []Part{Prices, Queue}, Regions: regions, Queue: queue}},
		{"Active on Auto Scaling groups, with prices and a queue of warnings",
			Setup{Active: true, Parts: []Part{Groups, Prices, Queue}, Regions: regions, Cluster: "production", Queue: queue}},
	} {
		fmt.Fprintf(b, "\n### %s\n\n```json\n%s\n```\n", x.title, PolicyOf(x.setup).JSON())
	}
}
