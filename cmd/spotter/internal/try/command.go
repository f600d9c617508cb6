package try

import (
	"context"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/access"
	"github.com/spotter-dev/spotter/internal/cli"
)

// A call is what the flags say.
type call struct {
	cluster access.Cluster
	form    cli.Form
	dir     string
	force   bool
}

// Command returns the command try.
func Command(p *cli.Program) *cobra.Command {
	var f call
	c := &cobra.Command{
		Use:   "try",
		Short: "See in a minute what your cluster costs, and would cost on Spot; nothing is changed",
		Long: "try reads the cluster of the current kubeconfig, and changes nothing in it. Within a\n" +
			"minute it says what its nodes cost a month, what they would cost under other\n" +
			"policies, what the worst week would be, and what to do next.\n\n" +
			"Spot prices are those of the last week where AWS credentials are found that may\n" +
			"read them (ec2:DescribeSpotPriceHistory); else they are drawn, and called synthetic\n" +
			"wherever a figure stands. It runs as many seeds of the weather as the minute allows.\n\n" +
			"It writes the scenario with its prices, a report for a browser, and CapacityPools to\n" +
			"be applied, which only decide and show (mode: shadow).",
		Example: "  spotter try\n" +
			"  spotter try --context production --dir /tmp/production\n" +
			"  spotter try -o json",
		Args: cli.Arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return run(c.Context(), p, &f) },
	}
	f.form.Register(c)
	flags := c.Flags()
	f.cluster.Register(flags)
	flags.StringVar(&f.dir, "dir", "spotter-try", "write into the folder `DIR`")
	flags.BoolVar(&f.force, "force", false, "replace files in the folder that try has not written")
	return c
}

// A trial is one call.
type trial struct {
	p       *cli.Program
	f       *call
	folder  folder
	began   time.Time
	patient limits
}

// run reads, simulates, writes and prints.
func run(ctx context.Context, p *cli.Program, f *call) error {
	t := &trial{p: p, f: f, folder: folder{f.dir}, began: time.Now(), patient: defaultLimits()}
	if err := t.folder.check(f.force); err != nil {
		return err
	}
	seen, err := t.read(ctx)
	if err != nil {
		return err
	}
	return t.on(ctx, seen)
}

// on tries what was read of a cluster.
func (t *trial) on(ctx context.Context, seen *sight) error {
	staged, err := t.scenario(ctx, seen)
	if err != nil {
		return err
	}
	now := costNow(staged.bound)
	t.say("now: %s", now.sentence(staged.prices()))
	report, err := t.simulate(ctx, staged)
	if err != nil {
		return err
	}
	pools := poolsOf(seen, staged.bound)
	r := newResult(seen, staged, now, report, pools)
	r.Next = t.next(seen, r, pools)
	if r.Files, err = t.folder.write(staged, report, pools); err != nil {
		return err
	}
	return t.p.Print(&t.f.form, r, func(w io.Writer, wide bool) error { return r.text(w, wide) })
}

// say informs the user on standard error, where programs do not read.
func (t *trial) say(format string, args ...any) { sayTo(t.p.Stderr, format, args...) }

// firstLine returns the first line of an error that may have many.
func firstLine(err error) string {
	first, _, _ := strings.Cut(strings.TrimSpace(err.Error()), "\n")
	return first
}
