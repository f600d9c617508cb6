package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/internal/objects/objectstest"
)

// inParts makes parts of a comparison below dir, a folder or s3://…, and returns their names.
func inParts(t *testing.T, dir string, n int, args ...string) []string {
	t.Helper()
	var names []string
	for i := 1; i <= n; i++ {
		name := fmt.Sprintf("%s/part-%d.parquet", dir, i)
		code, stdout, stderr := call(t, append([]string{"eval", "--shard", fmt.Sprintf("%d/%d", i, n), "--out", name}, args...)...)
		if code != cli.ExitOK || stdout != "" || !strings.Contains(stderr, "written to "+name) {
			t.Fatalf("part %d of %d: exit code %d, %s%s", i, n, code, stdout, stderr)
		}
		names = append(names, name)
	}
	return names
}

// TestShards: parts make what one call makes, to the byte: every output, and the exit code.
func TestShards(t *testing.T) {
	objectstest.Use(t, objectstest.Serve(t, nil, "b"))
	own := file(t, "shop.yaml", tiny)
	recorded := writeTrace(t, []priceRow{priced(0, 0.05), priced(20, 0.02), priced(40, 0.06), priced(70, 0.03)})
	for name, args := range map[string][]string{
		"files and gates": {own, "tiny", "--seeds", "2", "--policies", "static,portfolio", "--baseline", "static", "--gate",
			"portfolio:outage_delta.max <= -1"},
		"windows": {own, "--seeds", "2", "--policies", "static,spot", "--baseline", "static", "--windows", "2", "--trace", recorded},
		"stress":  {own, "--seeds", "1", "--policies", "static", "--baseline", "static", "--stress"},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			dir := t.TempDir()
			outputs := func(who string) (flags, files []string) {
				kinds := []string{"json", "md", "txt"}
				if name != "stress" {
					kinds = append(kinds, "parquet")
					flags, files = []string{"--report", filepath.Join(dir, who+".html")}, []string{filepath.Join(dir, who+".html")}
				}
				for _, kind := range kinds {
					files = append(files, filepath.Join(dir, who+"."+kind))
					flags = append(flags, "--out", files[len(files)-1])
				}
				return flags, files
			}
			flags, want := outputs("whole")
			code, _, errs := call(t, append(append([]string{"eval"}, args...), flags...)...)
			if code != cli.ExitOK && code != cli.ExitFailed {
				t.Fatalf("exit code %d: %s", code, errs)
			}
			for _, where := range []string{dir, "s3://b/" + strings.ReplaceAll(name, " ", "-")} {
				parts := inParts(t, where, 3, args...)
				if where != dir {
					parts = []string{where + "/"}
				}
				flags, got := outputs("merged")
				again, _, stderr := call(t, append(append([]string{"eval", "merge"}, parts...), flags...)...)
				if again != code || strings.Contains(errs, "gate") && !strings.Contains(stderr, "a gate failed") {
					t.Errorf("exit code %d, and of one call %d: %s", again, code, stderr)
				}
				for i := range want {
					same(t, got[i], want[i])
				}
			}
		})
	}
}

// same holds two files to be equal.
func same(t *testing.T, a, b string) {
	t.Helper()
	x, errX := os.ReadFile(a)
	y, errY := os.ReadFile(b)
	if errX != nil || errY != nil || !bytes.Equal(x, y) {
		t.Errorf("%s (%d bytes) is not %s (%d bytes): %v, %v", a, len(x), b, len(y), errX, errY)
	}
}

// TestShardsReuse: a call, whole or in parts, takes from parts what it needs.
func TestShardsReuse(t *testing.T) {
	dir := t.TempDir()
	own := file(t, "shop.yaml", tiny)
	old := inParts(t, dir, 2, own, "--seeds", "1", "--policies", "static")
	want := filepath.Join(dir, "want.json")
	args := []string{"eval", own, "--seeds", "2", "--policies", "static,spot"}
	if code, _, stderr := call(t, append(args, "--out", want)...); code != cli.ExitOK {
		t.Fatal(stderr)
	}
	got := filepath.Join(dir, "got.json")
	if code, _, stderr := call(t, append(args, "--reuse", old[0], "--reuse", old[1], "--out", got)...); code != cli.ExitOK {
		t.Fatal(stderr)
	}
	same(t, got, want)
	more := filepath.Join(dir, "more")
	if err := os.Mkdir(more, 0o755); err != nil {
		t.Fatal(err)
	}
	inParts(t, more, 3, append(args[1:], "--reuse", old[0])...)
	if code, _, stderr := call(t, "eval", "merge", more, "--out", got); code != cli.ExitOK {
		t.Fatal(stderr)
	}
	same(t, got, want)
}

// TestShardsRefused: what cannot be is refused by its name, and nothing is written.
func TestShardsRefused(t *testing.T) {
	dir := t.TempDir()
	part := filepath.Join(dir, "part.parquet")
	for want, args := range map[string][]string{
		`--shard: "3/2" is no I/N`:                                       {"--shard", "3/2", "--out", part},
		`--shard: 2 does not say which part: JOB_COMPLETION_INDEX is ""`: {"--shard", "2", "--out", part},
		"--shard: it does not go with --report":                          {"--shard", "1/2", "--out", part, "--report", "x.html"},
		"--shard: it does not go with --compare":                         {"--shard", "1/2", "--out", part, "--compare", "x"},
		"--shard: a part has a format of its own":                        {"--shard", "1/2", "--out", part, "-o", "json"},
		"the ending .json belongs to another format":                     {"--shard", "1/2", "--out", "part.json"},
		`--shard: "" is not the name of one file`:                        {"--shard", "1/2"},
		"--out: ": {"--shard", "1/2", "--out", "/no/such/folder/part.parquet"},
		"--plan: the call says as well what is compared: tiny": {"--plan", part, "tiny"},
		"--plan: " + part:                       {"--plan", part},
		"no-such.parquet: no such file":         {"tiny", "--seeds", "1", "--reuse", filepath.Join(dir, "no-such.parquet")},
		"--stress: it does not go with --truth": {"--shard", "1/2", "--out", part, "--stress", "--truth", "deep"},
	} {
		wrongCallIs(t, want, append([]string{"eval"}, args...)...)
	}
	if _, err := os.Stat(part); err == nil {
		t.Error("a part was written")
	}
	own := file(t, "shop.yaml", tiny)
	parts := inParts(t, dir, 2, own, "--seeds", "1", "--policies", "static")
	foreign := inParts(t, t.TempDir(), 2, own, "--seeds", "2", "--policies", "static")
	data, err := os.ReadFile(parts[1])
	if err != nil {
		t.Fatal(err)
	}
	damaged := file(t, "damaged.parquet", string(append(bytes.Clone(data[:100]), data[101:]...)))
	for want, names := range map[string][]string{
		damaged + ": it is damaged or cut short":                  {parts[0], damaged},
		foreign[1] + ": it is of another plan than " + parts[0]:   {parts[0], foreign[1]},
		parts[0] + ": part 1/2 is there twice":                    {parts[0], parts[0]},
		parts[0] + ": it is part 1/2, and these are missing: 2/2": {parts[0]},
	} {
		wrongCallIs(t, want, append([]string{"eval", "merge"}, names...)...)
	}
}
