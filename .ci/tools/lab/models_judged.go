package main

import (
	"math"

	"github.com/spotter-dev/spotter/.ci/tools/lab/forecaster"
)

// A judgedObject is what a forecaster is worth for one label and stratum, as programs
// read it. What does not exist is left out.
type judgedObject struct {
	Stratum  string    `json:"stratum"`
	Label    string    `json:"label"`
	Rows     int       `json:"rows"`
	Clusters int       `json:"clusters"`
	Observed *float64  `json:"observed,omitempty"`
	Forecast *float64  `json:"forecast,omitempty"`
	Brier    *float64  `json:"brier,omitempty"`
	LogLoss  *float64  `json:"log_loss,omitempty"`
	AUC      *float64  `json:"auc,omitempty"`
	Slope    *interval `json:"slope,omitempty"`
	Against  []skill   `json:"against"`
}

// A skill is how much smaller the loss is than another's, in parts of that.
type skill struct {
	Over    string    `json:"over"`
	Brier   *interval `json:"brier,omitempty"`
	LogLoss *interval `json:"log_loss,omitempty"`
}

// An interval is a figure with the ends of its 95% interval.
type interval struct {
	Value *float64 `json:"value,omitempty"`
	Lower *float64 `json:"lower,omitempty"`
	Upper *float64 `json:"upper,omitempty"`
}

func judgedObjects(judged []forecaster.Judged) []judgedObject {
	out := make([]judgedObject, len(judged))
	for i, j := range judged {
		out[i] = judgedObject{
			Stratum: j.Stratum.String(), Label: j.Label, Rows: j.Rows, Clusters: j.Clusters,
			Observed: number(j.Observed), Forecast: number(j.Predicted), Brier: number(j.Brier), LogLoss: number(j.LogLoss),
			AUC: number(j.AUC), Slope: intervalOf(j.Slope), Against: []skill{},
		}
		for _, s := range j.Against {
			out[i].Against = append(out[i].Against, skill{s.Over, intervalOf(s.Brier), intervalOf(s.LogLoss)})
		}
	}
	return out
}

// number returns x, or nil if x is NaN or infinite.
func number(x float64) *float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return &x
}

// intervalOf returns a figure with its ends, or nil if the figure is NaN or infinite.
func intervalOf(x [3]float64) *interval {
	if number(x[0]) == nil {
		return nil
	}
	return &interval{number(x[0]), number(x[1]), number(x[2])}
}
