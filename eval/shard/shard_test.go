package shard

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/eval/evaltest"
	"github.com/spotter-dev/spotter/eval/format"
	"github.com/spotter-dev/spotter/eval/report"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/sim"
)

var testBuild = Build{"v1.0.0", strings.Repeat("e", 64)}

// made makes up a result, or fails as one run of the test does.
func made(_ context.Context, j eval.Job) (*sim.Result, error) {
	if j.Policy == "spot" && j.Seed == 3 {
		return nil, errors.New("the cloud fell down")
	}
	return evaltest.Result(evaltest.Run{Scenario: j.Scenario, Window: j.Window, Bound: j.Bound, Policy: j.Policy, Seed: j.Seed}), nil
}

// compared is a configuration with the given numbers of scenarios, windows and seeds.
func compared(names, windows, seeds int, policies ...string) eval.Config {
	c := eval.DefaultConfig()
	c.Policies, c.Baseline, c.Seeds, c.Version = policies, "static", eval.DefaultSeeds(seeds), testBuild.Version
	for n := range names {
		for w := range windows {
			name := strings.Repeat("x", n+1)
			c.Cases = append(c.Cases, eval.Case{Scenario: name, Window: w, Bound: evaltest.Scenario(name, w)})
		}
	}
	gate, err := eval.ParseGate("spotvortex:net_savings_pct.median >= 1")
	if err != nil {
		panic(err)
	}
	if slices.Contains(policies, "spotvortex") {
		c.Gates = []eval.Gate{gate}
	}
	return c
}

func noFiles(string, *scenarios.BoundScenario) (string, error) { return "", nil }

// divided does c in n parts, each written and read again. Runs whose results are in reuse are not
// repeated; did counts the runs that were done.
func divided(t interface{ Fatal(...any) }, c eval.Config, n int, plan Plan, reuse []*Part, did *int) (parts []*Part, files [][]byte) {
	keys := &Keys{Build: testBuild, Files: noFiles}
	for i := 1; i <= n; i++ {
		js, err := JobsOf([]eval.Config{c}, keys)
		if err != nil {
			t.Fatal(err)
		}
		share := Share{i, n}
		jobs, mine := js.Of(share)
		own := c
		own.Parallel = 1
		known := KnownOf(reuse, true)
		own.Mine, own.Known = mine, known.Bounds(js)
		var done []*eval.Done
		for d, err := range eval.Do(context.Background(), []eval.Config{own},
			known.Runner(js, func(ctx context.Context, j eval.Job) (*sim.Result, error) {
				*did++
				return made(ctx, j)
			})) {
			if err != nil {
				t.Fatal(err)
			}
			done = append(done, d)
		}
		p, err := Collect(Head{plan, share, testBuild, jobs}, done, js, keys, mine)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := Write(&out, p); err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprintf("part-%d.parquet", i)
		again, err := Read(name, out.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		if again.Name = ""; !reflect.DeepEqual(p, again) {
			t.Fatal("a part that was read is not the one that was written")
		}
		again.Name = name
		parts, files = append(parts, again), append(files, out.Bytes())
	}
	return parts, files
}

// merged is the comparison that parts make.
func merged(c eval.Config, parts []*Part) (*eval.Report, error) {
	keys := &Keys{Build: testBuild, Files: noFiles}
	if _, err := Check(parts, testBuild); err != nil {
		return nil, err
	}
	js, err := JobsOf([]eval.Config{c}, keys)
	if err != nil {
		return nil, err
	}
	known := KnownOf(parts, false)
	if err := known.Cover(js, []eval.Config{c}, keys, parts); err != nil {
		return nil, err
	}
	c.Known = known.Bounds(js)
	return eval.Run(context.Background(), c, known.Runner(js, func(context.Context, eval.Job) (*sim.Result, error) {
		panic("a merge runs nothing")
	}))
}

// written is a report in every format, with the page for a browser only if page is set, since
// that takes long.
func written(t interface{ Fatal(...any) }, r *eval.Report, page bool) []byte {
	var out bytes.Buffer
	for _, f := range []format.Format{format.Table, format.JSON, format.Parquet, format.CSV, format.JUnit} {
		if err := format.Write(&out, r, f, format.Options{Details: true}); err != nil {
			t.Fatal(err)
		}
	}
	if !page {
		return out.Bytes()
	}
	if err := report.Write(&out, r, report.Options{}); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestMerge: parts make what one machine makes, to the byte, and every run is done once.
func TestMerge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		policies := rapid.SampledFrom([][]string{{"static"}, {"spot", "static", "spotvortex"}, {"spotvortex", "spot"}}).Draw(t, "policies")
		c := compared(rapid.IntRange(1, 3).Draw(t, "scenarios"), rapid.IntRange(1, 2).Draw(t, "windows"),
			rapid.IntRange(1, 3).Draw(t, "seeds"), policies...)
		whole, err := eval.Run(context.Background(), c, made)
		if err != nil {
			t.Fatal(err)
		}
		want := map[bool][]byte{false: written(t, whole, false), true: written(t, whole, true)}
		for _, n := range []int{2, 3, 7} {
			did := 0
			parts, _ := divided(t, c, n, Plan{Args: []string{"x"}}, nil, &did)
			if did != len(whole.Runs) {
				t.Fatalf("%d parts did %d runs of %d", n, did, len(whole.Runs))
			}
			parts = rapid.Permutation(parts).Draw(t, "order")
			r, err := merged(c, parts)
			if err != nil {
				t.Fatal(err)
			}
			if page := n == 3; !bytes.Equal(written(t, r, page), want[page]) {
				t.Fatalf("%d parts make another report", n)
			}
		}
	})
}

