package engine

// A Topic is a kind of thing that happens, such as "a pod was bound". Whoever wants to know
// subscribes while a run is put together.
type Topic[T any] struct{ subscribers []func(T) }

// Subscribe has f called with everything that is published from now on, after those who
// subscribed before.
func (t *Topic[T]) Subscribe(f func(T)) { t.subscribers = append(t.subscribers, f) }

// Publish calls all who subscribed.
func (t *Topic[T]) Publish(x T) {
	for _, f := range t.subscribers {
		f(x)
	}
}
