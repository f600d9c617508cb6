package format

import (
	"bytes"
	"math"
	"slices"
	"strings"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/policy/figures"
)

// sparkWidth is how many runs a sparkline shows; of more it shows quantiles.
const sparkWidth = 20

// writeSparklines writes what every run costs, cheapest first, before and after on
// one scale.
func writeSparklines(b *bytes.Buffer, x *commentRow) {
	sides := []*eval.Spending{x.before, x.after}
	names := []string{"before", "after"}
	if x.before == nil {
		sides, names = []*eval.Spending{x.onDemand, x.after}, []string{"on demand", x.policy}
	}
	low, high := sides[1].Costs[0], sides[1].Costs[0]
	for _, s := range sides {
		low, high = min(low, slices.Min(s.Costs)), max(high, slices.Max(s.Costs))
	}
	of := "bill"
	if sides[0].OutageCost+sides[1].OutageCost > 0 {
		of = "bill and cost of outages"
	}
	var parts []string
	for i, s := range sides {
		span := figures.Dollars(slices.Min(s.Costs))
		if most := figures.Dollars(slices.Max(s.Costs)); most != span {
			span += " to " + most
		}
		parts = append(parts, escape(names[i])+" `"+sparkline(s.Costs, low, high)+"` "+span)
	}
	b.WriteString("\nA month's " + of + " in each run, cheapest first: " + strings.Join(parts, ", ") + "\n")
}

// sparkline draws values in order of size, as bars between low and high.
func sparkline(values []float64, low, high float64) string {
	bars := []rune("▁▂▃▄▅▆▇█")
	sorted := slices.Sorted(slices.Values(values))
	out := make([]rune, min(len(sorted), sparkWidth))
	for i := range out {
		at := len(sorted) - 1
		if i < len(out)-1 {
			at = i * (len(sorted) - 1) / (len(out) - 1)
		}
		level := 0
		if high > low {
			level = int((sorted[at]-low)/(high-low)*float64(len(bars)-1) + 0.5)
		}
		out[i] = bars[level]
	}
	return string(out)
}

// changeWords say by how much b is more than a, and in percent where that can be said.
func changeWords(a, b float64) string {
	text := figures.DollarChange(b - a)
	if a > 0 && b != a {
		part := (b - a) / a * 100
		digits := 0
		if math.Abs(part) < 10 {
			digits = 1
		}
		text += " (" + figures.PercentChange(part, digits) + ")"
	}
	return text
}

// arrow says what became what, or the one that both are.
func arrow(a, b string) string {
	if a == b {
		return b
	}
	return a + " → " + b
}
