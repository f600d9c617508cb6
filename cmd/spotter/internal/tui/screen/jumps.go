package screen

import (
	"github.com/charmbracelet/bubbles/key"
	tea "github.com/charmbracelet/bubbletea"

	"github.com/spotter-dev/spotter/eval/timeline"
)

// A jumps handles the keys with which the viewer jumps to events: g or G and a letter. Every method
// returns a message, which may be empty.
type jumps struct {
	play      *playback
	selection *selection

	// prefix is the key that the next key completes, or 0.
	prefix rune

	// last is the key of the last jump.
	last tea.KeyMsg
}

// begin handles g or G.
func (j *jumps) begin(prefix rune) string {
	j.prefix = prefix
	return "o outage · r reclaim · n notice · d decision that moves something · s the story"
}

// again repeats the last jump, forward after g and back after G.
func (j *jumps) again(prefix rune) string {
	j.prefix = prefix
	return j.complete(j.last)
}

// complete handles the key after g or G.
func (j *jumps) complete(k tea.KeyMsg) string {
	by := 1
	if j.prefix == 'G' {
		by = -1
	}
	j.prefix = 0
	if key.Matches(k, keyOutage, keyReclaim, keyNotice, keyDecision) {
		j.last = k
	}
	switch {
	case key.Matches(k, keyOutage):
		return j.step(by, "outage", timeline.OutageBegan)
	case key.Matches(k, keyNotice):
		return j.step(by, "notice", timeline.Noticed)
	case key.Matches(k, keyStory):
		return j.toStory()
	case key.Matches(k, keyReclaim):
		return j.step(by, "reclaim", timeline.Reclaimed)
	case key.Matches(k, keyDecision):
		return j.play.stepDecision(by, "decision that moves something", moving...)
	case key.Matches(k, keyStart) && k.Runes[0] == 'g':
		j.play.seek(j.play.shown().from)
	case key.Matches(k, keyStart):
		j.play.seek(j.play.shown().to)
	case key.Matches(k, keyBack):
	default:
		return "after g or G comes o, r, n, d or s"
	}
	return ""
}

// toStory jumps to the story and selects its subject.
func (j *jumps) toStory() string {
	if note := j.play.toStory(); note != "" {
		return note
	}
	line := j.play.shown().Timeline
	if i, ok := line.NextEvent(j.play.story.at-1, timeline.OutageBegan, timeline.Reclaimed); ok {
		e := line.Event(i)
		j.selection.follow(&j.play.shown().inventory, &e)
	}
	return "paused at the story: enter says why, space plays on"
}

// step jumps to an event and selects its subject.
func (j *jumps) step(by int, what string, kinds ...timeline.Kind) string {
	e, note := j.play.stepEvent(by, what, kinds...)
	if e != nil {
		j.selection.follow(&j.play.shown().inventory, e)
	}
	return note
}
