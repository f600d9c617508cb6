package engine

// A Topic publishes values of one kind of event, such as "a pod was bound". Subscribers subscribe
// during the set-up of a run.
type Topic[T any] struct{ subscribers []func(T) }

// Subscribe registers f, which is called with every value published from now on, after earlier
// subscribers.
func (t *Topic[T]) Subscribe(f func(T)) { t.subscribers = append(t.subscribers, f) }

// Publish calls all subscribers in the order of their subscriptions.
func (t *Topic[T]) Publish(x T) {
	for _, f := range t.subscribers {
		f(x)
	}
}
