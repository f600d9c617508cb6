package sim

import (
	"fmt"
	"testing"
)

func TestDbg(t *testing.T) {
	for _, in := range []float64{1, 50, 500} {
		st := mustStage(t, stormy(in))
		for _, p := range specs {
			res := mustRun(t, Config{Stage: st, Policy: mustPolicy(t, p), Forecaster: mustForecaster(t), Seed: 7, Check: true})
			fmt.Printf("%v %-22s bill %v out %v min %d spot %.2f launches %d recl %d notices %d rec %d refus %d drains %d vol %d rec %d ttr %v %v steps %d ev %d warn %v\n", in, p, res.Bill.Short(), res.OutageCost.Short(), res.OutageMinutes, res.SpotShare, res.Launches, res.Reclaims, res.Notices, res.Recommendations, res.Refusals, res.Drains, res.VoluntaryEvictions, res.ReclaimEvictions, res.TimeToReadyP50, res.TimeToReadyP95, res.Decisions, res.Events, res.Warnings)
		}
	}
	n := 0
	var tot Result
	for seed := uint64(1); seed <= 60; seed++ {
		st, err := NewStage(randomWorld(seed))
		if err != nil {
			fmt.Println(seed, err)
			continue
		}
		res := mustRun(t, Config{Stage: st, Policy: mustPolicy(t, specs[seed%6]), Forecaster: mustForecaster(t), Seed: seed})
		n++
		tot.Reclaims += res.Reclaims
		tot.Launches += res.Launches
		tot.Refusals += res.Refusals
		tot.Drains += res.Drains
		tot.JobsDone += res.JobsDone
		tot.JobsMissed += res.JobsMissed
		tot.OutageMinutes += res.OutageMinutes
		tot.VoluntaryEvictions += res.VoluntaryEvictions
		tot.ReclaimEvictions += res.ReclaimEvictions
	}
	fmt.Printf("%d %+v\n", n, tot)
}
