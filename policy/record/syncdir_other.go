//go:build !unix

package record

// syncDir does nothing: these systems put the names of a folder on the disk by
// themselves, and have no call for it.
func syncDir(string) error { return nil }
