package market

import (
	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/portable"
)

// A meeting has the counts of the own cluster's observations in a market, counted as the simulator
// does.
type meeting struct {
	seen    policy.Experience
	running int64 // nodes

	// counted is when a refusal was last counted.
	counted policy.Time

	// imported means that nodes were not counted since it was read back.
	imported bool
}

// meet brings the experience up to now: what was seen decays, and the nodes that
// ran meanwhile add their hours. After a restart they add runningGapMax at most.
func (m *meeting) meet(now policy.Time) {
	e := &m.seen
	if e.At == 0 {
		e.At = now
	}
	dt := now.Sub(e.At)
	if dt <= 0 {
		return
	}
	ran := dt
	if m.imported {
		ran, m.imported = min(dt, runningGapMax), false
	}
	const ln2 = 0.6931471805599453
	keep := portable.Exp(-ln2 * dt.Hours() / policy.ExperienceHalfLife.Hours())
	e.Launches *= keep
	e.Refusals *= keep
	e.Reclaims *= keep
	e.NodeHours = float64(e.NodeHours*keep) + float64(float64(m.running)*ran.Hours())
	e.At = now
}

// take counts an event. Refusals within refusalSpan of the last that was counted are one
// with it.
func (m *meeting) take(e backend.Event) {
	m.meet(e.At)
	switch e.Kind {
	case backend.MetLaunch:
		m.seen.Launches++
	case backend.MetRefusal:
		if m.counted != 0 && e.At.Sub(m.counted) < refusalSpan {
			return
		}
		m.counted = e.At
		m.seen.Refusals++
		m.seen.Refused = max(m.seen.Refused, e.At)
	case backend.MetReclaim:
		m.seen.Reclaims++
		m.seen.Reclaimed = max(m.seen.Reclaimed, e.At)
	}
}
