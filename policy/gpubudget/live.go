package gpubudget

import "time"

// An Object is a pod as an API server returns it, with times relative to now.
type Object struct {
	// Start is when its first container started, negative in the past. End is when it ended, if
	// Ended is set; otherwise it still runs.
	Start, End time.Duration
	Ended      bool

	// Devices is the number of devices that it requests, 0 or less if that is unknown.
	Devices float64
}

// An Account is the use of a quota of device-hours.
type Account struct {
	Consumed, Remaining float64
	Tracked             int
	Over                bool
}

// CountObjects returns the account of the objects that exist, as gpu-k8s-operator computes it: the
// use of a deleted object is forgotten. A window of 0 or less means all time. This package itself
// counts with a ledger; see [policy.Budget.LiveObjects] for budgets that count as this function
// does.
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
