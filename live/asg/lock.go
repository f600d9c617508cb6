package asg

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

// Locks let one call at a time decide about a group and write to it, so that no two calls
// decide on the same read. Groups do not wait for each other.
type locks struct {
	mu     sync.Mutex
	byName map[string]*groupLock
}

// A groupLock is held while its channel is full. It is dropped once it has no users.
type groupLock struct {
	held  chan struct{}
	users int
}

// lock waits for the locks of groups until ctx ends. A call that holds one takes no other.
func (l *locks) lock(ctx context.Context, groups ...string) (unlock func(), err error) {
	groups = slices.Compact(slices.Sorted(slices.Values(groups))) // in one order, against deadlocks
	var held []string
	unlock = func() {
		for _, name := range held {
			l.release(name, true)
		}
	}
	for _, name := range groups {
		select {
		case l.use(name).held <- struct{}{}:
			held = append(held, name)
		case <-ctx.Done():
			l.release(name, false)
			unlock()
			return nil, fmt.Errorf("waiting for other work on the group %s: %w", name, ctx.Err())
		}
	}
	return unlock, nil
}

// use returns the lock of a group, with one user more.
func (l *locks) use(name string) *groupLock {
	l.mu.Lock()
	defer l.mu.Unlock()
	x := l.byName[name]
	if x == nil {
		x = &groupLock{held: make(chan struct{}, 1)}
		l.byName[name] = x
	}
	x.users++
	return x
}

// release ends the use of a lock, which was held or only waited for.
func (l *locks) release(name string, held bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	x := l.byName[name]
	if held {
		<-x.held
	}
	if x.users--; x.users == 0 {
		delete(l.byName, name)
	}
}
