package trace

import (
	"fmt"
	"regexp"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/catalog"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

// scaleChanged is the day from which AWS returns placement scores of 4 to 9 for types of the P
// family, whose scores were low before (recordings of SpotLake; AWS has not announced it).
var scaleChanged = policy.TimeOf(time.Date(2025, 9, 25, 0, 0, 0, 0, time.UTC))

// familyP matches the instance types of that family, such as p4d.24xlarge and p5en.48xlarge.
var familyP = regexp.MustCompile(`^p[0-9]`)

// A scored summarises the placement scores of a trace: the number of markets, the interval, and
// whether the P family has scores from before and from after the change of scale.
type scored struct {
	markets       int
	from, to      policy.Time
	before, after bool
}

// add adds a market.
func (s *scored) add(m *trace.Series) {
	found := false
	for i, score := range m.Score {
		if score < 0 {
			continue
		}
		at := m.At[i]
		if s.markets == 0 && !found || at < s.from {
			s.from = at
		}
		s.to, found = max(s.to, at), true
		if m.Provider == catalog.AWS && familyP.MatchString(m.Type) {
			s.before, s.after = s.before || at < scaleChanged, s.after || at >= scaleChanged
		}
	}
	s.markets += one(found)
}

// scale returns the scale of the scores of the P family, or empty if there are no such scores.
func (s *scored) scale() string {
	day := scaleChanged.Std().Format(time.DateOnly)
	switch {
	case s.before && s.after:
		return "before and since " + day
	case s.before:
		return "before " + day
	case s.after:
		return "since " + day
	}
	return ""
}

// A scoresOf is the summary of placement scores in machine-readable form.
type scoresOf struct {
	Markets int    `json:"markets"`
	From    string `json:"from"`
	To      string `json:"to"`
	Scale   string `json:"p_family_scale,omitempty"`
}

// object returns s in machine-readable form, or nil without scores.
func (s *scored) object() *scoresOf {
	if s.markets == 0 {
		return nil
	}
	return &scoresOf{s.markets, s.from.String(), s.to.String(), s.scale()}
}

// text returns s as text.
func (s *scored) text() string {
	if s.markets == 0 {
		return "none"
	}
	text := fmt.Sprintf("recorded for %d markets from %s to %s", s.markets, s.from.Std().Format(time.DateOnly),
		s.to.Std().Format(time.DateOnly))
	switch scale := s.scale(); {
	case s.before && s.after:
		text += "; those of the P family are of two scales, " + scale
	case scale != "":
		text += "; those of the P family are on the scale " + scale
	}
	return text
}
