package try

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/access"
	"github.com/spotter-dev/spotter/eval/format"
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/internal/input"
)

// A call is the values of the flags of the command try.
type call struct {
	cluster access.Cluster
	form    cli.Form
	sources input.SourceFlags
	file    string
	demo    bool
	dir     string
	force   bool
	noFiles bool
}

// Command returns the command try.
func Command(p *cli.Program) *cobra.Command {
	var f call
	c := &cobra.Command{
		Use:   "try [-f PATH | --demo]",
		Short: "See in a minute what your cluster costs, and would cost on Spot; nothing is changed",
		Long: "try reads the cluster of the current kubeconfig, and changes nothing in it. Within a\n" +
			"minute it says what its nodes cost a month, what they would cost under other\n" +
			"policies, what the worst week would be, and what to do next. Every saving is against\n" +
			"what is paid today: nodes times their price now. With several contexts it has a row\n" +
			"for each cluster, and their sum.\n\n" +
			"Without a cluster it tries manifests (-f), for which the cheapest nodes on demand\n" +
			"count as today's cost unless nodes are stated, or a demonstration (--demo).\n\n" +
			"Spot prices are those of the last week where AWS credentials are found that may\n" +
			"read them (ec2:DescribeSpotPriceHistory); else they are drawn, and called synthetic\n" +
			"wherever a figure stands. It runs as many seeds of the weather as the minute allows.\n\n" +
			"It writes the scenario with its prices, a report for a browser, and CapacityPools to\n" +
			"be applied, which only decide and show (mode: shadow); with --no-files nothing.",
		Example: "  spotter try\n" +
			"  spotter try --context production,staging --dir /tmp/both\n" +
			"  helm template shop ./chart | spotter try -f -\n" +
			"  spotter try --demo\n" +
			"  spotter try -o json",
		Args: cli.Arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if f.noFiles && (c.Flags().Changed("dir") || f.force) {
				return cli.Invalid(errors.New("--no-files: --dir and --force are about files"), "leave --no-files or them out")
			}
			return run(c.Context(), p, &f)
		},
	}
	f.form.Register(c)
	f.form.RegisterDetails(c)
	flags := c.Flags()
	f.cluster.Register(flags)
	flags.Lookup("context").Usage = "use the contexts `NAME[,NAME…]` of the kubeconfig"
	f.cluster.Complete(c)
	flags.StringVarP(&f.file, "filename", "f", "",
		"try the manifests in the file or folder `PATH`, or - for standard input, instead of a cluster")
	f.sources.RegisterSources(flags)
	flags.BoolVar(&f.demo, "demo", false, "try a small cluster that does not exist")
	flags.StringVar(&f.dir, "dir", "spotter-try", "write into the folder `DIR`")
	flags.BoolVar(&f.force, "force", false, "replace files in the folder that try has not written")
	flags.BoolVar(&f.noFiles, "no-files", false, "write no files, only the answer")
	return c
}

// A trial is one call of try for one cluster.
type trial struct {
	p       *cli.Program
	f       *call
	folder  folder
	began   time.Time
	patient limits
}

// run reads, simulates, writes files and prints the result.
func run(ctx context.Context, p *cli.Program, f *call) error {
	if f.file != "" && f.demo || (f.file != "" || f.demo) && f.cluster.Context != "" {
		return cli.Invalid(errTwoSources, "give one of them")
	}
	contexts, err := f.contexts()
	if err != nil {
		return err
	}
	if len(contexts) > 1 {
		return runFleet(ctx, p, f, contexts)
	}
	t := &trial{p: p, f: f, folder: folder{f.dir, f.noFiles}, began: time.Now(), patient: defaultLimits()}
	if err := t.folder.check(f.force); err != nil {
		return err
	}
	s, err := t.source(ctx)
	if err != nil {
		return err
	}
	r, err := t.on(ctx, s)
	if err != nil {
		return err
	}
	return p.Print(&f.form, r, func(w io.Writer, wide bool) error {
		return r.answer().Write(w, format.Options{Width: p.Width(""), Color: p.Colors(""), Details: wide || f.form.Details()})
	})
}

// source returns the cluster or manifests that the flags select, with prices.
func (t *trial) source(ctx context.Context) (*staged, error) {
	switch {
	case t.f.demo:
		return t.ofManifests(demonstration, demoName, demo)
	case t.f.file != "":
		return t.ofFiles(ctx, t.f.file)
	}
	seen, err := t.read(ctx)
	if err != nil {
		return nil, err
	}
	return t.scenario(ctx, seen)
}

// on simulates a cluster and writes the files.
func (t *trial) on(ctx context.Context, staged *staged) (*result, error) {
	seen := staged.seen
	now := costNow(staged.bound)
	if now.Nodes == 0 {
		now.Of = packed // the first run determines its cost
	} else {
		t.say("now: %s", now.sentence(staged.prices()))
	}
	report, err := t.simulate(ctx, staged, &now)
	if err != nil {
		return nil, err
	}
	pools := poolsOf(seen, staged.bound)
	r := newResult(seen, staged, now, report, pools)
	r.Next = t.next(seen, r, pools)
	r.Files, err = t.folder.write(staged, report, pools, r)
	return r, err
}

// say reports progress to the user on standard error.
func (t *trial) say(format string, args ...any) { sayTo(t.p.Stderr, format, args...) }
