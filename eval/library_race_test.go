//go:build race

package eval

// libraryCut says that only a part of the library is run, since the race
// detector makes everything some ten times slower.
const libraryCut = true
