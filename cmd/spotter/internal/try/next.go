package try

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/policy/figures"
)

// gain is the minimum saving that justifies a step, in percent of today's cost.
const gain = 3

// idle is a share of today's cost. If the cost of the nodes that pods require is below it, nodes
// are hardly used.
const idle = 0.75

// A step is the recommended next step.
type step struct {
	Do       string   `json:"do"`
	Commands []string `json:"commands,omitempty"`
}

// next returns the recommended step: the one that saves most, or the smaller one if savings are
// similar. What the cluster's own pools would save is not attributed to any other policy.
func (t *trial) next(seen *sight, r *result, p *poolPlan) step {
	own, plain, ours := r.row(asIs), r.row(karpenter), r.row(portfolio)
	forbid := seen.forbidSpot()
	better := plain.Change-ours.Change >= gain || plain.Change-ours.Change > -1 && ours.Worst.Minutes < plain.Worst.Minutes
	switch {
	case seen.withoutCluster:
		return step{Do: "try it on a cluster of your own, in which nothing is changed:", Commands: []string{"spotter try"}}
	case own.Month < idle*r.Now.Month && own.Change <= ours.Change-own.Change && len(seen.options.NodePools) > 0:
		return step{Do: fmt.Sprintf("find out why nodes stay that are hardly used: what pods request fits on nodes of %s a month in place of %s. Karpenter says it in events:", figures.Dollars(own.Month), figures.Dollars(r.Now.Month)),
			Commands: []string{"kubectl get events -A --field-selector reason=Unconsolidatable"}}
	case own.Change-ours.Change >= gain && better && len(p.pools) > 0:
		return t.shadow(seen, ours, p)
	case own.Change-plain.Change >= gain && len(forbid) > 0:
		return step{Do: fmt.Sprintf("allow Spot in NodePool %s, to pay %s less than today: Spotter would add little to that. Add spot to its karpenter.sh/capacity-type:", strings.Join(forbid, ", "), figures.Percent(-plain.Change, 1)),
			Commands: []string{"kubectl edit nodepool " + forbid[0]}}
	case own.Change-ours.Change >= gain && len(p.pools) > 0:
		return t.shadow(seen, ours, p)
	case own.Change-ours.Change >= gain:
		return step{Do: fmt.Sprintf("nothing by Spotter: %s could be saved on Spot, but it cannot steer "+
			"these nodes. It steers those of Karpenter, of Auto Scaling groups and of Rackspace Spot (docs/run.md)",
			figures.Percent(-ours.Change, 1))}
	}
	return step{Do: "nothing: this cluster has nothing to gain worth a change"}
}

// shadow returns the step of running Spotter in shadow mode. Without files, its first command writes
// them.
func (t *trial) shadow(seen *sight, ours *row, p *poolPlan) step {
	s := step{Do: fmt.Sprintf("let Spotter show on the cluster itself what it would do, to pay %s less than today. In shadow it touches no node:", figures.Percent(-ours.Change, 1))}
	apply := "kubectl apply -f " + cli.Shell([]string{t.folder.pools()})
	if p.regions == "" && p.azureRegions == "" {
		p.regions = "REGION"
	}
	var flags, values string
	for _, x := range []struct{ regions, flag, value string }{{p.regions, "--region", "aws.regions"},
		{p.azureRegions, "--azure-region", "azure.regions"}} {
		if x.regions != "" {
			flags += " " + x.flag + " " + x.regions
			values += "," + x.value + "={" + x.regions + "}"
		}
	}
	if seen.Installed {
		s.Commands = []string{apply, "spotter run --leader-elect=false --backends " + strings.Join(p.backends, ",") + flags}
		return t.withFiles(s)
	}
	s.Commands = []string{
		"helm install spotter oci://ghcr.io/spotter-dev/charts/spotter --namespace spotter --create-namespace --set 'backends={" +
			strings.Join(p.backends, ",") + "}" + values + "'",
		apply,
	}
	return t.withFiles(s)
}

// withFiles adds the call that writes the files to s, unless they are written.
func (t *trial) withFiles(s step) step {
	if !t.folder.none {
		return s
	}
	words := []string{"spotter"}
	for _, word := range t.p.Args {
		if !strings.HasPrefix(word, "--no-files") {
			words = append(words, word)
		}
	}
	s.Commands = slices.Insert(s.Commands, 0, cli.Shell(words))
	return s
}
