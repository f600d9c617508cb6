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

// A live is the state of a record that a controller still writes.
type live struct {
	on bool

	// at is when the record was last checked, or zero; trouble is the error of that check.
	at      policy.Time
	trouble error
}

// silentAfter is the age of the last decision from which a record is considered stale: a controller
// decides at least every ten minutes, and a decision may become visible five minutes later.
const silentAfter = 20 * time.Minute

// state returns the mark at the end of the record: live, or stale if the last decision is too old,
// and its age.
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

// age returns the age of the last decision when the record was last checked.
func (l *live) age(last policy.Time) string {
	return figures.Duration(max(l.at.Sub(last), 0).Truncate(time.Second))
}

func (l *live) silent(last policy.Time) bool { return l.at != 0 && l.at.Sub(last) > silentAfter }

// says returns the age of the last decision, and the error that prevents reading newer ones.
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
