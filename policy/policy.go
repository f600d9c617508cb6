package policy

// A Policy decides what to do in a cluster.
//
// Decide is a pure function of its arguments: it does not modify them, and equal arguments give
// equal plans. It cannot fail: if no market can fill a shortage, the plan has fewer launches than
// required, and the next snapshot contains the shortage again.
type Policy interface {
	// Name returns the name of the policy in the registry, with the parameters that differ from
	// their defaults.
	Name() string

	Decide(s *Snapshot, m Memory) (Plan, Memory)
}

// DefaultStep is the default time between two decisions, in milliseconds.
const DefaultStep Time = 10 * 60 * 1000

// NextStep returns the first time after now on the UTC grid with the given step, which must be
// positive.
func NextStep(now, step Time) Time { return now - now%step + step }
