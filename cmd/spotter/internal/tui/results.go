package tui

import (
	"context"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/tui/screen"
	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/eval/format"
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/internal/input"
	"github.com/spotter-dev/spotter/policy"
)

// A replayer repeats runs of a results file, one at a time.
type replayer struct {
	*tuiFlags
	results *format.Results
	send    func(any)
}

// results returns a function that lists the runs of a results file and plays the chosen one.
func (f *tuiFlags) results(path string, r *format.Results) (string, func(context.Context, func(any)), error) {
	if slices.ContainsFunc([]string{"policies", "seed", "trace", "from", "intensity", "truth", "node-fee", "run"},
		f.Flags.Changed) {
		return "", nil, cli.Invalid(fmt.Errorf("%s: its runs have their own prices, policies and seeds", path),
			"leave the flags out")
	}
	rows := make([]screen.Listing, len(r.Runs))
	for i := range r.Runs {
		x := &r.Runs[i]
		of := func(metric string) float64 { return x.Metrics.Of(metric).V }
		rows[i] = screen.Listing{Scenario: x.Scenario, Policy: x.Policy, Seed: x.Seed, From: policy.Time(x.Case.From),
			Savings: savings(x), Share: of("net_savings_pct") / 100, Failed: x.Error != "",
			OutageMinutes: int64(of("outage_minutes")), SpotMinutes: int64(of("outage_spot_minutes")), Incidents: int64(of("outage_incidents")),
			Longest: time.Duration(of("outage_longest_s") * float64(time.Second))}
	}
	play := func(ctx context.Context, send func(any)) {
		chosen := make(chan int, 1)
		choose := func(row int) { // only the last choice counts
			select {
			case <-chosen:
			default:
			}
			chosen <- row
		}
		send(screen.Listed{Rows: rows, Choose: choose})
		replayer{f, r, send}.play(ctx, chosen)
	}
	return filepath.Base(path), play, nil
}

// savings returns the savings of a run against on-demand, or 0 if unknown.
func savings(x *format.ResultRun) policy.Money {
	return policy.Dollars(x.Metrics.Of("net_savings_usd").V)
}

// play repeats the runs that are chosen. A new choice stops the previous run.
func (p replayer) play(ctx context.Context, chosen <-chan int) {
	var one sync.WaitGroup
	stop := func() {}
	for {
		select {
		case <-ctx.Done():
			stop()
			one.Wait()
			return
		case i := <-chosen:
			stop()
			one.Wait()
			var of context.Context
			of, stop = context.WithCancel(ctx)
			one.Go(func() { p.again(of, i) })
		}
	}
}

// again repeats run i, together with the run that it is compared with.
func (p replayer) again(ctx context.Context, i int) {
	x := &p.results.Runs[i]
	f, err := p.flagsOf(x)
	if err != nil {
		p.send(screen.Unopened{Err: err})
		return
	}
	sc, err := input.LoadScenario(ctx, x.Scenario)
	if err != nil {
		p.send(screen.Unopened{Err: err})
		return
	}
	specs := []string{x.Policy}
	if other := p.beside(x); other != "" {
		specs = append(specs, other)
	}
	var opened *screen.Opened
	f.play(ctx, func(msg any) {
		switch msg := msg.(type) {
		case screen.Opened:
			opened, msg.Title = &msg, x.Scenario
			p.send(msg)
		case screen.Failed:
			p.send(screen.Unopened(msg))
		default:
			p.send(msg)
		}
	}, sc, x.Scenario, specs)
	p.warnings = append(p.warnings, f.warnings...)
	if opened == nil || ctx.Err() != nil {
		return
	}
	if r, err, _ := opened.Runs[0].Timeline.Ended(); err == nil && r != nil && x.Hash != "" &&
		hex.EncodeToString(r.Hash[:]) != x.Hash {
		differs := fmt.Sprintf("%s, seed %d, %s is not the run of the file: another version of spotter or of the scenario made it", x.Scenario, x.Seed, x.Policy)
		p.warnings = append(p.warnings, differs)
		p.send(screen.Noted(differs))
	}
}

// flagsOf returns flags with the prices and the weather of a run.
func (p replayer) flagsOf(x *format.ResultRun) (*tuiFlags, error) {
	f := &tuiFlags{seed: x.Seed, atStory: true}
	return f, f.OfRun(x)
}

// beside returns the policy to show next to that of a run: the baseline of the results, or the
// policy that saves most if the run is one of the baseline. It is empty if there is no other
// policy.
func (p replayer) beside(x *format.ResultRun) string {
	best, most := "", policy.Money(0)
	for i := range p.results.Runs {
		y := &p.results.Runs[i]
		switch {
		case y.Scenario != x.Scenario || y.Case.From != x.Case.From || y.Seed != x.Seed || y.Policy == x.Policy || y.Error != "":
		case y.Policy == p.results.Baseline:
			return y.Policy
		case y.Policy != eval.OnDemand && (best == "" || savings(y) > most):
			best, most = y.Policy, savings(y)
		}
	}
	return best
}
