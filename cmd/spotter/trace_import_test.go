package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/internal/objects"
	"github.com/spotter-dev/spotter/internal/objects/objectstest"
	"github.com/spotter-dev/spotter/scenarios/trace"
	"github.com/spotter-dev/spotter/scenarios/trace/importer"
)

const samples = `{"metadata":{"gap_seconds":60},"data":[1,0,0,1]}`

// If a recording lacks a value, the error names the flag that gives it.
func TestImportAsks(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	script := file(t, "s.json", `{"default":{"current_price":1}}`)
	for _, c := range []struct {
		want string
		args []string
	}{
		{"--from", []string{file(t, "us-east-1a_v100_1.json", samples)}},
		{"--type", []string{file(t, "us-east-1a_h900.json", samples), "--from", "2026-01-01"}},
		{"--region", []string{file(t, "mars_v100_1.json", samples), "--from", "2026-01-01"}},
		{"--zone", []string{file(t, "p3-trace.csv", "0,add,a\n"), "--from", "2026-01-01"}},
		{"--at", []string{file(t, "feed.json", `{"regions":{}}`)}},
		{"--market", []string{script, "--from", "2026-01-01"}},
		{"--from: \"soon\"", []string{script, "--from", "soon"}},
		{"--at: \"soon\"", []string{script, "--at", "soon"}},
		{"--price-ratio: 0", []string{script, "--price-ratio", "0"}},
		{"--tick: 0s", []string{script, "--tick", "0s"}},
		{"--for: -1s", []string{script, "--for", "-1s"}},
		{"no such file", []string{script, "--prices", filepath.Join(t.TempDir(), "none")}},
	} {
		wrongCallIs(t, c.want, append([]string{"trace", "import", "--out", out}, c.args...)...)
	}
	empty(t, filepath.Dir(out))
}

// What is modelled is said when it is imported and whenever the trace is read.
func TestImportSaysWhatIsModelled(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "t")
	src := file(t, "us-east-1a_m5.large.json", samples)
	code, stdout, stderr := call(t, "trace", "import", src, "--from", "2026-01-01", "--price-ratio", "0.5", "--out", dir)
	if code != cli.ExitOK || !strings.Contains(stderr, "modelled as 0.5 of on-demand prices: aws/us-east-1/us-east-1a/m5.large") ||
		!strings.Contains(stdout,
			"JSON of availability\n4 rows read, 0 could not be used\n0 duplicates, 1 repeats of what was in force, 3 changes left\n") {
		t.Fatalf("%d\n%s%s", code, stdout, stderr)
	}
	if code, stdout, stderr := call(t, "trace", "info", dir); code != cli.ExitOK || !strings.Contains(stdout+stderr, "modelled as 0.5") {
		t.Errorf("%d\n%s%s", code, stdout, stderr)
	}
	// With a trace of prices, nothing is.
	prices := file(t, "p.csv", "t,az,instance_type,price\n1767225600,us-east-1a,m5.large,0.07\n")
	first, second := filepath.Join(t.TempDir(), "p"), filepath.Join(t.TempDir(), "t")
	call(t, "trace", "import", prices, "--out", first)
	if code, _, stderr := call(t, "trace", "import", src, "--from", "2026-01-01", "--prices", first, "--out",
		second); code != cli.ExitOK || stderr != "" {
		t.Fatalf("%d\n%s", code, stderr)
	}
	tr, err := trace.Open(second, trace.ReadOptions{})
	if err != nil || len(tr.Series) != 1 || tr.Series[0].Spot[0] != 70_000 || tr.Series[0].ProbeGap[1] != 60 {
		t.Errorf("%+v, %v", tr, err)
	}
}

// The help names every kind of recording that is understood.
func TestImportHelp(t *testing.T) {
	_, stdout, _ := call(t, "trace", "import", "--help")
	stdout = strings.Join(strings.Fields(stdout), " ")
	for line := range strings.SplitSeq(importer.Understood, "\n") {
		if !strings.Contains(stdout, strings.Join(strings.Fields(line), " ")) {
			t.Errorf("%q is missing in\n%s", line, stdout)
		}
	}
}

