package cluster

// wakesMax is how many wakes may wait for the controller; further ones add nothing.
const wakesMax = 64

// A wakeQueue holds the reasons for which a step is wanted soon. It needs no lock.
type wakeQueue chan string

// wake requests a step soon, unless enough requests wait.
func (q wakeQueue) wake(reason string) {
	select {
	case q <- reason:
	default:
	}
}

// Wakes says when a step is wanted soon, and why in one word.
func (o *Observer) Wakes() <-chan string { return o.wakes }

// Wake requests a step soon.
func (o *Observer) Wake(reason string) { o.wakes.wake(reason) }
