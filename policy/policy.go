package policy

// A Policy turns what is known into what to do.
//
// Decide is a function of its arguments: it changes neither, and the same
// arguments give the same plan. It cannot fail: a shortage that no market can
// fill yields a plan with fewer launches than wanted, and the next snapshot
// shows the shortage again.
type Policy interface {
	// Name is the name under which the registry knows the policy, with the
	// parameters that differ from their defaults.
	Name() string

	Decide(s *Snapshot, m Memory) (Plan, Memory)
}

// DefaultStep is the usual time between two decisions in milliseconds.
const DefaultStep Time = 10 * 60 * 1000

// NextStep returns the first instant after now on the UTC grid of step, which
// is positive.
func NextStep(now, step Time) Time { return now - now%step + step }
