package screen

import (
	"fmt"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// Grown is the message that a record has gone on: Run is the whole of it anew.
type Grown struct{ Run Run }

// Looked is the message that somebody has looked for more of a record, when, and what
// kept it from being read; nil when nothing did.
type Looked struct {
	At  policy.Time
	Err error
}

// A live is what is known of a record that goes on.
type live struct {
	on bool

	// at is when it was last looked at, zero before; trouble is why it could not be
	// read then.
	at      policy.Time
	trouble error
}

// silentAfter is the age of the last decision from which a record seems to have
// stopped: a controller decides every ten minutes at least, and five may pass until
// readers find it.
const silentAfter = 20 * time.Minute

func (l *live) silent(last policy.Time) bool { return l.at != 0 && l.at.Sub(last) > silentAfter }

// says tells how old the last decision is, and what is in the way of newer ones.
func (l *live) says(last policy.Time) string {
	text := "record of a controller"
	if l.at != 0 {
		text += fmt.Sprintf(", last decision %s ago", spell(max(l.at.Sub(last), 0).Truncate(time.Second)))
	}
	if l.trouble != nil {
		text += " · not read: " + l.trouble.Error()
	}
	return text
}

// grow shows the record as it is now. Who looked at its end goes on doing so; what is
// chosen, filtered and inspected stays.
func (m *Model) grow(g Grown) {
	if len(m.shows) != 1 {
		return
	}
	before := m.shows[0]
	atEnd := m.clock.now >= before.to
	s := newShow(g.Run)
	if s.warmup == before.warmup {
		s.entry = before.entry
	} else {
		m.inspected = nil // decisions are known by their place since the begin, which is another
	}
	m.shows[0] = s
	if atEnd {
		m.clock.now, m.clock.playing = s.to, false
	}
	m.clock.now = max(m.clock.now, s.warmup)
	m.measure()
}
