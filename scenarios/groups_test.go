package scenarios

import (
	"strings"
	"testing"
)

// withGroups returns the scenario asg-web with bounds for its groups.
func withGroups(t *testing.T, name, groups string) (*Scenario, error) {
	t.Helper()
	text, err := Source(name)
	if err != nil {
		t.Fatal(err)
	}
	return Parse(name+".yaml", []byte(strings.Replace(string(text), "\nspec:\n", "\nspec:\n  groups: "+groups+"\n", 1)))
}

func TestGroups(t *testing.T) {
	for groups, want := range map[string]GroupBounds{
		`{}`: {}, `{minSize: 2}`: {Min: 2}, `{maxSize: 9}`: {Max: 9}, `{minSize: 3, maxSize: 3}`: {Min: 3, Max: 3},
	} {
		sc, err := withGroups(t, "asg-web", groups)
		if err != nil {
			t.Fatal(err)
		}
		if sc.Groups != want {
			t.Errorf("%s is read as %+v, want %+v", groups, sc.Groups, want)
		}
	}
	sc, err := withGroups(t, "tiny", `{minSize: 2}`)
	if err != nil {
		t.Fatal(err)
	}
	if said := strings.Join(sc.Warnings, "; "); !strings.Contains(said, "groups have no effect") {
		t.Errorf("bounds of groups in a scenario without any are not warned of: %q", said)
	}
}

// TestGroupsRefused: each error names the file, the field and the value.
func TestGroupsRefused(t *testing.T) {
	for groups, want := range map[string]string{
		`{minSize: -1}`:              `"spec.groups.minSize": -1`,
		`{maxSize: 0}`:               `"spec.groups.maxSize": 0`,
		`{minSize: 5, maxSize: 4}`:   `"spec.groups.maxSize": 4 is below minSize 5`,
		`{least: 1}`:                 `least`,
		`{minSize: 99999999}`:        `"spec.groups.minSize": 99999999`,
		`{minSize: 1.5, maxSize: 2}`: `minSize`,
	} {
		_, err := withGroups(t, "asg-web", groups)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "asg-web.yaml") {
			t.Errorf("%s: error %v, want one of asg-web.yaml with %q", groups, err, want)
		}
	}
}
