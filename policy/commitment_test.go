package policy

import "testing"

// TestScope: what a commitment covers, in words.
func TestScope(t *testing.T) {
	for want, c := range map[string]Commitment{
		"1 node of m5.large in zone a":             {Type: "m5.large", Zone: "a", Amount: 1},
		"the size of 2.5 large nodes of family m5": {Family: "m5", Unit: CoverSizes, Amount: 40},
		"$9.72 an hour on demand in region r":      {Region: "r", Unit: CoverDollars, Amount: 9_720_000},
	} {
		if got := c.Scope(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestSizeUnits against the factors that AWS publishes, times four.
func TestSizeUnits(t *testing.T) {
	for name, want := range map[string]int64{
		"t3.nano": 1, "t3.micro": 2, "t3.small": 4, "t3.medium": 8, "m5.large": 16, "m5.xlarge": 32, "m5.24xlarge": 768,
		"m7i.metal-48xl": 1536, "m5.metal": 0, "gp.vs1.large-dfw": 0, "": 0, "m5.0xlarge": 0,
	} {
		if got := SizeUnits(name); got != want {
			t.Errorf("%q is %d units, want %d", name, got, want)
		}
	}
}

// TestValidateCommitments: what an observer may not hand on.
func TestValidateCommitments(t *testing.T) {
	for _, x := range []struct {
		c  []Commitment
		ok bool
	}{
		{[]Commitment{{Name: "a", Amount: 1, Unused: 1}, {Name: "b", Fee: NoPrice}}, true},
		{[]Commitment{{Amount: 1}}, false},
		{[]Commitment{{Name: "b"}, {Name: "a"}}, false},
		{[]Commitment{{Name: "a", Amount: -1}}, false},
		{[]Commitment{{Name: "a", Amount: 1, Unused: 2}}, false},
		{[]Commitment{{Name: "a", Fee: -2}}, false},
		{[]Commitment{{Name: "a", Unit: 3}}, false},
	} {
		s := Snapshot{Now: 1, Commitments: x.c}
		if err := s.Validate(); (err == nil) != x.ok {
			t.Errorf("%+v: %v", x.c, err)
		}
	}
}
