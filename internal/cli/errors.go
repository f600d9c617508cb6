package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
)

// The exit codes.
const (
	ExitOK      = 0
	ExitFailed  = 1 // a gate or a check failed
	ExitInvalid = 2 // the command line or an input is invalid
	ExitError   = 3 // an error occurred while running
)

// An InvalidError is an error in the command line or in an input.
type InvalidError struct {
	err error

	// next explains what the user can do about it.
	next string
}

func (w *InvalidError) Error() string { return w.err.Error() }

func (w *InvalidError) Unwrap() error { return w.err }

// Invalid returns err as an InvalidError. If err already wraps one, it is returned unchanged,
// because its advice is more specific.
func Invalid(err error, next string) error {
	if inner := (*InvalidError)(nil); errors.As(err, &inner) {
		return err
	}
	return &InvalidError{err, next}
}

// FirstLine returns the first line of an error message.
func FirstLine(err error) string {
	first, _, _ := strings.Cut(strings.TrimSpace(err.Error()), "\n")
	return first
}

// ErrGate is wrapped by the error of a command that ran completely with a failed gate.
var ErrGate = errors.New("a gate failed")

// FailedGates returns the error for the failed ones of n gates. It includes their descriptions
// unless shown is true.
func FailedGates(n int, failed []string, shown bool) error {
	text := fmt.Sprintf("%d of %d failed", len(failed), n)
	if !shown {
		text += "\n" + strings.Join(failed, "\n")
	}
	return fmt.Errorf("%w: %s", ErrGate, text)
}

// ErrCheck is wrapped by the error of a command that ran completely with a failed check.
var ErrCheck = errors.New("a check failed")

// Report writes err for the user and returns the exit code.
func Report(w io.Writer, err error) int {
	if err == nil {
		return ExitOK
	}
	fmt.Fprintf(w, "spotter: %s\n", Words(err))
	var call *InvalidError
	var ended *StoppedError
	switch f, known := recognise(err); {
	case errors.Is(err, ErrGate), errors.Is(err, ErrCheck):
		return ExitFailed
	case errors.As(err, &call):
		fmt.Fprintf(w, "%s\n", call.next)
		return ExitInvalid
	case errors.As(err, &ended):
		fmt.Fprintf(w, "%s\n", ended.Next)
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(w, "it was interrupted and wrote nothing; run it again")
	case known:
		fmt.Fprintf(w, "%s\n", f.next)
		return ExitInvalid
	default:
		fmt.Fprintln(w,
			"this is a fault of the program or of the machine: repeat the same command, and report it with this output if it comes again")
	}
	return ExitError
}

// A StoppedError is the error of work that was stopped early. Next explains what happened to it and
// how to continue.
type StoppedError struct {
	Err  error
	Next string
}

func (b *StoppedError) Error() string { return b.Err.Error() }

// Incomplete returns the error of a command that was stopped and wrote the finished part.
func Incomplete(why string) error {
	return &StoppedError{Err: errors.New(why),
		Next: "what is finished was written, marked as incomplete; the same call does all of it"}
}

func (b *StoppedError) Unwrap() error { return b.Err }
