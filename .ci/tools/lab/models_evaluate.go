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
	"slices"
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
	bundle, against, judge string
	write                  bool
	form                   cli.Form
}

func (p *program) modelsEvaluateCommand() *cobra.Command {
	var f evaluateFlags
	c := &cobra.Command{
		Use:   lab.ModelsEvaluate.Use,
		Short: lab.ModelsEvaluate.Short,
		Long: "evaluate compares the forecaster of a bundle, on the rows to report on, with\n" +
			"baselines, and with the bundle of --against: constant, the mean of the stratum in the\n" +
			"rows to train on; band, the rate of the published band; closed-form; and logistics\n" +
			"fitted to the rows to train on, price-logistic on the ratio of price and on-demand\n" +
			"price, logistic on bands, moves of the price, and refusals, and\n" +
			"logistic-on-closed-form on these and the closed form's hazard. A skill is how much\n" +
			"smaller the loss is, in parts of the other's, with a 95% interval by the bootstrap\n" +
			"over days of recordings and over generated worlds. Runtime is judged in markets that\n" +
			"sold at the time. The slope is that of observed on forecast, over bins with at least\n" +
			"50 events.",
		Example: "  spotter models evaluate data --bundle bundle\n  spotter models evaluate data --bundle bundle --against agent/models\n" +
			"  spotter models evaluate data --judge closed-form",
		Args: cli.Arguments(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error { return p.modelsEvaluate(args[0], &f) },
	}
	c.Flags().StringVar(&f.bundle, "bundle", bundles.Builtin, "judge the bundle in `DIR`")
	c.Flags().StringVar(&f.against, "against", "",
		"compare it with the bundle in `DIR`, of the features of the SpotVortex agent")
	c.Flags().StringVar(&f.judge, "judge", "",
		"judge the baseline `NAME` in the place of the bundle, without ONNX Runtime")
	c.Flags().BoolVar(&f.write, "write", false,
		"write figures and reliability of recorded markets into the manifest of --bundle")
	f.form.Register(c)
	return c
}

const evaluateAdvice = "give the folder that `spotter models dataset` wrote, and bundles that `spotter models verify` takes"

func (p *program) modelsEvaluate(data string, f *evaluateFlags) error {
	switch {
	case f.judge != "" && !slices.Contains(forecaster.BaselineNames, f.judge):
		return cli.Invalid(fmt.Errorf("--judge: %q is none of %s", f.judge, strings.Join(forecaster.BaselineNames, ", ")),
			evaluateAdvice)
	case f.write && f.judge != "":
		return cli.Invalid(errors.New("--write: a baseline has no manifest to write to"), "leave --judge out")
	case f.write && f.bundle == bundles.Builtin:
		return cli.Invalid(fmt.Errorf("--write: the bundle %s is part of the program", bundles.Builtin), evaluateAdvice)
	}
	r, err := forecaster.Read(data)
	if err != nil {
		return cli.Invalid(fmt.Errorf("%s: %w", data, err), evaluateAdvice)
	}
	own, others, err := f.forecasters(r)
	if err != nil {
		return err
	}
	judged := r.Judge(own, others)
	if f.write {
		if err := writeMetrics(f.bundle, judged); err != nil {
			return err
		}
	}
	return p.Print(&f.form, judgedObjects(judged), func(w io.Writer, _ bool) error { return writeJudged(w, judged) })
}

// forecasters returns the answers to judge, and those to compare them with.
func (f *evaluateFlags) forecasters(r *forecaster.Reading) (own forecaster.Answers, others []forecaster.Named,
	err error) {
	rows, agent, n := r.Rows()
	var opened bundles.Cache
	others = r.Baselines()
	if i := slices.IndexFunc(others, func(o forecaster.Named) bool { return o.Name == f.judge }); i >= 0 {
		own = others[i].Answers
		others = slices.Delete(others, i, i+1)
	} else if own, err = answers(&opened, "--bundle", f.bundle, models.MarketFeaturesV2, rows, n); err != nil {
		return own, nil, err
	}
	if f.against != "" {
		a, err := answers(&opened, "--against", f.against, models.MarketFeaturesV1, agent, n)
		if err != nil {
			return own, nil, err
		}
		others = append(others, forecaster.Named{Name: f.against, Answers: a})
	}
	return own, others, nil
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
		fmt.Fprintf(w,
			"%s, %s\t%d rows, %d clusters\tobserved %.5f\tforecast %.5f\tBrier %.5f\tlog loss %.5f\tAUC %s\tslope %s\n",
			j.Stratum, j.Label, j.Rows, j.Clusters, j.Observed, j.Predicted, j.Brier, j.LogLoss, aucText(&j), slopeText(j.Slope))
		for _, s := range j.Against {
			fmt.Fprintf(w, "  over %s\t\t\t\tBrier skill %s\tlog-loss skill %s\n", s.Over, withInterval(s.Brier),
				withInterval(s.LogLoss))
		}
	}
	return w.Flush()
}

// aucText returns the area under the curve, or why it is undefined.
func aucText(j *forecaster.Judged) string {
	switch {
	case !math.IsNaN(j.AUC):
		return fmt.Sprintf("%.3f", j.AUC)
	case j.Observed == 0:
		return "– (0 in all rows)"
	}
	return "– (above 0 in all rows)"
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

func withInterval(x [3]float64) string {
	if math.IsNaN(x[0] + x[1] + x[2]) { // the other has no loss
		return "–"
	}
	return fmt.Sprintf("%+.4f [%+.4f, %+.4f]", x[0], x[1], x[2])
}

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
		for _, s := range j.Against {
			if s.Over != forecaster.ClosedForm && s.Over != forecaster.PriceLogistic {
				continue
			}
			over := strings.ReplaceAll(s.Over, "-", "_")
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
