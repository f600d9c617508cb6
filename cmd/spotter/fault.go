package main

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// The exit codes.
const (
	exitGood  = 0
	exitGate  = 1 // a gate or a check failed
	exitWrong = 2 // the call or an input is wrong
	exitBroke = 3 // it broke while running
)

// A wrongCall is a fault of the call or of an input.
type wrongCall struct {
	err error

	// next says what the user can do about it.
	next string
}

func (w *wrongCall) Error() string { return w.err.Error() }

func (w *wrongCall) Unwrap() error { return w.err }

// wrong returns err as a fault of the call. One that knows better already what
// to do stays as it is.
func wrong(err error, next string) error {
	if inner := (*wrongCall)(nil); errors.As(err, &inner) {
		return err
	}
	return &wrongCall{err, next}
}

// errGate means that everything ran and a gate was not met.
var errGate = errors.New("a gate was not met")

// errCheck means that everything ran and a check failed.
var errCheck = errors.New("a check failed")

// tell writes err for a person and returns the exit code that it means.
func tell(w io.Writer, err error) int {
	if err == nil {
		return exitGood
	}
	fmt.Fprintf(w, "spotter: %v\n", err)
	var call *wrongCall
	var ended *brokenOff
	switch {
	case errors.Is(err, errGate), errors.Is(err, errCheck):
		return exitGate
	case errors.As(err, &call):
		fmt.Fprintf(w, "%s\n", call.next)
		return exitWrong
	case errors.As(err, &ended):
		fmt.Fprintf(w, "%s\n", ended.next)
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(w, "it was interrupted and wrote nothing; run it again")
	default:
		fmt.Fprintln(w, "this is a fault of the program or of the machine: repeat the same command, and report it with this output if it comes again")
	}
	return exitBroke
}
