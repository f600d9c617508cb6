// Package quiet keeps the terminal from being asked for its colours by commands
// that draw nothing.
//
// The library of the terminal UI asks as soon as it is linked in: in its init, for
// every command, and waits up to five seconds where nobody answers, as under a
// script that only pretends to be a terminal. It does not ask a terminal that says
// it is dumb. Go initialises packages in the order of their paths as soon as what
// they import is, and this one imports nothing but os, so it comes before all
// libraries that import more than it does; see [Restore] for what comes after.
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
