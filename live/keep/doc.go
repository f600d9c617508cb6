// Package keep keeps the record of a running controller: every step, in segments
// that readers find within minutes, in a folder and, where one is named, in a
// bucket of S3.
//
// Recording never holds up a step. Record copies what was decided into a bounded
// queue, a goroutine writes it, and another one uploads. What cannot be written
// waits in the queue; when that is full the newest steps are left out, which the
// record shows as a gap in their numbers, and Err says why.
//
// A segment is complete after Config.Complete, and every file of it is on the disk
// before it has its name. So a crash costs the steps of the segment being written
// and never one that readers could find.
package keep
