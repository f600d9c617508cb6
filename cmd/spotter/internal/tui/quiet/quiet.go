// Package quiet prevents commands that draw nothing from querying the terminal for its colours.
//
// The library of the terminal UI sends this query as soon as it is linked in: in its init, for
// every command. It waits up to five seconds for an answer, which a script that only pretends to be
// a terminal does not send. It does not query a terminal that says it is dumb. Go initialises
// packages in the order of their paths as soon as the packages that they import are initialised.
// This package imports only os, so it comes before all libraries that import more than it does; see
// [Restore] for the rest.
package quiet

import "os"

// term is what TERM was, and set whether it was.
var term, set = os.LookupEnv("TERM")

func init() {
	if set {
		_ = os.Setenv("TERM", "dumb") // where that fails the terminal is asked, and nothing else is wrong
	}
}

// Restore sets TERM to what it was. Whoever imports the library calls it in an
// init of its own, which runs after the library's.
func Restore() {
	if set {
		_ = os.Setenv("TERM", term)
	}
}
