// Package screen is the screen of `spotter tui`: a run that can be played, paused,
// stepped and scrubbed, alone or next to another under the same weather.
//
// [Model] is a state machine of the bubbletea kind. Update changes it by what a
// message says, a key, the mouse, a tick, a run that was opened; View draws what
// is there and neither changes anything nor asks the time. What is drawn is read
// from a [timeline.Timeline] in Update, so that a screen is a function of the
// messages that came before it.
//
// A message goes to the part that it is for: [playback] has the runs and the shown
// time, [viewport] what of them is on the screen, [selection] what is chosen in the
// panes. Each [pane] has a file; an [inspector] says what is known of one subject.
package screen
