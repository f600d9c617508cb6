package fidelity

import (
	"fmt"
	"math"
	"strings"

	"github.com/spotter-dev/spotter/scenarios"
)

// figure returns a figure by its name.
func (d *drawnDay) figure(name string) *drawnFigure {
	for i := range d.Figures {
		if d.Figures[i].Name == name {
			return &d.Figures[i]
		}
	}
	panic(fmt.Sprintf("day %d of Karpenter %s has no figure %s", d.Seed, d.Karpenter, name))
}

// A ratio is the quotient of two sums over days, with the half width of its 95% interval.
type ratio struct{ value, err float64 }

// ratioOf returns the sum of parts over the sum of wholes. Its interval is that of a ratio
// estimator, by Student's t: not finite for a single day.
func ratioOf(parts, wholes []float64) ratio {
	n := float64(len(parts))
	x, y := sample(parts).mean(), sample(wholes).mean()
	if y == 0 {
		return ratio{}
	}
	r := x / y
	squares := 0.0
	for i := range parts {
		e := parts[i] - float64(r*wholes[i])
		squares += e * e
	}
	if n < 2 {
		return ratio{r, math.Inf(1)}
	}
	return ratio{r, quantile(len(parts)-1) * math.Sqrt(squares/(n-1)/n) / y}
}

// percent writes the ratio in percent.
func (r ratio) percent(signed bool) string {
	format := "%.1f"
	if signed {
		format = "%+.1f"
	}
	text := strings.Replace(fmt.Sprintf(format, 100*r.value), "-", "−", 1)
	if math.IsInf(r.err, 1) {
		return text + "%"
	}
	return fmt.Sprintf("%s ± %.1f%%", text, 100*r.err)
}

// A total is one figure over all days of a version.
type total struct {
	name string

	// err is the simulated mean less the real one, as a part of the real one.
	err ratio

	// simulated is how far a simulated run is from a real one in the mean, and real how far
	// real runs are from each other; beyond is the difference.
	simulated, real, beyond ratio

	// covered counts the real runs that are within the range of the simulated runs of their
	// day. Of 21 runs with the same distribution, one is within the range of the other 20
	// with a probability of 19 in 21.
	covered, runs int
}

// totals sums the figures up over days.
func totals(days []*drawnDay) []total {
	var all []total
	for _, name := range []string{drawnBill, drawnHours, drawnEvictions, drawnReady, drawnTrajectory} {
		x := total{name: name}
		var errs, simulated, real, beyond, whole []float64
		for _, d := range days {
			f := d.figure(name)
			if name == drawnTrajectory {
				// The figure is a distance already.
				simulated, real = append(simulated, sample(f.Simulated).mean()), append(real, sample(f.Real).mean())
				whole = append(whole, sample(d.figure(drawnHours).Real).mean())
			} else {
				m := sample(f.Real).mean()
				errs, whole = append(errs, sample(f.Simulated).mean()-m), append(whole, m)
				simulated, real = append(simulated, distance(f.Simulated, f.Real)), append(real, distanceWithin(f.Real))
				x.covered, x.runs = x.covered+f.covered(), x.runs+len(f.Real)
			}
			beyond = append(beyond, simulated[len(simulated)-1]-real[len(real)-1])
		}
		if errs != nil {
			x.err = ratioOf(errs, whole)
		}
		x.simulated, x.real, x.beyond = ratioOf(simulated, whole), ratioOf(real, whole), ratioOf(beyond, whole)
		all = append(all, x)
	}
	return all
}

// distance returns the mean distance between values of two lists.
func distance(a, b []float64) float64 {
	sum := 0.0
	for _, x := range a {
		for _, y := range b {
			sum += math.Abs(x - y)
		}
	}
	return sum / float64(len(a)*len(b))
}

// distanceWithin returns the mean distance between two values of a list.
func distanceWithin(a []float64) float64 {
	sum, n := 0.0, 0
	for i, x := range a {
		for _, y := range a[i+1:] {
			sum, n = sum+math.Abs(x-y), n+1
		}
	}
	return sum / float64(max(n, 1))
}

