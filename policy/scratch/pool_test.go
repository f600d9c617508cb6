package scratch

import (
	"runtime"
	"testing"
)

// Values are kept over collections, each for one user at a time.
func TestPool(t *testing.T) {
	var p Pool[int]
	a, b := p.Get(), p.Get()
	if a == b {
		t.Error("two users share a value")
	}
	*a = 7
	p.Put(a)
	runtime.GC()
	runtime.GC()
	if x := p.Get(); x != a || *x != 7 {
		t.Errorf("got %p of %d, want %p of 7", x, *x, a)
	}
}
