package scenarios

import (
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/policy"
)

// withCommitments returns the scenario tiny with a list of commitments.
func withCommitments(t *testing.T, list string) (*Scenario, error) {
	t.Helper()
	text, err := Source("tiny")
	if err != nil {
		t.Fatal(err)
	}
	return Parse("tiny.yaml", []byte(strings.Replace(string(text), "\nspec:\n", "\nspec:\n  commitments:\n"+list, 1)))
}

func TestCommitments(t *testing.T) {
	sc, err := withCommitments(t, `
    - {name: r, instanceType: m5.large, zone: us-east-1a, count: 3, fee: 0.18}
    - {name: plan, spend: 7, discount: 0.3, family: m5}
    - {name: flexible, instanceType: m5.xlarge, count: 2, sizeFlexible: true}
`)
	if err != nil {
		t.Fatal(err)
	}
	want := []policy.Commitment{
		{Name: "flexible", Family: "m5", Unit: policy.CoverSizes, Amount: 64, Unused: 64, Fee: policy.NoPrice},
		{Name: "plan", Family: "m5", Unit: policy.CoverDollars, Amount: 10_000_000, Unused: 10_000_000, Fee: 7_000_000},
		{Name: "r", Type: "m5.large", Zone: "us-east-1a", Amount: 3, Unused: 3, Fee: 180_000},
	}
	got := sc.Commitments()
	if len(got) != len(want) {
		t.Fatalf("read %+v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("read %+v, want %+v", got[i], want[i])
		}
	}
}

// TestCommitmentsRefused: each error names the file, the field and the value.
func TestCommitmentsRefused(t *testing.T) {
	for list, want := range map[string]string{
		`{instanceType: m5.large, count: 1}`:                                                   `spec.commitments[0].name: must be set`,
		`{name: r, instanceType: m5.large}`:                                                    `count: must be set`,
		`{name: r, instanceType: m5.large, count: 0}`:                                          `count: 0 is not above 0`,
		`{name: r, count: 2}`:                                                                  `instanceType: must be set`,
		`{name: r}`:                                                                            `instanceType: must be set with count`,
		`{name: p, spend: -1, discount: 0.3}`:                                                  `spend: -1 is not above 0`,
		`{name: p, spend: 1, discount: 1}`:                                                     `discount: 1 is not above 0`,
		`{name: p, spend: 1}`:                                                                  `discount: must be set`,
		`{name: p, discount: 0.3}`:                                                             `spend: must be set`,
		`{name: p, spend: 1, discount: 0.3, zone: a}`:                                          `zone: is for reserved instances`,
		`{name: r, instanceType: m5.large, count: 1, family: m5}`:                              `family: is for savings plans`,
		`{name: r, instanceType: large, count: 1, sizeFlexible: true}`:                         `sizeFlexible: "large" has no size`,
		`{name: r, instanceType: m5.large, count: 1, fee: -1}`:                                 `fee: -1 is not from 0`,
		`{name: r, instanceTypes: m5.large, count: 1}`:                                         `instanceTypes`,
		"{name: r, instanceType: a.large, count: 1}\n    - {name: r, spend: 1, discount: 0.3}": `spec.commitments[1].name: "r" is listed twice`,
		`{name: r, instanceType: m5.large, count: 1, zone: a, sizeFlexible: true}`:             `sizeFlexible: zone is set too`,
	} {
		_, err := withCommitments(t, "    - "+list+"\n")
		if err == nil || !strings.Contains(err.Error(), strings.Replace(want, ": ", "\": ", 1)) || !strings.Contains(err.Error(), "tiny.yaml") {
			t.Errorf("%s: %v, want %s", list, err, want)
		}
	}
}

// TestCommitmentThatCoversNothing is said and is no error: an account may own what
// this cluster cannot use.
func TestCommitmentThatCoversNothing(t *testing.T) {
	sc, err := withCommitments(t, "    - {name: r, instanceType: x1e.32xlarge, count: 1}\n    - {name: p, spend: 1, discount: 0.3}\n")
	if err != nil {
		t.Fatal(err)
	}
	w, err := Bind(sc, embeddedTrace(t, sc, "synthetic"), BindOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(w.Warnings) != 1 || !strings.Contains(w.Warnings[0], "commitment r covers nothing") {
		t.Errorf("warnings %q", w.Warnings)
	}
}
