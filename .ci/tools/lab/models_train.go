package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/spotter-dev/spotter/.ci/tools/lab/qnet"
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/internal/lab"
)

const trainAdvice = "run `spotter models train --help`"

// trainFlags are the flags of models train.
type trainFlags struct {
	qnet.Config
	dir string
}

func (p *program) modelsTrainCommand() *cobra.Command {
	f := trainFlags{Config: qnet.DefaultConfig()}
	c := &cobra.Command{
		Use:   lab.ModelsTrain.Use,
		Short: lab.ModelsTrain.Short,
		Long: "train plays random small worlds on generated prices, learns from what came of what\n" +
			"was done, and writes a bundle with the network that values the actions of the policy\n" +
			"model. Equal commands give equal bytes on one kind of processor, however many worlds\n" +
			"are played at once. It tells of every round on the standard error.\n\n" +
			"The manifest holds what the network saves in worlds that it did not learn from, beside\n" +
			"what all on spot saves there, in percent of the bill on demand.",
		Example: "  spotter models train --out bundle\n" +
			"  spotter models train --out bundle --rounds 100 --worlds 64 --parallel 16\n" +
			"  spotter eval web-week --policies model:bundle=bundle",
		Args: cli.Arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return p.modelsTrain(c.Context(), &f) },
	}
	flags := c.Flags()
	flags.Uint64Var(&f.Seed, "seed", f.Seed, "draw worlds and first weights with the seed `N`")
	flags.IntVar(&f.Rounds, "rounds", f.Rounds, "play and learn `N` times")
	flags.IntVar(&f.Scenarios, "worlds", f.Scenarios, "play `N` worlds a round")
	flags.IntVar(&f.Steps, "steps", f.Steps, "move the weights `N` times a round")
	flags.IntVar(&f.Held, "held-out", f.Held, "measure the network in `N` worlds that it did not learn from")
	flags.IntVar(&f.Traces, "traces", f.Traces, "draw `N` sets of prices to play on")
	flags.IntVar(&f.Parallel, "parallel", runtime.GOMAXPROCS(0), "play `N` worlds at once")
	flags.StringVar(&f.dir, "out", "", "write the bundle to the folder `DIR`, which is new or empty")
	return c
}

func (p *program) modelsTrain(ctx context.Context, f *trainFlags) error {
	if err := checkOutput(f.dir, "bundle", trainAdvice); err != nil {
		return err
	}
	if err := f.Validate(); err != nil {
		return cli.Invalid(err, trainAdvice)
	}
	f.Progress = func(r qnet.Round) {
		fmt.Fprintf(p.Stderr, "round %d of %d: %d lessons, spot share %.2f, saved %.3f of what pools are worth, loss %.4f\n",
			r.N, r.Of, r.Lessons, r.Share, r.Saved, r.Loss)
	}
	t, err := qnet.Train(ctx, f.Config)
	if err != nil {
		return err
	}
	files, err := t.Bundle()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(f.dir, 0o755); err != nil {
		return cli.Invalid(fmt.Errorf("--out: %w", err), trainAdvice)
	}
	for _, x := range files { // the manifest last, without which there is no bundle
		err := cli.ReplaceFile(filepath.Join(f.dir, x.Name), func(w io.Writer) error {
			_, err := w.Write(x.Data)
			return err
		})
		if err != nil {
			return fmt.Errorf("writing %s: %w", x.Name, err)
		}
	}
	return p.Output("", func(w io.Writer) error {
		fmt.Fprintf(w, "learned from %d worlds, %d lessons\n", t.Scenarios, t.Lessons)
		fmt.Fprintf(w, "in %g other worlds it saves %.1f%% of the bill on demand in the mean, all on spot %.1f%%\n",
			t.Metrics["held_out_worlds"], t.Metrics["held_out_saved_pct_mean"], t.Metrics["held_out_all_spot_pct_mean"])
		_, err := fmt.Fprintf(w, "written to %s; check it with `spotter models verify %s`\n", f.dir, f.dir)
		return err
	})
}
