package gpubudget

import "time"

// An Object is a pod as an API server shows it, with times seen from now.
type Object struct {
	// Start is when its first container started, below zero in the past. End is
	// when it ended where Ended says so; else it still runs.
	Start, End time.Duration
	Ended      bool

	// Devices is what it requests, 0 or less when that is not known.
	Devices float64
}

// An Account is what was used of a quota of device-hours.
type Account struct {
	Consumed, Remaining float64
	Tracked             int
	Over                bool
}

// CountObjects accounts for the objects that are there, as gpu-k8s-operator
// does: what is not listed any more was never used. A window of 0 or less is
// all time. The ledger is what this package counts with itself; see
// [policy.Budget.LiveObjects] for budgets that want it like this.
func CountObjects(window time.Duration, quota float64, objects []Object) Account {
	a := Account{Tracked: len(objects)}
	for i := range objects {
		a.Consumed += objects[i].hours(window)
	}
	a.Remaining = max(0, quota-a.Consumed)
	a.Over = a.Consumed >= quota
	return a
}

// hours returns the device-hours of o within the window that ends now.
func (o *Object) hours(window time.Duration) float64 {
	start, end := o.Start, time.Duration(0)
	if window > 0 {
		start = max(start, -window)
	}
	if o.Ended {
		end = min(end, o.End)
	}
	if o.Devices <= 0 || end <= start {
		return 0
	}
	return float64(o.Devices * (end - start).Hours())
}
