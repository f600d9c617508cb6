package hunt

import (
	"time"

	"github.com/spotter-dev/spotter/policy/portable"
)

// The bounds of the search. What a recording bounds is derived from it:
const (
	// intensityMost times the hazard of the worst band of the Spot Instance Advisor (30% a
	// month, 4.9e-4 an hour) is 0.15 an hour. Of nine zones of V100 over 45 days the
	// calmest had 0.10 and the worst 1.39 (SkyPilot, 2023).
	intensityMost = 300

	// shortMost is the part of the time in which no zone of us-east-1 had a node in the same
	// recording. Outages lasted as Weibull(0.71, 1.32 h): the 95th percentile is 6.2 h, and the
	// median 0.8 h.
	shortMost               = 0.287
	shortLeast, shortLonger = 30 * time.Minute, 6 * time.Hour

	// rampMost lifts the median ratio of Spot to on demand (0.32, us-east-1 2021) to the greatest
	// that was recorded since 2017 (1.285, sa-east-1 2020). Excursions above 0.9 last 6 h at least
	// (5th percentile, us-east-1 2022–23).
	rampMost  = 4.0
	rampLeast = 6 * time.Hour

	// burstMost is the greatest hour of a day over its median hour, 99th percentile of 4,894 days
	// of 42 fleets (Snowflake's demand of VMs, 2021–22).
	burstMost = 4.55

	// shareLeast is the least part of 16-node gangs' drops that took all of them at once.
	shareLeast = 0.36

	// slotsLeast follows from tries that requested 16 nodes at once: fewer came up in up to
	// 87% of them (13 zones of GCP, 2025).
	slotsLeast, slotsMost = 4, 50
)

// What no recording bounds is as in the embedded scenarios.
const (
	startupLeast, startupMost = 20 * time.Second, 10 * time.Minute
	refusedMost               = 3 * time.Hour
	slowMost                  = 3.0
	replicasLeast             = 2
	replicasMost              = 10

	// penaltyLeast is that of priority class low, penaltyMost that of the scenario squeeze.
	penaltyLeast, penaltyMost = time.Hour, 15 * time.Hour
)

// A vector is what is searched: numbers in [0, 1).
type vector []float64

// The places of a vector.
const (
	atIntensity = iota
	atSlots
	atSizes
	atSettle
	atServices
	atReplicas
	atCPU
	atStartup
	atSpread
	atAvailable
	atPenalty
	atBurst
	atBurstBegin
	atBurstLength
	atShortages
	atShortageLength
	atShortageBegin
	atShare
	atZone
	atStorms
	atStormBegin
	atRamp
	atRampBegin
	atRampLength
	atSlow
	atRefused
	atLate
	atBatch
	atCheckpoint
	dims
)

// span maps a part of 1 between two ends, by equal factors.
func span(part, from, to float64) float64 {
	return float64(from * portable.Exp(float64(part*portable.Log(to/from))))
}

// spanTime is span of lengths of time, rounded to a step.
func spanTime(part float64, from, to, step time.Duration) time.Duration {
	return time.Duration(span(part, float64(from), float64(to))).Round(step)
}

// choose returns the one of values at a part of 1.
func choose[T any](part float64, values ...T) T {
	return values[min(int(part*float64(len(values))), len(values)-1)]
}
