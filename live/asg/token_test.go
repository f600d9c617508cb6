package asg

import (
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// A launch that the previous leader requested after this replica last read the groups is not
// requested again: the read before the raise shows it.
func TestRule14LaunchOfTheLeaderBefore(t *testing.T) {
	w := newFixture(t, spotGroup(3), fixedGroup(3))
	before := w.backend
	w.restart()
	w.poll()
	next := w.backend
	w.backend = before
	w.must(w.launch("t1", policy.Spot))
	w.pass(3 * time.Minute) // nothing else holds a raise back any more
	w.backend = next
	if _, knows := next.groups.find(launched("t1")); knows {
		t.Fatal("the replica knows of the launch already")
	}
	w.must(w.launch("t1", policy.Spot))
	if got := w.cloud.Group("web-spot").Desired; got != 4 {
		t.Errorf("the group is to hold %d, want 4: one launch was asked for twice", got)
	}
	w.must(w.launch("t2", policy.Spot))
	if got := w.cloud.Group("web-spot").Desired; got != 5 {
		t.Errorf("the group is to hold %d, want 5: another launch is one more", got)
	}
}
