package main

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/models"
	"github.com/spotter-dev/spotter/policy/record"
)

// builtinActionsSum returns the SHA-256 of the manifest of the bundle of that name.
func builtinActionsSum(t *testing.T) string {
	t.Helper()
	b, err := models.Open(models.BuiltinActions(), "")
	if err != nil {
		t.Fatal(err)
	}
	return b.Fingerprint
}

// A recording that names its bundle says when the policy that takes it again names
// another one, or when the folder holds another one by now; one that does not name it,
// as those of older programs, says nothing.
func TestReplayOfOtherBundle(t *testing.T) {
	from, err := record.Open(recordedRun(t, "static"))
	if err != nil {
		t.Fatal(err)
	}
	const policy = "model:bundle=builtin-actions"
	as := func(name, sum string) string {
		dir := filepath.Join(t.TempDir(), "steps")
		w, err := record.NewWriter(dir, record.Meta{Version: version, Policy: policy, Scenario: "tiny.yaml", Seed: 5,
			Bundle: name, BundleSHA256: sum})
		if err != nil {
			t.Fatal(err)
		}
		for s, err := range from.Steps() {
			if err = errors.Join(err, w.Record(t.Context(), s.Snapshot, &s.Memory, &s.Plan)); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	sum, other := builtinActionsSum(t), strings.Repeat("0", 64)
	for _, c := range []struct{ name, sum, policy, want string }{
		{"builtin-actions", sum, policy, ""},
		{"builtin-actions", other, policy, "not of what builtin-actions holds now, SHA-256 " + sum[:12]},
		{"elsewhere", other, policy, "not of what builtin-actions holds now"},
		{"builtin-actions", sum, "portfolio:bundle=builtin", "not of what builtin holds now"},
		{"builtin-actions", sum, "portfolio:bundle=nowhere", "nowhere, whose place they take, cannot be read"},
		{"", "", policy, ""},
	} {
		dir := as(c.name, c.sum)
		_, _, stderr := call(t, "replay", dir, "--policy", c.policy)
		if n := strings.Count(stderr, "the forecasts recorded are of the bundle"); n > 1 || (n == 1) != (c.want != "") ||
			!strings.Contains(stderr, c.want) {
			t.Errorf("recorded with %q %.4s, taken again by %s: want %q\n%s", c.name, c.sum, c.policy, c.want, stderr)
		}
		_, text, stderr := call(t, "explain", "--run", dir, "--step", "1")
		if named := strings.Contains(text, "model bundle "+c.name+", SHA-256 "+c.sum); named != (c.name != "") {
			t.Errorf("recorded with %q, explain says\n%s", c.name, text)
		}
		if stated := strings.Contains(stderr, "not of what"); stated != (c.name == "builtin-actions" && c.sum == other) {
			t.Errorf("recorded with %q %.4s, explain warns\n%s", c.name, c.sum, stderr)
		}
	}
}

// A run under a bundle states its name and the SHA-256 of its manifest.
func TestRecordingNamesBundle(t *testing.T) {
	withONNX(t)
	r, err := record.Open(recordedRun(t, "model:bundle=builtin-actions"))
	if err != nil {
		t.Fatal(err)
	}
	if want := builtinActionsSum(t); r.Meta.Bundle != "builtin-actions" || r.Meta.BundleSHA256 != want {
		t.Errorf("the recording states %q, %s, want builtin-actions, %s", r.Meta.Bundle, r.Meta.BundleSHA256, want)
	}
}