// TestBalanced: no share has more than one job more than another, of any policy.
func TestBalanced(t *testing.T) {
	c := compared(2, 1, 20, "spot", "spotvortex")
	js, err := JobsOf([]eval.Config{c}, &Keys{Build: testBuild, Files: noFiles})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{2, 3, 7, 40} {
		counts := map[string][]int{}
		for i := 1; i <= n; i++ {
			_, mine := js.Of(Share{i, n})
			for _, policy := range c.Compared() {
				count := 0
				for _, k := range c.Cases {
					for _, seed := range c.Seeds {
						if mine(eval.Job{Case: k, Policy: policy, Seed: seed}) {
							count++
						}
					}
				}
				counts[policy] = append(counts[policy], count)
			}
		}
		for policy, of := range counts {
			if slices.Max(of)-slices.Min(of) > 1 {
				t.Errorf("%d shares have %v runs of %s", n, of, policy)
			}
		}
	}
}

// TestReuse: a plan with another policy and seed does what is new, and what broke.
func TestReuse(t *testing.T) {
	did := 0
	old, _ := divided(t, compared(1, 1, 4, "spot", "static"), 2, Plan{}, nil, &did)
	more := compared(1, 1, 5, "spot", "static", "spotvortex")
	did = 0
	parts, _ := divided(t, more, 3, Plan{}, old, &did)
	if want := 5 + 3 + 1; did != want { // spotvortex, seed 5 of the others, and the one that broke
		t.Errorf("%d runs were done, want %d", did, want)
	}
	whole, err := eval.Run(t.Context(), more, made)
	if err != nil {
		t.Fatal(err)
	}
	r, err := merged(more, parts)
	if err != nil || !bytes.Equal(written(t, r, true), written(t, whole, true)) {
		t.Errorf("what was reused makes another report: %v", err)
	}
}

// TestDamaged: no byte of a part can change, and nothing can be cut off, unseen.
func TestDamaged(t *testing.T) {
	did := 0
	_, files := divided(t, compared(1, 1, 2, "static"), 1, Plan{Args: []string{"x"}}, nil, &did)
	good := files[0]
	for at := 0; at < len(good); at += 1 + len(good)/500 {
		bad := bytes.Clone(good)
		bad[at] ^= 1 << (at % 8)
		if _, err := Read("a.parquet", bad); err == nil || !isRefused(err) || !strings.HasPrefix(err.Error(), "a.parquet: ") {
			t.Fatalf("byte %d of %d is another: %v", at, len(good), err)
		}
	}
	for _, n := range []int{0, 1, len(good) / 2, len(good) - 1} {
		if _, err := Read("a.parquet", good[:n]); !isRefused(err) {
			t.Errorf("cut short to %d of %d bytes: %v", n, len(good), err)
		}
	}
	if _, err := Read("a.parquet", append(bytes.Clone(good), 0)); !isRefused(err) {
		t.Errorf("a byte more: %v", err)
	}
}

// TestRefused: what is no part of the whole is refused by its name.
func TestRefused(t *testing.T) {
	did := 0
	c := compared(1, 2, 3, "spot", "static")
	read := func() []*Part {
		parts, _ := divided(t, c, 3, Plan{Args: []string{"x"}, Files: map[string]string{"shop.yaml": "a"}}, nil, &did)
		return parts
	}
	for name, x := range map[string]struct {
		with func(p []*Part) []*Part
		want string
	}{
		"another plan": {func(p []*Part) []*Part { p[1].Plan.Args = []string{"y"}; return p },
			"part-2.parquet: it is of another plan than part-1.parquet: `y`, and not `x`"},
		"another file": {func(p []*Part) []*Part { p[2].Plan.Files = map[string]string{"shop.yaml": "b"}; return p },
			"part-3.parquet: it is of another plan than part-1.parquet: shop.yaml has another text"},
		"doubled":         {func(p []*Part) []*Part { return append(p, p[1]) }, "part-2.parquet: part 2/3 is there twice"},
		"missing":         {func(p []*Part) []*Part { return p[:1] }, "part-1.parquet: it is part 1/3, and these are missing: 2/3, 3/3"},
		"another version": {func(p []*Part) []*Part { p[1].Build.Version = "v0.9.0"; return p }, "part-2.parquet: spotter v0.9.0"},
		"another engine": {func(p []*Part) []*Part { p[1].Build.Engine = strings.Repeat("f", 64); return p },
			"part-2.parquet: spotter v1.0.0 (engine ffffffffffff) made it, and this is v1.0.0 (engine eeeeeeeeeeee)"},
		"of two": {func(p []*Part) []*Part { p[1].Share.N = 2; return p },
			"part-2.parquet: it is part 2/2, and part-1.parquet is part 1/3"},
		"stopped": {func(p []*Part) []*Part { p[0].Cells = p[0].Cells[1:]; return p }, "part-1.parquet: it was stopped before its end"},
		"another trace": {func(p []*Part) []*Part {
			p[2].Cells[0].Key, p[2].Cells[0].Input.Trace = "k", "abcabcabcabcabc"
			return p
		}, "part-3.parquet: its x, window 0, under"},
		"lacks": {func(p []*Part) []*Part { p[2].Cells, p[2].Jobs = p[2].Cells[1:], p[2].Jobs-1; return p },
			"neither it nor another part has x, window 0, seed"},
	} {
		if _, err := merged(c, x.with(read())); err == nil || !isRefused(err) || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v, want %q", name, err, x.want)
		}
	}
}

