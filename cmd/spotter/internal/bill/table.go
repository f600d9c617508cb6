package bill

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spotter-dev/spotter/eval/bill"
	"github.com/spotter-dev/spotter/eval/format"
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/policy/figures"
)

// table returns the bills of usages as tables, divided by the dimension of --by or by each
// dimension.
func (f *billFlags) table(p *cli.Program, usages []*bill.Usage) (*format.Answer, error) {
	if f.savings != "" {
		return f.savingsTable(usages)
	}
	by := divisions
	if f.by != "" {
		by = []string{f.by}
	}
	a := &format.Answer{}
	for _, u := range usages {
		var sum, spot, hours float64
		for _, division := range by {
			parts, err := u.Sums(division)
			if err != nil {
				return nil, err
			}
			t, all := divided(division, parts)
			a.Tables = append(a.Tables, t)
			sum = all.Billed.Float()
			hours, spot = max(hours, all.NodeHours), max(spot, all.SpotHours)
		}
		text := fmt.Sprintf("%s from %s to %s", figures.Dollars(sum), cli.Minute(u.Window.From), cli.Minute(u.Window.To))
		if name := cmp.Or(u.About.Run, u.About.Account); name != "" {
			text = name + " costs " + text
		}
		if hours > 0 {
			text += fmt.Sprintf(", for %s node-hours, %s of them on Spot", figures.Number(hours, 0),
				figures.Share(spot/hours, 1))
		}
		a.Verdicts = append(a.Verdicts, format.Verdict{Text: text + "."})
	}
	a.About = "Fees and volumes of nodes are included, what is paid in advance is not. " + bill.Idle +
		" is what no pod requested."
	if f.by == "" && !f.Flags.Changed("format") {
		a.Next = format.Step{Do: "write a row for each node and hour, with the columns of FOCUS",
			Command: p.Invocation() + " --out bill.csv"}
	}
	return a, nil
}

// savingsTable returns the savings of each month, grouped by the value of --savings.
func (f *billFlags) savingsTable(usages []*bill.Usage) (*format.Answer, error) {
	a := &format.Answer{About: "Savings are against the price on demand of the same nodes. What commitments pay counts as paid, fees and volumes count on " +
		"both sides. " + bill.Idle + " is what no pod requested."}
	for _, u := range usages {
		all, err := u.Savings(f.savings)
		if err != nil {
			return nil, err
		}
		name := strings.ToUpper(strings.TrimPrefix(f.savings, "label:"))
		t, sum := format.Grid{Headings: format.Headings("MONTH", name, "COST $", "ON DEMAND $", "SAVED $",
			"SAVED %")}, bill.Saving{Name: "all"}
		for _, s := range all {
			sum.Cost, sum.OnDemand = sum.Cost+s.Cost, sum.OnDemand+s.OnDemand
		}
		for _, s := range append(all, sum) {
			share := 0.0
			if s.OnDemand > 0 {
				share = s.Saved().Float() / s.OnDemand.Float()
			}
			t.Rows = append(t.Rows, format.Cells(s.Month, s.Name, figures.Amount(s.Cost.Float()),
				figures.Amount(s.OnDemand.Float()),
				figures.Amount(s.Saved().Float()), figures.Number(100*share, 1)))
		}
		a.Tables = append(a.Tables, t)
		text := fmt.Sprintf("%s saved of %s on demand from %s to %s.", figures.Dollars(sum.Saved().Float()),
			figures.Dollars(sum.OnDemand.Float()),
			cli.Minute(u.Window.From), cli.Minute(u.Window.To))
		if name := cmp.Or(u.About.Run, u.About.Account); name != "" {
			text = name + ": " + text
		}
		a.Verdicts = append(a.Verdicts, format.Verdict{Text: text})
	}
	return a, nil
}

// divided returns the table of the parts of a bill, and their sum.
func divided(by string, parts []bill.Sum) (format.Grid, bill.Sum) {
	all := bill.Sum{Name: "all"}
	for _, s := range parts {
		all.Billed += s.Billed
		all.NodeHours += s.NodeHours
		all.SpotHours += s.SpotHours
	}
	names := []string{strings.ToUpper(by), "BILL $", "SHARE %", "NODE-HOURS", "SPOT %"}
	if by == bill.ByNamespace {
		names = names[:3]
	}
	t := format.Grid{Headings: format.Headings(names...)}
	for _, s := range append(parts, all) {
		cells := []string{s.Name, figures.Amount(s.Billed.Float()),
			figures.Number(100*s.Billed.Float()/all.Billed.Float(), 1),
			figures.Number(s.NodeHours, 0), figures.Number(100*s.SpotHours/s.NodeHours, 1)}
		t.Rows = append(t.Rows, format.Cells(cells[:len(names)]...))
	}
	return t, all
}
