// Package keep stores the record of a running controller: every step, in segments that readers find
// within minutes, in a folder and, if one is configured, in an S3 bucket.
//
// Recording never delays a step. Record copies the decision into a bounded queue; one goroutine
// writes it, and another one uploads it. Steps that cannot be written wait in the queue. When the
// queue is full, the newest steps are dropped: the record then has a gap in the step numbers, and
// Err returns the reason.
//
// A segment is complete after Config.Complete, and each of its files is synced to the disk before
// it gets its final name. So a crash loses only the steps of the segment that is being written, and
// never a step that readers could find.
package keep
