package market

import (
	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/portable"
)

// A meeting contains the counts of the own cluster's observations in a market. The simulator counts
// in the same way.
type meeting struct {
	seen    policy.Experience
	running int64 // number of nodes that run in the market

	// counted is when a refusal was last counted.
	counted policy.Time

	// imported reports whether the counts were imported and nodes were not counted since.
	imported bool
}

// meet updates the counts to now: past observations decay, and the nodes that have run since the
// last update add their hours, at most runningGapMax after a restart.
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

// take counts an event. A refusal less than refusalSpan after the last counted one is not counted.
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
