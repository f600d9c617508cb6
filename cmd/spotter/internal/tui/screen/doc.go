// Package screen is the screen of `spotter tui`: a run that can be played, paused,
// stepped and scrubbed, alone or beside another under the same weather.
//
// [Model] is a state machine of the bubbletea kind. Update changes it by what a
// message says, a key, the mouse, a tick, a run that was opened; View draws what
// is there and neither changes anything nor asks the time. What is drawn is read
// from a [timeline.Timeline] in Update, so that a screen is a function of the
// messages that came before it.
package screen
