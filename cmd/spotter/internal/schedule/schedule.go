// Package schedule implements the command that places pods on existing nodes.
package schedule

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/internal/input"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/figures"
	"github.com/spotter-dev/spotter/scenarios/catalog"
	"github.com/spotter-dev/spotter/sim/fixed"
)

type scheduleFlags struct {
	input.SourceFlags
	files []string
	check bool
	form  cli.Form
}

// A report is the output of the command.
type report struct {
	*fixed.Result

	// PricedNodes is the number of nodes whose price is known, and Dollars their total on-demand
	// cost per hour; nil without such nodes.
	PricedNodes int      `json:"priced_nodes"`
	Dollars     *float64 `json:"usd_per_hour_on_demand,omitempty"`
}

// Command returns the command schedule.
func Command(p *cli.Program) *cobra.Command {
	var f scheduleFlags
	c := &cobra.Command{
		Use:   "schedule -f PATH…",
		Short: "Place pods on the nodes that there are, and list those without room",
		Long: "schedule places pods on nodes as kube-scheduler does, preemption included. No node is\n" +
			"bought, and nothing costs anything: nodes may be of any kind, on premises too. It reads\n" +
			"Nodes with what they have allocatable, and Pods or the workloads that create them, as\n" +
			"`kubectl get -o yaml` prints them. Pods with a nodeName stay there. It lists the pods that\n" +
			"no node takes, with the reasons of kube-scheduler, and what share of each resource is\n" +
			"requested. Files may be compressed by gzip.\n\n" +
			"Exit code: 0 good, 1 with --check if a pod has no node, 2 the call or an input is wrong.",
		Example: "  spotter schedule -f nodes.yaml -f pods.yaml.gz\n" +
			"  kubectl get nodes,pods -A -o yaml | spotter schedule -f - -f new.yaml --check",
		Args: cli.Arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return run(c.Context(), p, &f) },
	}
	flags := c.Flags()
	flags.StringArrayVarP(&f.files, "filename", "f", nil,
		"read the manifests in the file or folder `PATH`, or - for standard input; may be repeated")
	flags.BoolVar(&f.check, "check", false, "fail if a pod has no node")
	f.RegisterSources(flags)
	f.form.Register(c)
	f.form.RegisterDetails(c)
	return c
}

func run(ctx context.Context, p *cli.Program, f *scheduleFlags) error {
	if len(f.files) == 0 {
		return cli.Invalid(errors.New("--filename: it is not set"),
			"give files with Nodes and Pods: spotter schedule -f nodes.yaml -f pods.yaml")
	}
	began := time.Now()
	c, err := read(ctx, f)
	if err != nil {
		return err
	}
	if skipped := c.Skipped(); skipped != "" && f.Strict {
		return cli.Invalid(errors.New(skipped), "take them out, or leave --strict out to skip them")
	} else if skipped != "" {
		fmt.Fprintln(p.Stderr, skipped)
	}
	result, err := c.Schedule()
	if err != nil {
		return cli.Invalid(err, "give Nodes with status.allocatable, and Pods or workloads; see `spotter schedule --help`")
	}
	r := report{Result: result}
	r.price(c)
	fmt.Fprintf(p.Stderr, "scheduled in %.2f s\n", time.Since(began).Seconds())
	err = p.Print(&f.form, &r, func(out io.Writer, _ bool) error { return r.write(out, f.form.Details()) })
	if err == nil && f.check && r.Unscheduled > 0 {
		return fmt.Errorf("%w: %s without a node", cli.ErrCheck, figures.Count(r.Unscheduled, "pod"))
	}
	return err
}

// read reads all files.
func read(ctx context.Context, f *scheduleFlags) (*fixed.Cluster, error) {
	c := fixed.NewCluster()
	for _, path := range f.files {
		files, err := input.ReadFiles(ctx, path, f.Recursive)
		if err != nil {
			return nil, err
		}
		for _, x := range files {
			if err := c.Add(x.Name, x.Text); err != nil {
				return nil, cli.Invalid(err, "correct the file")
			}
		}
	}
	return c, nil
}

// price adds up the on-demand prices of the nodes, where known.
func (r *report) price(c *fixed.Cluster) {
	sum := policy.Money(0)
	for n := range c.Nodes() {
		if price, known := onDemand(c.Labels(n)); known {
			sum += price
			r.PricedNodes++
		}
	}
	if r.PricedNodes > 0 {
		r.Dollars = new(sum.Float())
	}
}

// onDemand returns the on-demand price per hour of a node, determined by its labels.
func onDemand(labels []policy.Label) (policy.Money, bool) {
	value := func(keys ...string) string {
		for _, key := range keys {
			if v, has := policy.FindLabel(labels, key); has {
				return v
			}
		}
		return ""
	}
	kind := value("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")
	region := value("topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region")
	if kind == "" || region == "" {
		return 0, false
	}
	for _, provider := range catalog.Providers() {
		if price, known := catalog.OnDemand(provider, region, kind); known {
			return price, true
		}
	}
	return 0, false
}

// pendingShown is the number of pods that are listed by name for each reason without --details.
const pendingShown = 3

func (r *report) write(out io.Writer, details bool) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %s of them empty; %s: %s scheduled",
		figures.Count(r.Nodes, "node"), figures.Integer(r.EmptyNodes), figures.Count(r.Pods,
			"pod"), figures.Integer(r.Scheduled))
	if r.Running > 0 {
		fmt.Fprintf(&b, ", %s running before", figures.Integer(r.Running))
	}
	if n := len(r.Preempted); n > 0 {
		fmt.Fprintf(&b, ", %s preempted", figures.Integer(n))
	}
	fmt.Fprintf(&b, ", %s without a node\n", figures.Integer(r.Unscheduled))
	if r.Dollars != nil {
		fmt.Fprintf(&b, "%s of known price: %s an hour on demand\n\n", figures.Count(r.PricedNodes, "node"),
			figures.Price(*r.Dollars))
	} else {
		b.WriteString("no prices: cost not shown\n\n")
	}
	var rows [][]string
	for _, u := range r.Usage {
		rows = append(rows, []string{u.Resource, u.Requested, u.Allocatable, fmt.Sprintf("%.1f%%", 100*u.Share)})
	}
	if err := cli.Columns(&b, []string{"RESOURCE", "REQUESTED", "ALLOCATABLE", "SHARE"}, rows); err != nil {
		return err
	}
	for _, x := range r.Pending {
		fmt.Fprintf(&b, "\n%s, requesting %s: %s\n", figures.Count(len(x.Pods), "pod"), requested(x.Requests), x.Reason)
		b.WriteString("  " + named(x.Pods, details) + "\n")
	}
	if len(r.Preempted) > 0 {
		b.WriteString("\npreempted: " + named(r.Preempted, details) + "\n")
	}
	if len(r.Notes) > 0 {
		b.WriteString("\n" + strings.Join(r.Notes, "\n") + "\n")
	}
	_, err := io.WriteString(out, b.String())
	return err
}

func named(pods []string, all bool) string {
	if all {
		return strings.Join(pods, ", ")
	}
	return cli.FirstOf(pods, pendingShown)
}

func requested(of map[string]string) string {
	var parts []string
	for name, n := range of {
		parts = append(parts, name+" "+n)
	}
	if len(parts) == 0 {
		return "nothing"
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}
