//go:build !unix

package keep

import "os"

// lock opens the file only: these systems have no lock in the standard library
// that ends with its process, and one that outlives it would be worse than
// none.
func lock(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
}
