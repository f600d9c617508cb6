package screen

import (
	"fmt"
	"time"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/tui/draw"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/figures"
)

// Grown is the message that a record has grown: Run is the whole record, read again.
type Grown struct{ Run Run }

// Looked is the message that a record was checked for additions: At is when, and Err why it could
// not be read, nil if it could.
type Looked struct {
	At  policy.Time
	Err error
}

// A live is what is known of a record that a controller still writes.
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

// state is how the end of the record is marked: as live, or as stale where the last
// decision is too old, in either case with its age.
func (l *live) state(last policy.Time) draw.Part {
	age := ""
	if l.at != 0 {
		age = ", " + l.age(last) + " ago"
	}
	if l.trouble != nil || l.silent(last) {
		return draw.Strong(" ▲ stale"+age+"  ", draw.Warn)
	}
	return draw.Strong(" ● live"+age+"  ", draw.Good)
}

// age is how old the last decision was when the record was last looked at.
func (l *live) age(last policy.Time) string {
	return figures.Duration(max(l.at.Sub(last), 0).Truncate(time.Second))
}

func (l *live) silent(last policy.Time) bool { return l.at != 0 && l.at.Sub(last) > silentAfter }

// says returns how old the last decision is, and what is in the way of newer ones.
func (l *live) says(last policy.Time) string {
	text := "record of a controller"
	if l.at != 0 {
		text += fmt.Sprintf(", last decision %s ago", l.age(last))
	}
	if l.trouble != nil {
		text += " · not read: " + l.trouble.Error()
	}
	return text
}
