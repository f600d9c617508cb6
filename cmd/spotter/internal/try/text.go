package try

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/policy/figures"
	"github.com/spotter-dev/spotter/sim"
)

// title is what a policy is called on a terminal.
func (x *sight) title(policy string) string {
	switch policy {
	case asIs:
		switch {
		case x.withoutCluster:
			return "its pools, consolidated (as-is)"
		case len(x.options.NodePools) > 0:
			return "your own NodePools, consolidated (as-is)"
		}
		return "your own pools, consolidated (as-is)"
	case onDemand:
		return "on demand only"
	case karpenter:
		return "Spot allowed (karpenter)"
	}
	return "Spotter (portfolio)"
}

// notesShown is how many assumptions and omissions are printed; the rest are in the file.
const notesShown = 3

// noteWidth is about how many letters of one are, all of them where details are asked for.
const noteWidth = 180

// verdict says in a sentence what Spotter would cost against what is paid, and what its worst run is.
func (r *result) verdict() string {
	p := r.row(portfolio)
	change := figures.Percent(-p.Change, 1) + " less"
	if p.Change > 0 {
		change = figures.Percent(p.Change, 1) + " more"
	}
	return fmt.Sprintf("%s costs %s a month, %s than %s; too few pods ready in the worst run: %s.", p.Title, p.month(), change, r.Now.title(), p.Worst.sentence())
}

// text writes r for a terminal.
func (r *result) text(w io.Writer, details bool) error {
	fmt.Fprintf(w, "%s\n\n", r.verdict())
	if r.Manifests != "" {
		fmt.Fprintf(w, "This is of %s.\n\n", r.Manifests)
	}
	now := r.Now.sentence(r.Prices)
	fmt.Fprintf(w, "%s.\n\n", strings.ToUpper(now[:1])+now[1:])
	fmt.Fprintf(w, "Simulated on %s Spot prices from %s to %s, with %s of when Spot nodes are taken:\n\n", r.Prices, r.From[:10], r.To[:10], figures.Count(r.Seeds, "draw"))
	rows := [][]string{{r.Now.title(), figures.Dollars(r.Now.Month), figures.Unknown, figures.RoughShare(r.Now.Share), "not measured"}}
	for i := range r.Policies {
		p := &r.Policies[i]
		rows = append(rows, []string{p.Title, p.month(), figures.PercentChange(p.Change, 1), figures.RoughShare(p.Share), p.Worst.sentence()})
	}
	if err := cli.Columns(w, []string{"", "$ A MONTH", "CHANGE", "SPOT", "TOO FEW PODS READY, WORST RUN"}, rows); err != nil {
		return err
	}
	fmt.Fprintln(w)
	notes(w, "Assumed", r.Assumed, r.scenario, details)
	notes(w, "Left out", r.LeftOut, r.scenario, details)
	fmt.Fprintf(w, "\nNext: %s\n", r.Next.Do)
	for _, c := range r.Next.Commands {
		fmt.Fprintf(w, "  %s\n", c)
	}
	_, err := fmt.Fprintf(w, "\nWritten: %s\n", strings.Join(r.Files, ", "))
	return err
}

// title is what the first row is called.
func (c *cost) title() string {
	if c.Of == paidToday {
		return "what you pay today"
	}
	return c.Of
}

// month writes the amount with its interval.
func (p *row) month() string {
	if p.Low == nil || figures.Dollars(*p.Low) == figures.Dollars(*p.High) {
		return figures.Dollars(p.Month)
	}
	return figures.Interval(p.Month, *p.Low, *p.High, figures.Dollars)
}

// causes are what outages come of, in words.
var causes = [sim.OutageCauses]string{
	sim.CauseReclaim: "Spot nodes taken", sim.CauseRefused: "no Spot capacity", sim.CauseMove: "nodes moved", sim.CauseProvisioner: "nodes consolidated",
	sim.CauseFault: "a zone lost", sim.CauseBudget: "a GPU budget", sim.CausePreemption: "preempted", sim.CauseGrowth: "slow to start",
}

// sentence says how long too few pods were ready in the worst run, and why.
func (x *worst) sentence() string {
	if x.Incidents == 0 {
		return "never"
	}
	longest := figures.Duration(time.Duration(x.Longest * float64(time.Second)))
	why := fmt.Sprintf("%v: %s (%s)", longest, x.Workload, causes[x.cause])
	if x.Incidents == 1 {
		return "once, " + why
	}
	return fmt.Sprintf("%d times, %s min; longest %s", x.Incidents, figures.Integer(x.Minutes), why)
}

// notes writes the first of the sentences, and where the others are.
func notes(w io.Writer, title string, all []string, file string, details bool) {
	for i, text := range all {
		if i == notesShown-1 && len(all) > notesShown && !details {
			fmt.Fprintf(w, "%s: %d more, at the head of %s\n", title, len(all)-i, file)
			return
		}
		text = strings.TrimSuffix(text, ".") + "."
		if short := []rune(text); len(short) > noteWidth && !details {
			text = strings.TrimSpace(string(short[:noteWidth])) + "…"
		}
		fmt.Fprintf(w, "%s: %s\n", title, text)
	}
}
