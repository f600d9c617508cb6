package scratch

import "sync"

// A Pool keeps values from one use to the next, for any number of goroutines. Unlike a sync.Pool,
// it never drops a value: a sync.Pool does so at garbage collections and when a goroutine moves to
// another processor, and the data cached in the value would have to be read again. The zero value
// keeps none yet.
type Pool[T any] struct {
	mu   sync.Mutex
	kept []*T
}

// Get returns the value that was put back last, or a new zero value.
func (p *Pool[T]) Get() *T {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := len(p.kept) - 1
	if last < 0 {
		return new(T)
	}
	x := p.kept[last]
	p.kept[last] = nil
	p.kept = p.kept[:last]
	return x
}

// Put gives a value back.
func (p *Pool[T]) Put(x *T) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kept = append(p.kept, x)
}
