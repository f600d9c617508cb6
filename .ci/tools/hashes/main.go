// Command hashes plays weeks and prints the hashes of what happened in them, as
// `spotter sim` does: SCENARIO POLICY SEED INTENSITY, four words a week. It is the
// simulator and the policies alone, without what live mode and the clouds bring, so that
// it is built for another machine in a tenth of the time.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"

	"github.com/spotter-dev/spotter/models"
	"github.com/spotter-dev/spotter/policy/registry"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/scenarios/trace"
	"github.com/spotter-dev/spotter/sim"
)

func main() {
	args := os.Args[1:]
	if len(args) == 0 || len(args)%4 != 0 {
		fmt.Fprintln(os.Stderr, "usage: hashes SCENARIO POLICY SEED INTENSITY …")
		os.Exit(2)
	}
	for ; len(args) > 0; args = args[4:] {
		if err := play(args[0], args[1], args[2], args[3]); err != nil {
			fmt.Fprintf(os.Stderr, "hashes %q: %v\n", args[:4], err)
			os.Exit(3)
		}
	}
}

func play(scenario, spec, seed, intensity string) error {
	n, err := strconv.ParseUint(seed, 10, 64)
	if err != nil {
		return err
	}
	times, err := strconv.ParseFloat(intensity, 64)
	if err != nil {
		return err
	}
	sc, err := scenarios.Load(scenario)
	if err != nil {
		return err
	}
	tr, err := trace.Synthetic()
	if err != nil {
		return err
	}
	w, err := scenarios.Bind(sc, tr, scenarios.BindOptions{Intensity: &times, From: tr.From})
	if err != nil {
		return err
	}
	p, err := registry.New(spec, registry.Options{})
	if err != nil {
		return err
	}
	stage, err := sim.Prepare(w)
	if err != nil {
		return err
	}
	forecaster, err := models.NewClosedForm(models.DefaultConfig())
	if err != nil {
		return err
	}
	r, err := sim.Run(context.Background(), sim.Config{Prepared: stage, Policy: p, Forecaster: forecaster, Seed: n})
	if err != nil {
		return err
	}
	fmt.Printf("weather %x\nhash %x\n", r.Weather, r.Hash)
	return nil
}
