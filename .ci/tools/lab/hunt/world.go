package hunt

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// A plan is a scenario before it is written: what shrinks piece by piece.
type plan struct {
	length    time.Duration
	intensity float64
	slots     int // 0 leaves them to the market

	minVCPU, maxVCPU int
	settle           time.Duration // consolidateAfter
	services         []service
	batch            *batch
	faults           []fault
}

// A service is a Deployment. Between burst and burst+burstLength it has peak replicas.
type service struct {
	replicas, peak     int
	burst, burstLength time.Duration
	cpu                int // thousandths
	startup, penalty   time.Duration
	spread             spread
	available          int // percent that its PDB keeps, 0 without one
}

// A spread says over what the pods of a service are spread, and whether they must be.
type spread struct {
	key  string // empty for none
	must bool
}

// A batch is a Job that is released every six hours.
type batch struct {
	pods                 int
	duration, checkpoint time.Duration // checkpoint 0 for none
}

// A fault is one of the Scenario.
type fault struct {
	kind          string
	at, length    time.Duration
	capacity      string
	share, factor float64
	zone          int
}

// decode returns the scenario that v encodes.
func decode(v vector, length time.Duration) plan {
	p := plan{
		length: length, intensity: math.Round(span(v[atIntensity], 1, intensityMost)),
		minVCPU: choose(v[atSizes], 2, 4, 4, 8), maxVCPU: choose(v[atSizes], 8, 8, 16, 16),
		settle: spanTime(v[atSettle], 30*time.Second, time.Hour, 30*time.Second),
	}
	if v[atSlots] < 0.6 {
		p.slots = int(span(v[atSlots]/0.6, slotsLeast, slotsMost))
	}
	for i := range choose(v[atServices], 1, 2, 3) {
		p.services = append(p.services, v.service(i, length))
	}
	if v[atBatch] > 0.6 {
		p.batch = &batch{pods: 2 + int((v[atBatch]-0.6)*10), duration: 2 * time.Hour}
		if v[atCheckpoint] < 0.7 {
			p.batch.checkpoint = spanTime(v[atCheckpoint]/0.7, 5*time.Minute, time.Hour, 5*time.Minute)
		}
	}
	p.faults = v.faults(length)
	return p
}

// service decodes number i of them, which differ in size.
func (v vector) service(i int, length time.Duration) service {
	s := service{
		replicas:  int(span(v[atReplicas], replicasLeast, replicasMost)) + i,
		cpu:       choose(v[atCPU], 500, 1000, 1500, 2000),
		startup:   spanTime(v[atStartup], startupLeast, startupMost, 10*time.Second),
		penalty:   spanTime(v[atPenalty], penaltyLeast, penaltyMost, time.Hour),
		available: choose(v[atAvailable], 0, 50, 60, 70, 80, 90),
		spread: choose(v[atSpread], spread{}, spread{"topology.kubernetes.io/zone", false},
			spread{"topology.kubernetes.io/zone", true},
			spread{"karpenter.sh/capacity-type", false}, spread{"kubernetes.io/hostname", true}),
	}
	s.peak = s.replicas
	if v[atBurst] > 0.2 {
		s.peak = int(math.Round(float64(float64(s.replicas) * span((v[atBurst]-0.2)/0.8, 1.3, burstMost))))
		s.burst, s.burstLength = max(v.begin(atBurstBegin, length), 15*time.Minute), spanTime(v[atBurstLength], time.Hour,
			8*time.Hour, 30*time.Minute)
	}
	return s
}

// begin is a time in the first nine tenths of a length, on a quarter of an hour.
func (v vector) begin(at int, length time.Duration) time.Duration {
	return time.Duration(float64(v[at] * 0.9 * float64(length))).Truncate(15 * time.Minute)
}

// faults decodes those of the Scenario, by time.
func (v vector) faults(length time.Duration) []fault {
	var all []fault
	share := math.Round(float64((shareLeast+float64(v[atShare]*(1-shareLeast)))*20)) / 20
	zone := choose(v[atZone], 0, 0, 0, 1, 2)
	every := func(n, at int, f fault) {
		for i := range n {
			gap := length / time.Duration(n)
			f.at = (v.begin(at, gap) + gap*time.Duration(i)).Truncate(15 * time.Minute)
			all = append(all, f)
		}
	}
	short := fault{kind: "squeeze", length: spanTime(v[atShortageLength], shortLeast, shortLonger, 15*time.Minute),
		share: share, zone: zone}
	most := int(float64(shortMost*float64(length)) / float64(short.length))
	every(min(int(v[atShortages]*8), most), atShortageBegin, short)
	every(int(v[atStorms]*5), atStormBegin, fault{kind: "squeeze", length: 10 * time.Minute, share: share, zone: zone})
	if v[atRamp] > 0.4 {
		factor := math.Round(float64(span((v[atRamp]-0.4)/0.6, 1.2, rampMost)*10)) / 10
		all = append(all, fault{kind: "price-ramp", at: v.begin(atRampBegin, length),
			length: spanTime(v[atRampLength], rampLeast, length, time.Hour), capacity: "spot", factor: factor})
	}
	if v[atSlow] > 0.5 {
		all = append(all, fault{kind: "slow-nodes", length: length, factor: math.Round(float64(span((v[atSlow]-0.5)*2, 1.2,
			slowMost)*10)) / 10})
	}
	if v[atRefused] > 0.6 {
		all = append(all, fault{kind: "on-demand-refused", at: v.begin(atShortageBegin, length),
			length: spanTime((v[atRefused]-0.6)/0.4, time.Hour/2, refusedMost, 15*time.Minute), zone: 1})
	}
	if v[atLate] > 0.5 {
		all = append(all, fault{kind: "late-notice", length: length, share: math.Round(float64((v[atLate]-0.5)*40)) / 20})
	}
	all = slices.DeleteFunc(all, func(f fault) bool { return f.kind == "late-notice" && f.share == 0 })
	for i := range all {
		all[i].length = min(all[i].length, length-all[i].at)
	}
	slices.SortStableFunc(all, func(a, b fault) int { return cmp.Compare(a.at, b.at) })
	return all
}
