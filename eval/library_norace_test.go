//go:build !race

package eval

// libraryCut says that only a part of the library is run.
const libraryCut = false
