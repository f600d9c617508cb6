package asg

import "testing"

// TestClaimOnce has two launches and one instance: the older launch gets it, and the
// other has none yet.
func TestClaimOnce(t *testing.T) {
	launches := []launch{{token: "a", at: 1, after: noActivity}, {token: "b", at: 2, after: noActivity}}
	activities := []activity{{id: "1", launches: true, instance: "i-1", start: 3}}
	if gave := claim(launches, activities, func(string) bool { return true }); !gave || launches[0].instance != "i-1" ||
		launches[1].instance != "" {
		t.Errorf("%v: %+v", gave, launches)
	}
}
