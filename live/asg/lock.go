package asg

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

// Locks ensure that only one call at a time decides about a group and writes to it, so that no two
// calls decide on the same read. Different groups do not block each other.
type locks struct {
	mu     sync.Mutex
	byName map[string]*groupLock
}

// A groupLock is held while its channel is full. It is deleted once it has no users.
type groupLock struct {
	held  chan struct{}
	users int
}

// lock acquires the locks of groups; it waits until ctx ends. A caller that holds a lock must not
// acquire another.
func (l *locks) lock(ctx context.Context, groups ...string) (unlock func(), err error) {
	groups = slices.Compact(slices.Sorted(slices.Values(groups))) // in a fixed order, to prevent deadlocks
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

// use returns the lock of a group and adds a user to it.
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

// release removes a user from a lock. held reports whether the user holds the lock or only waited
// for it.
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