// covered returns how many real runs are within the range of the simulated ones.
func (f *drawnFigure) covered() int {
	least, most := math.Inf(1), math.Inf(-1)
	for _, x := range f.Simulated {
		least, most = min(least, x), max(most, x)
	}
	n := 0
	for _, x := range f.Real {
		if least <= x && x <= most {
			n++
		}
	}
	return n
}

// wilson returns the 95% interval of a share p that was observed among n.
func wilson(p float64, n int) (from, to float64) {
	const z = 1.96
	m := float64(n)
	middle, half := (p+z*z/2/m)/(1+z*z/m), z*math.Sqrt(p*(1-p)/m+z*z/4/m/m)/(1+z*z/m)
	return middle - half, middle + half
}

// coverage returns the share of real runs within the range of the simulated ones, with its
// interval. Runs of one day are off together, and so the days count, not the runs.
func (x *total) coverage() (share, from, to float64) {
	share = float64(x.covered) / float64(x.runs)
	from, to = wilson(share, x.runs/realRuns)
	return share, from, to
}

// coveredLeast is the least share of real runs that must be within the range of the simulated ones.
const coveredLeast = 0.85

// failures returns in words how far a total of a version is beyond its bar, nothing where it is
// not or may not be.
func (all bars) failures(v scenarios.KarpenterVersion, x *total) []string {
	var texts []string
	c := comparison{real: sample{1}, difference: x.err.value, err: x.err.err}
	if x.name == drawnTrajectory {
		c.difference, c.err = max(0, x.beyond.value), x.beyond.err
	}
	least := coveredLeast
	for i := range all {
		b := &all[i]
		if b.Figure != x.name {
			continue
		}
		if known := b.Known[v.String()]; known.Covered > 0 {
			least = known.Covered
		}
		if b.judge(v.String(), &c) == failing {
			texts = append(texts, fmt.Sprintf("%s is off by %s, more than %g%% and than is known",
				x.name, ratio{c.difference, c.err}.percent(true), 100*b.Relative))
		}
	}
	if x.runs == 0 {
		return texts
	}
	if _, _, to := x.coverage(); to < least {
		texts = append(texts, fmt.Sprintf("%s: only %d of %d real runs are within the simulated ones, at most %.0f%% for %.0f%%",
			x.name, x.covered, x.runs, 100*to, 100*least))
	}
	return texts
}

// command is how a stranger repeats the day.
func (d *drawnDay) command() string {
	return fmt.Sprintf("make fidelity RANDOM=1 SEED=%d KARPENTER=%s", d.Seed, d.Karpenter)
}

// dayTable returns the figures of each day as a table of markdown: both real runs, and the
// mean and the range of the simulated ones.
func dayTable(days []*drawnDay) string {
	var b strings.Builder
	fmt.Fprintln(&b, "| day | commit | bill, $ | node-hours | evictions | time to ready, s | trajectory, simulated and real | repeat |")
	fmt.Fprintln(&b, "|:--|:--|--:|--:|--:|--:|--:|:--|")
	for _, d := range days {
		again := ""
		if d.Again != "" {
			again = fmt.Sprintf(", %.8s", d.Again)
		}
		fmt.Fprintf(&b, "| %d | %.8s%s |", d.Seed, d.Commit, again)
		for i, name := range []string{drawnBill, drawnHours, drawnEvictions, drawnReady} {
			f, digits := d.figure(name), []int{3, 2, 0, 1}[i]
			least, most := math.Inf(1), math.Inf(-1)
			for _, x := range f.Simulated {
				least, most = min(least, x), max(most, x)
			}
			var real []string
			for _, x := range f.Real {
				real = append(real, fmt.Sprintf("%.*f", digits, x))
			}
			fmt.Fprintf(&b, " %.*f (%.*f to %.*f): %s |", digits, sample(f.Simulated).mean(), digits, least, digits, most, strings.Join(real, ", "))
		}
		f, hours := d.figure(drawnTrajectory), sample(d.figure(drawnHours).Real).mean()
		fmt.Fprintf(&b, " %.1f%%, %.1f%% | `%s` |\n", 100*sample(f.Simulated).mean()/hours, 100*sample(f.Real).mean()/hours, d.command())
	}
	return b.String()
}
