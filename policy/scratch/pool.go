package scratch

import "sync"

// A Pool keeps values for reuse. It may be used concurrently. Unlike a sync.Pool, it never drops a
// value: a sync.Pool does so at garbage collections and when a goroutine moves to another
// processor, and the data cached in the value would then have to be read again. The zero value is
// empty.
type Pool[T any] struct {
	mu   sync.Mutex
	kept []*T
}

// Get removes the value that was added last and returns it. If the pool is empty, it returns a new
// zero value.
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

// Put adds a value to the pool.
func (p *Pool[T]) Put(x *T) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kept = append(p.kept, x)
}
