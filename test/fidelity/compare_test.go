package fidelity

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
)

// draws is how many times the simulator plays each weather: nodes join after other times
// in each.
const draws = 20

// A sample is the values of one figure.
type sample []float64

func (s sample) mean() float64 {
	sum := 0.0
	for _, x := range s {
		sum += x
	}
	return sum / float64(len(s))
}

// deviation returns the standard deviation, 0 of fewer than two values.
func (s sample) deviation() float64 {
	if len(s) < 2 {
		return 0
	}
	m, sum := s.mean(), 0.0
	for _, x := range s {
		sum += (x - m) * (x - m)
	}
	return math.Sqrt(sum / float64(len(s)-1))
}

// A comparison is one figure of both clusters.
type comparison struct {
	name string

	// real has a value for each real run, simulated one for each draw, weather after
	// weather.
	real, simulated sample

	// difference is the mean over weathers of the simulated mean less the real value, and
	// err the half width of its 95% interval.
	difference, err float64
}

// relative returns the difference and its error as parts of the real mean.
func (c *comparison) relative() (difference, err float64) {
	m := math.Abs(c.real.mean())
	if m == 0 {
		return 0, 0
	}
	return c.difference / m, c.err / m
}

// student holds the 97.5% quantiles of Student's t by degrees of freedom, from 1 on.
var student = [...]float64{12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
	2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042}

func quantile(freedom int) float64 {
	if freedom > len(student) {
		return 1.96
	}
	return student[freedom-1]
}

// alone is the number of weathers from which on their differences tell by themselves how
// they spread.
const alone = 8

// compareFigure compares one figure: real[i] is that of weather i, simulated[i] those of
// the draws of it.
//
// The interval is that of paired differences, one for each weather. Few of them say little
// of their own spread. Real runs then are taken to spread as simulated runs of one
// weather do, which is what is asked: whether the simulator could have drawn them. Of one
// or two the interval is one of three standard errors: a single run must not fail by
// chance.
func compareFigure(name string, real []float64, simulated [][]float64) comparison {
	c := comparison{name: name, real: real}
	var paired sample
	squares, freedom := 0.0, 0.0
	for i := range simulated {
		draws := sample(simulated[i])
		c.simulated = append(c.simulated, draws...)
		paired = append(paired, draws.mean()-real[i])
		squares += draws.deviation() * draws.deviation() * float64(len(draws)-1)
		freedom += float64(len(draws) - 1)
	}
	n := float64(len(paired))
	c.difference = paired.mean()
	switch {
	case len(paired) >= alone:
		c.err = quantile(len(paired)-1) * paired.deviation() / math.Sqrt(n)
		return c
	case len(paired) >= 3:
		squares += paired.deviation() * paired.deviation() * (n - 1)
		freedom += n - 1
		c.err = 1.96
	default:
		c.err = 3
	}
	c.err *= math.Sqrt(squares / freedom / n * (1 + 1/float64(len(simulated[0]))))
	return c
}

// A result is a script with all that was compared.
type result struct {
	script    *script
	real      []*record
	simulated [][]*record // by weather
	figures   []comparison
}

// compare simulates each weather that was played and compares all figures.
func compare(t testing.TB, s *script, real []*record) *result {
	t.Helper()
	x := &result{script: s, real: real}
	var names []string
	var reals [][]float64       // by figure, by run
	var simulated [][][]float64 // by figure, by run, by draw
	values := func(r *record) []float64 {
		all, err := s.figures(r)
		if err != nil {
			t.Fatal(err)
		}
		v := make([]float64, len(all))
		for i := range all {
			v[i] = all[i].value
			if len(names) < len(all) {
				names = append(names, all[i].name)
			}
		}
		return v
	}
	for i, r := range real {
		v := values(r)
		if reals == nil {
			reals, simulated = make([][]float64, len(v)), make([][][]float64, len(v))
		}
		var runs []*record
		for d := range uint64(draws) {
			runs = append(runs, s.simulate(t, r.Seed, 1000*r.Seed+d))
		}
		x.simulated = append(x.simulated, runs)
		for k := range v {
			reals[k] = append(reals[k], v[k])
			simulated[k] = append(simulated[k], nil)
		}
		for _, run := range runs {
			for k, y := range values(run) {
				simulated[k][i] = append(simulated[k][i], y)
			}
		}
	}
	for k := range names {
		x.figures = append(x.figures, compareFigure(names[k], reals[k], simulated[k]))
	}
	return x
}

// String returns the result as a table of markdown, with the verdicts of the bars.
func (x *result) table(bars bars) string {
	var b strings.Builder
	fmt.Fprintf(&b, "**%s** (%v, %d real runs, %d simulated of each weather)\n\n", x.script.name, x.script.bound.Duration, len(x.real), draws)
	fmt.Fprintln(&b, "| | real | simulated | difference | bar |")
	fmt.Fprintln(&b, "| --- | ---: | ---: | ---: | --- |")
	for i := range x.figures {
		c := &x.figures[i]
		if c.real.mean() == 0 && c.simulated.mean() == 0 {
			continue
		}
		difference := fmt.Sprintf("%+.2f ± %.2f", c.difference, c.err)
		if part, err := c.relative(); c.real.mean() != 0 {
			difference = fmt.Sprintf("%+.1f ± %.1f %%", 100*part, 100*err)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", c.name, spread(c.real), spread(c.simulated), difference, bars.say(x.script.name, c))
	}
	return b.String()
}

// spread writes a mean with the standard deviation.
func spread(s sample) string {
	digits := 1
	if m := math.Abs(s.mean()); m < 10 {
		digits = 3
	}
	if len(s) < 2 {
		return fmt.Sprintf("%.*f", digits, s.mean())
	}
	return fmt.Sprintf("%.*f (%.*f)", digits, s.mean(), digits, s.deviation())
}

// course returns the number of nodes over time side by side, and how both end.
func (x *result) course() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: nodes on demand + spot, real and simulated, in the mean\n", x.script.name)
	step := x.script.bound.Duration / 13
	for at := step; at <= x.script.bound.Duration; at += step {
		var realNodes, simNodes [2]float64
		for i, suffix := range []string{"/on-demand", "/spot"} {
			for _, r := range x.real {
				realNodes[i] += float64(r.countNodes(at.Milliseconds()-1, suffix)) / float64(len(x.real))
			}
			for _, draws := range x.simulated {
				for _, r := range draws {
					simNodes[i] += float64(r.countNodes(at.Milliseconds()-1, suffix)) / float64(len(draws)*len(x.simulated))
				}
			}
		}
		fmt.Fprintf(&b, "  %6v  %5.1f + %4.1f   %5.1f + %4.1f\n", at.Round(time.Second), realNodes[0], realNodes[1], simNodes[0], simNodes[1])
	}
	for i, r := range x.real {
		fmt.Fprintf(&b, "  at the end of weather %d\n    real       %s\n               %s\n    simulated  %s\n               %s\n",
			r.Seed, r.kinds(), r.placement(), x.simulated[i][0].kinds(), x.simulated[i][0].placement())
	}
	return b.String()
}