// TestKey: a key changes with everything that a run depends on, and with nothing else.
func TestKey(t *testing.T) {
	of := func(change func(j *eval.Job, k *Keys)) string {
		j := eval.Job{Case: eval.Case{Scenario: "x", Bound: evaltest.Scenario("x", 0)}, Policy: "static", Seed: 1}
		k := &Keys{Build: testBuild, Files: noFiles}
		change(&j, k)
		key, err := k.Of(j)
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	same := of(func(*eval.Job, *Keys) {})
	seen := map[string]string{same: "nothing"}
	for what, change := range map[string]func(j *eval.Job, k *Keys){
		"seed":      func(j *eval.Job, _ *Keys) { j.Seed = 2 },
		"policy":    func(j *eval.Job, _ *Keys) { j.Policy = "static:share=0.4" },
		"scenario":  func(j *eval.Job, _ *Keys) { j.Bound.Digest[3]++ },
		"trace":     func(j *eval.Job, _ *Keys) { j.Bound.TraceDigest[3]++ },
		"start":     func(j *eval.Job, _ *Keys) { j.Bound.Start++ },
		"intensity": func(j *eval.Job, _ *Keys) { j.Bound.Intensity = 2 },
		"catalog":   func(j *eval.Job, _ *Keys) { j.Bound.Types[0].VCPU++ },
		"truth":     func(j *eval.Job, _ *Keys) { j.Bound.Truth.Flat = true },
		"version":   func(_ *eval.Job, k *Keys) { k.Build.Version = "v2" },
		"engine":    func(_ *eval.Job, k *Keys) { k.Build.Engine = "f" },
		"model": func(_ *eval.Job, k *Keys) {
			k.Files = func(string, *scenarios.BoundScenario) (string, error) { return "m", nil }
		},
	} {
		key := of(change)
		if other, twice := seen[key]; twice {
			t.Errorf("%s has the key of %s", what, other)
		}
		seen[key] = what
	}
	for what, change := range map[string]func(j *eval.Job, k *Keys){
		"name of the trace": func(j *eval.Job, _ *Keys) { j.Bound.Trace.Name = "elsewhere" },
		"warnings":          func(j *eval.Job, _ *Keys) { j.Bound.Warnings = []string{"w"} },
		"window":            func(j *eval.Job, _ *Keys) { j.Window = 7 },
	} {
		if of(change) != same {
			t.Errorf("another %s is another key", what)
		}
	}
}

// TestFilesAreReadOnce: what a policy names is not read again for every seed.
func TestFilesAreReadOnce(t *testing.T) {
	read := map[string]int{}
	keys := &Keys{Build: testBuild, Files: func(policy string, w *scenarios.BoundScenario) (string, error) {
		read[w.Name+" "+policy]++
		return "m", nil
	}}
	c := compared(2, 1, 3, "spot")
	if _, err := JobsOf([]eval.Config{c}, keys); err != nil {
		t.Fatal(err)
	}
	if len(read) != len(c.Cases)*len(c.Compared()) {
		t.Errorf("read for %v", read)
	}
	for what, times := range read {
		if times != 1 {
			t.Errorf("%s: read %d times", what, times)
		}
	}
}

// TestParseShare reads I/N.
func TestParseShare(t *testing.T) {
	if s, err := ParseShare("3/7"); err != nil || s != (Share{3, 7}) || s.String() != "3/7" {
		t.Errorf("%v, %v", s, err)
	}
	for _, bad := range []string{"", "3", "0/3", "4/3", "-1/3", "1/3/4", "a/b", "1/100001"} {
		if _, err := ParseShare(bad); err == nil {
			t.Errorf("%q is a share", bad)
		}
	}
}

// isRefused reports whether err says that a part is refused.
func isRefused(err error) bool { return errors.As(err, new(*partError)) }
