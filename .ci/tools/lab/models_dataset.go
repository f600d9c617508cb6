package main

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/spotter-dev/spotter/.ci/tools/lab/forecaster"
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/internal/input"
	"github.com/spotter-dev/spotter/internal/lab"
)

// datasetFlags are the flags of models dataset.
type datasetFlags struct {
	forecaster.Config
	recorded                []string
	trainUntil, chooseUntil string
	dir                     string
}

const datasetAdvice = "run `spotter models dataset --help`"

func (p *program) modelsDatasetCommand() *cobra.Command {
	f := datasetFlags{Config: forecaster.DefaultConfig()}
	c := &cobra.Command{
		Use:   lab.ModelsDataset.Use,
		Short: lab.ModelsDataset.Short,
		Long: "dataset writes what modelled clusters knew of markets, and what became of these, as\n" +
			"tables of NumPy: rows to train on, to choose by and to report on. Whole regions and\n" +
			"later time are held out together for the report; between the splits lie the farthest\n" +
			"look ahead and look back, and what a cluster met begins anew with each. Features are\n" +
			"built by the code that builds them in runs. Equal commands give equal bytes, and\n" +
			"dataset.json holds their SHA-256.\n\n" +
			"Recorded availability is read from traces: `spotter trace import` makes them.",
		Example: "  spotter trace import aws-02-15-2023/*.json --out v100\n" +
			"  spotter models dataset --recorded v100 --out data\n" +
			"  spotter models dataset --generated 8 --days 4 --out small",
		Args: cli.Arguments(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error { return p.modelsDataset(&f) },
	}
	flags := c.Flags()
	flags.StringSliceVar(&f.recorded, "recorded", nil, "a `TRACE` with recorded availability; may be repeated")
	flags.StringSliceVar(&f.HoldOut, "hold-out", f.HoldOut, "keep the regions `NAMES` for the report")
	flags.StringSliceVar(&f.Regions, "regions", f.Regions, "draw generated worlds to train on in the regions `NAMES`")
	flags.StringVar(&f.trainUntil, "train-until", "",
		"train on what lies before `TIME` (default: half of the first recording)")
	flags.StringVar(&f.chooseUntil, "choose-until", "", "report on what lies behind `TIME` (default: seven tenths of it)")
	flags.IntVar(&f.Copies, "copies", f.Copies,
		"let `N` clusters meet each recorded region to train on, and half as many else")
	flags.IntVar(&f.Generated, "generated", f.Generated, "draw `N` worlds to train on, half as many to report on")
	flags.IntVar(&f.Scarce, "scarce", f.Scarce,
		"draw `N` worlds of accelerators to train on, by laws fitted to the recordings")
	flags.IntVar(&f.Days, "days", f.Days, "draw worlds of `N` days")
	flags.Uint64Var(&f.Seed, "seed", f.Seed, "draw with the seed `N`")
	flags.Float64Var(&f.RecordedShare, "recorded-share", f.RecordedShare,
		"make rows of the share `X` of markets and ticks of recorded worlds")
	flags.Float64Var(&f.GeneratedShare, "generated-share", f.GeneratedShare, "and of generated ones")
	flags.Float64Var(&f.ScarceShare, "scarce-share", f.ScarceShare, "and of those of accelerators")
	flags.StringVar(&f.dir, "out", "", "write to the folder `DIR`, which is new or empty")
	return c
}

func (p *program) modelsDataset(f *datasetFlags) error {
	if err := checkOutput(f.dir, "data", datasetAdvice); err != nil {
		return err
	}
	var err error
	if f.trainUntil != "" {
		if f.TrainUntil, err = input.ParseTime(f.trainUntil); err != nil {
			return cli.Invalid(fmt.Errorf("--train-until: %w", err), datasetAdvice)
		}
	}
	if f.chooseUntil != "" {
		if f.ChooseUntil, err = input.ParseTime(f.chooseUntil); err != nil {
			return cli.Invalid(fmt.Errorf("--choose-until: %w", err), datasetAdvice)
		}
	}
	for _, path := range f.recorded {
		t, err := input.OpenTrace(path)
		if err != nil {
			return err
		}
		f.Recordings = append(f.Recordings, t)
	}
	d, err := forecaster.Build(f.Config)
	if err != nil {
		return cli.Invalid(fmt.Errorf("dataset: %w", err), datasetAdvice)
	}
	about, err := d.Write(f.dir)
	if err != nil {
		return fmt.Errorf("writing %s: %w", f.dir, err)
	}
	return p.Output("", func(w io.Writer) error { return writeDataset(w, f.dir, about) })
}

// writeDataset prints what a data set holds.
func writeDataset(w io.Writer, dir string, a *forecaster.About) error {
	for _, name := range []string{"train", "choose", "report"} {
		s := a.Splits[name]
		fmt.Fprintf(w, "%-7s %8d rows from %s to %s\n", name, s.Rows, s.From.Format("2006-01-02 15:04"),
			s.Until.Format("2006-01-02 15:04"))
		for _, stratum := range slices.Sorted(maps.Keys(s.Strata)) {
			fmt.Fprintf(w, "        %8d %s\n", s.Strata[stratum], stratum)
		}
	}
	_, err := fmt.Fprintf(w, "SHA-256 %s\nwritten to %s\n", a.Fingerprint, dir)
	return err
}
