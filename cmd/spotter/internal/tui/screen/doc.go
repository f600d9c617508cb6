// Package screen implements the screen of `spotter tui`: a run that can be played, paused, stepped
// and scrubbed, alone or next to another under the same weather.
//
// [Model] is a bubbletea model. Update changes it in response to a message, such as a key, the
// mouse, a tick or a run that was opened. View draws the current state; it neither changes anything
// nor reads the time. Data to draw is read from a [timeline.Timeline] in Update, so that a screen
// is a function of the messages before it.
//
// A message is handled by the part that it concerns: [playback] has the runs and the time shown,
// [viewport] what is visible, and [selection] what is selected in the panes. Each [pane] has a
// file; an [inspector] shows the facts about one subject.
package screen
