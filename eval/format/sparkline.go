package format

import (
	"bytes"
	"math"
	"slices"
	"strings"

	"github.com/spotter-dev/spotter/eval"
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
		span := amount(slices.Min(s.Costs))
		if most := amount(slices.Max(s.Costs)); most != span {
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

// amount formats dollars of a month, with cents below a hundred.
func amount(x float64) string {
	digits := 2
	if x >= 100 || x <= -100 {
		digits = 0
	}
	if x < 0 && strings.Trim(plain(-x, digits), "0.") != "" {
		return "−$" + thousands(-x, digits)
	}
	return "$" + thousands(x, digits)
}

// amountChange is amount with a sign.
func amountChange(x float64) string {
	if text := amount(x); x < 0 || strings.Trim(text, "$0.") == "" {
		return text
	}
	return "+" + amount(x)
}

// changeWords say by how much b is more than a, and in percent where that can be said.
func changeWords(a, b float64) string {
	text := amountChange(b - a)
	if a > 0 && b != a {
		part := (b - a) / a * 100
		digits := 0
		if math.Abs(part) < 10 {
			digits = 1
		}
		text += " (" + strings.Replace(signed(part, digits), "-", "−", 1) + " %)"
	}
	return text
}

func savedWords(x float64) string { return plain(x, 0) + " %" }

// arrow says what became what, or the one that both are.
func arrow(a, b string) string {
	if a == b {
		return b
	}
	return a + " → " + b
}

// thousands formats x, which is not below zero, with commas.
func thousands(x float64, digits int) string {
	whole, rest, _ := strings.Cut(plain(x, digits), ".")
	var b strings.Builder
	for i, c := range whole {
		if i > 0 && (len(whole)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(c)
	}
	if rest != "" {
		b.WriteString("." + rest)
	}
	return b.String()
}
