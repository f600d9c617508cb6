package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/spotter-dev/spotter/.ci/tools/lab/forecaster"
	"github.com/spotter-dev/spotter/internal/bundles"
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/internal/lab"
	"github.com/spotter-dev/spotter/models"
)

// evaluateFlags are the flags of models evaluate.
type evaluateFlags struct {
	bundle, against string
	write           bool
}

func (p *program) modelsEvaluateCommand() *cobra.Command {
	var f evaluateFlags
	c := &cobra.Command{
		Use:   lab.ModelsEvaluate.Use,
		Short: lab.ModelsEvaluate.Short,
		Long: "evaluate compares the forecaster of a bundle, on the rows to report on, with the\n" +
			"closed form, with a logistic on the ratio of price and on-demand price that was\n" +
			"fitted to the rows to train on, and with the bundle of --against. A skill is how much\n" +
			"smaller its loss is, in parts of the other's, with a 95 % interval by the bootstrap\n" +
			"over days of recordings and over generated worlds. Runtime is judged in markets that\n" +
			"sold at the time. The slope is that of observed on forecast, over bins with at least\n" +
			"50 events.",
		Example: "  spotter models evaluate data --bundle bundle\n  spotter models evaluate data --bundle bundle --against agent/models",
		Args:    cli.Arguments(cobra.ExactArgs(1)),
		RunE:    func(_ *cobra.Command, args []string) error { return p.modelsEvaluate(args[0], f) },
	}
	c.Flags().StringVar(&f.bundle, "bundle", bundles.Builtin, "judge the bundle in `DIR`")
	c.Flags().StringVar(&f.against, "against", "", "compare it with the bundle in `DIR`, of the features of the SpotVortex agent")
	c.Flags().BoolVar(&f.write, "write", false, "write figures and reliability of recorded markets into the manifest of --bundle")
	return c
}

const evaluateAdvice = "give the folder that `spotter models dataset` wrote, and bundles that `spotter models verify` takes"

func (p *program) modelsEvaluate(data string, f evaluateFlags) error {
	if f.write && f.bundle == bundles.Builtin {
		return cli.Invalid(fmt.Errorf("--write: the bundle %s is part of the program", bundles.Builtin), evaluateAdvice)
	}
	r, err := forecaster.Read(data)
	if err != nil {
		return cli.Invalid(fmt.Errorf("%s: %w", data, err), evaluateAdvice)
	}
	rows, agent, n := r.Rows()
	var opened bundles.Cache
	own, err := answers(&opened, "--bundle", f.bundle, models.MarketFeaturesV2, rows, n)
	if err != nil {
		return err
	}
	others := map[string]forecaster.Answers{}
	if f.against != "" {
		if others[f.against], err = answers(&opened, "--against", f.against, models.MarketFeaturesV1, agent, n); err != nil {
			return err
		}
	}
	judged := r.Judge(own, others)
	if f.write {
		if err := writeMetrics(f.bundle, judged); err != nil {
			return err
		}
	}
	return p.Output("", func(w io.Writer) error { return writeJudged(w, judged) })
}

// answers asks the forecaster of a bundle about rows.
func answers(b *bundles.Cache, flag, dir, features string, rows []float32, n int) (a forecaster.Answers, err error) {
	o, err := b.Get(dir)
	if err == nil && o.Forecaster == nil {
		err = errors.New("the bundle has no forecaster")
	}
	if err == nil && o.Forecaster.Model.Features != features {
		err = fmt.Errorf("its forecaster is fed %s and not %s", o.Forecaster.Model.Features, features)
	}
	if err != nil {
		return a, cli.Invalid(fmt.Errorf("%s: %s: %w", flag, dir, err), evaluateAdvice)
	}
	scores, err := models.Scores(o.Forecaster, o.ForecasterSession, rows, n)
	if err != nil {
		return a, fmt.Errorf("%s: %s: %w", flag, dir, err)
	}
	for name, x := range scores {
		if k := forecaster.LabelColumn(name); k >= 0 {
			a[k] = x
		}
	}
	return a, nil
}

func writeJudged(out io.Writer, judged []forecaster.Judged) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, j := range judged {
		fmt.Fprintf(w, "%s, %s\t%d rows, %d clusters\tobserved %.5f\tforecast %.5f\tBrier %.5f\tlog loss %.5f\tAUC %.3f\tslope %s\n",
			j.Stratum, j.Label, j.Rows, j.Clusters, j.Observed, j.Predicted, j.Brier, j.LogLoss, j.AUC, slopeText(j.Slope))
		for _, s := range j.Against {
			fmt.Fprintf(w, "  over %s\t\t\t\tBrier skill %s\tlog-loss skill %s\n", s.Over, withInterval(s.Brier), withInterval(s.LogLoss))
		}
	}
	return w.Flush()
}

func slopeText(x [3]float64) string {
	switch {
	case math.IsNaN(x[0]):
		return "–"
	case math.IsNaN(x[1]) || math.IsNaN(x[2]):
		return fmt.Sprintf("%.2f", x[0])
	}
	return fmt.Sprintf("%.2f [%.2f, %.2f]", x[0], x[1], x[2])
}

func withInterval(x [3]float64) string { return fmt.Sprintf("%+.4f [%+.4f, %+.4f]", x[0], x[1], x[2]) }

// writeMetrics puts what was judged into the manifest of a bundle, which keeps all
// else that it says, and the figures of its training.
func writeMetrics(dir string, judged []forecaster.Judged) error {
	path := filepath.Join(dir, models.ManifestName)
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var m models.Manifest
	if err := json.Unmarshal(text, &m); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	maps.DeleteFunc(m.Metrics, func(name string, _ float64) bool { return !strings.HasPrefix(name, "cross_fit.") })
	if m.Metrics == nil {
		m.Metrics = map[string]float64{}
	}
	m.Calibration = map[string][]models.Bin{}
	set := func(name string, x float64) {
		if !math.IsNaN(x) && !math.IsInf(x, 0) {
			m.Metrics[name] = math.Round(x*1e5) / 1e5
		}
	}
	for _, j := range judged {
		name := strings.NewReplacer(", ", "_", " ", "_").Replace(strings.ToLower(j.Stratum.String())) + "." + j.Label
		set(name+".brier", j.Brier)
		set(name+".log_loss", j.LogLoss)
		set(name+".auc", j.AUC)
		set(name+".slope", j.Slope[0])
		set(name+".slope.lower", j.Slope[1])
		set(name+".slope.upper", j.Slope[2])
		for _, s := range j.Against[:min(2, len(j.Against))] {
			over := "closed_form"
			if strings.HasPrefix(s.Over, "logistic") {
				over = "price_logistic"
			}
			set(name+".brier_skill."+over, s.Brier[0])
			set(name+".log_loss_skill."+over, s.LogLoss[0])
		}
		if j.Stratum == forecaster.RecordedGPU {
			m.Calibration[j.Label] = j.Bins
		}
	}
	text, err = json.MarshalIndent(&m, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}
