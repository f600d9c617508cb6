//go:build !unix

package record

// syncDir does nothing: these systems write the entries of a folder to disk by themselves, and have
// no call to request it.
func syncDir(string) error { return nil }