// Prices that were written by hand are called scripted, not recorded, wherever the source of
// prices is shown.
func TestScriptedPrices(t *testing.T) {
	script := file(t, "fake.json",
		`{"default":{"current_price":0.07,"on_demand_price":0.192},"series":{"m5.xlarge:us-east-1a":[{"current_price":0.06},{"current_price":0.08}]}}`)
	dir := filepath.Join(t.TempDir(), "t")
	if code, _, stderr := call(t, "trace", "import", script, "--from", "2026-01-01", "--tick", "1h", "--for", "48h",
		"--out", dir); code != cli.ExitOK {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	scenario, page := file(t, "tiny.yaml", tiny), filepath.Join(t.TempDir(), "r.html")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"trace", "info", dir}, "scripted (written down in advance, not recorded)"},
		{[]string{"sim", scenario, "--policy", "spot", "--trace", dir}, "scripted; reclaims are modelled"},
		{[]string{"eval", scenario, "--policies", "spot", "--seeds", "1", "--trace", dir, "--report", page},
			"scripted prices, modelled reclaims"},
		{[]string{"eval", scenario, "--policies", "spot", "--seeds", "1", "--trace", dir, "--format", "json"}, `"prices": "scripted"`},
		{[]string{"eval", scenario, "--policies", "spot", "--seeds", "1", "--trace", dir, "--format", "csv"}, ",scripted,modelled,"},
	} {
		code, stdout, stderr := call(t, c.args...)
		if code != cli.ExitOK || !strings.Contains(stdout, c.want) || strings.Contains(stdout, "recorded prices") {
			t.Errorf("spotter %s: exit code %d, %q is missing, or prices are called recorded\n%s%s", cli.Shell(c.args), code, c.want, stdout, stderr)
		}
	}
	text, err := os.ReadFile(page)
	if err != nil || !strings.Contains(string(text), "The prices are scripted") {
		t.Errorf("the report does not say so: %v", err)
	}
}

// Both embedded traces can be looked at.
func TestEmbeddedTraces(t *testing.T) {
	for name, want := range map[string]string{"embedded": "153 of 51", "embedded:default": "153 of 51", "embedded:rackspace": "36 of 36"} {
		code, out, errs := call(t, "trace", "info", name)
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("%s: exit code %d: %s%s", name, code, out, errs)
		}
	}
}

// advised are the commands that an error of trace info or trace import names.
var advised = regexp.MustCompile("`spotter (trace (?:info|import) [^`]*)`")

