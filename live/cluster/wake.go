package cluster

// wakesMax is the maximum number of waiting wakes; further ones are dropped.
const wakesMax = 64

// A wakeQueue contains reasons for requesting a step soon. It needs no lock.
type wakeQueue chan string

// wake requests a step soon, unless the queue is full.
func (q wakeQueue) wake(reason string) {
	select {
	case q <- reason:
	default:
	}
}

// Wakes returns a channel that receives the reason of each request for a step, as one word.
func (o *Observer) Wakes() <-chan string { return o.wakes }

// Wake requests a step soon.
func (o *Observer) Wake(reason string) { o.wakes.wake(reason) }
