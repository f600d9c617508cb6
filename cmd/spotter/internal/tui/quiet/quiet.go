// Package quiet prevents commands that draw nothing from querying the terminal for its colours.
//
// The library of the terminal UI sends this query in its init, for every command of a program that
// links it. It waits up to five seconds for a response, which a script that only pretends to be a
// terminal does not send. It does not query a terminal with TERM=dumb. Go initialises packages in
// the order of their paths as soon as the packages that they import are initialised. This package
// imports only os, so it is initialised before all libraries that import more; see [Restore] for
// the rest.
package quiet

import "os"

// term is the original value of TERM, and set reports whether it was set.
var term, set = os.LookupEnv("TERM")

func init() {
	if set {
		_ = os.Setenv("TERM", "dumb") // if that fails, the terminal is queried, which is harmless
	}
}

// Restore restores TERM. A package that imports the library must call it in its own init, which
// runs after that of the library.
func Restore() {
	if set {
		_ = os.Setenv("TERM", term)
	}
}