// What an error advises helps, or its own error advises something new: no user is sent from one
// command to the other and back.
func TestTraceAdviceIsNoCircle(t *testing.T) {
	const prices = "Timestamp,AvailabilityZone,InstanceType,SpotPrice\n2026-02-01T00:00:00Z,eu-west-1a,r6g.large,0.031\n2026-01-01T00:00:00Z,eu-west-1a,r6g.large,0.03\n"
	dir := t.TempDir()
	own := filepath.Join(dir, "own")
	if code, _, stderr := call(t, "trace", "import", file(t, "p.csv", prices), "--out", own); code != cli.ExitOK {
		t.Fatal(stderr)
	}
	parts, err := filepath.Glob(filepath.Join(own, "*", "*", "*", "*.parquet"))
	if err != nil || len(parts) == 0 {
		t.Fatal(parts, err)
	}
	whole, err := os.ReadFile(parts[0])
	if err != nil {
		t.Fatal(err)
	}
	damaged := bytes.Replace(whole, []byte("p.csv"), []byte("q.csv"), 1) // which its checksum shows
	type row struct {
		Timestamp, AvailabilityZone, InstanceType string
		SpotPrice                                 float32
	}
	type tracelike struct {
		Time         int64   `parquet:"time,timestamp"`
		Zone         string  `parquet:"zone"`
		InstanceType string  `parquet:"instance_type"`
		SpotPrice    float64 `parquet:"spot_price"`
	}
	for name, c := range map[string]struct {
		path string
		good bool // in the end a trace is described
	}{
		"CSV":                {file(t, "p.csv", prices), true},
		"CSV called Parquet": {file(t, "p.parquet", prices), true},
		"folder of CSV":      {filepath.Dir(file(t, "p.csv", prices)), true},
		"Parquet of another": {file(t, "x.parquet", parquetFile(t, []row{{"2026-01-01T00:00:00Z", "eu-west-1a", "r6g.large", 0.03}})), true},
		"folder of Parquet": {filepath.Dir(file(t, "x.parquet", parquetFile(t,
			[]row{{"2026-01-01T00:00:00Z", "eu-west-1a", "r6g.large", 0.03}}))), true},
		"Parquet out of order": {file(t, "x.parquet", parquetFile(t, []tracelike{{1769904000000, "eu-west-1a",
			"r6g.large", 0.03}, {1767225600000, "eu-west-1a", "r6g.large", 0.04}})), true},
		"Parquet without prices": {file(t, "x.parquet", parquetFile(t, []struct{ Mood string }{{"good"}})), false},
		"Parquet without rows":   {file(t, "x.parquet", parquetFile(t, []row{})), false},
		"trace without rows":     {file(t, "x.parquet", parquetFile(t, []tracelike{})), false},
		"trace":                  {own, true},
		"damaged trace":          {file(t, "x.parquet", string(damaged)), false},
		"cut trace":              {file(t, "x.parquet", string(whole[:len(whole)/2])), false},
		"prose":                  {file(t, "x.txt", "Dear all,\nno prices here.\n"), false},
		"empty":                  {file(t, "x.csv", ""), false},
		"bad rows":               {file(t, "x.csv", "t,az,instance_type,price\nx,y,z,0\n"), false},
		"nowhere":                {filepath.Join(dir, "none"), false},
	} {
		for _, first := range []string{"trace info PATH", "trace import PATH --out DIR"} {
			t.Run(name+" "+strings.Fields(first)[1], func(t *testing.T) {
				out := filepath.Join(t.TempDir(), "out")
				command := strings.NewReplacer("PATH", c.path, "DIR", out).Replace(first)
				for tried := []string{}; ; {
					if slices.Contains(tried, command) {
						t.Fatalf("%s advises %s", strings.Join(tried, ", then "), command)
					}
					tried = append(tried, command)
					code, stdout, stderr := call(t, strings.Fields(command)...)
					if code == cli.ExitOK {
						if !c.good {
							t.Errorf("%s succeeds\n%s", command, stdout)
						}
						return
					}
					m := advised.FindStringSubmatch(stderr)
					if m == nil || strings.Contains(m[1], "--help") {
						if c.good {
							t.Errorf("%s ends in\n%s", strings.Join(tried, ", then "), stderr)
						}
						return
					}
					command = strings.NewReplacer("DIR", out).Replace(m[1])
				}
			})
		}
	}
}

// parquetFile returns a Parquet file of rows as another program writes it.
func parquetFile[T any](t *testing.T, rows []T) string {
	t.Helper()
	var b bytes.Buffer
	if err := parquet.Write(&b, rows); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// A folder in an object store is read as one on disk.
func TestImportFromStore(t *testing.T) {
	objectstest.Use(t, objectstest.Serve(t, nil, "b"))
	type row struct {
		Timestamp, AvailabilityZone, InstanceType string
		SpotPrice                                 float32
	}
	for name, text := range map[string]string{
		"s3://b/prices/az=eu-west-1a/a.csv":  "timestamp,instance_type,price\n2026-01-01T00:00:00Z,r6g.large,0.03\n",
		"s3://b/prices/az=eu-west-1b/b.data": parquetFile(t, []row{{"2026-01-01T01:00:00Z", "eu-west-1b", "r6g.large", 0.04}}),
	} {
		var store objects.Store
		err := store.Create(t.Context(), name, func(w io.Writer) error { _, err := io.WriteString(w, text); return err })
		if err != nil {
			t.Fatal(err)
		}
	}
	out := filepath.Join(t.TempDir(), "out")
	code, stdout, stderr := call(t, "trace", "import", "s3://b/prices", "--out", out)
	if code != cli.ExitOK || !strings.Contains(stdout, "CSV of Spot prices, Parquet of Spot prices\n2 rows read, 0 could not be used\n") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
}
