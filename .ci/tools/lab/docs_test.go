package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/policytest"
	"github.com/spotter-dev/spotter/scenarios/trace"
	"github.com/spotter-dev/spotter/scenarios/trace/tracetest"
)

// A treatment is how a command of a page is run where it is not run as it stands.
type treatment struct {
	// leave says why it is not run.
	leave string

	// more are flags that make it shorter, or say where what it reads is.
	more []string

	// judges says that it may find that a check failed: the inputs are made up.
	judges bool

	// onnx says that it takes ONNX Runtime.
	onnx bool
}

// treatments are those of the commands of spotter-lab in docs, by their beginning.
var treatments = map[string]treatment{
	"models dataset --recorded": {more: []string{"--generated", "2", "--scarce", "0", "--days", "2",
		"--copies", "2", "--recorded-share", "0.02", "--generated-share", "0.02"}},
	"models dataset --generated":   {more: []string{"--generated-share", "0.02"}},
	"models evaluate data":         {onnx: true},
	"models evaluate data --judge": {},
	"scenario hunt":                {more: []string{"--length", "12h", "--tries", "2", "--least", "1e9"}}, // TestHunt has finds
	"models train": {more: []string{"--rounds", "1", "--worlds", "2", "--steps", "2",
		"--held-out", "1", "--traces", "1"}},
	"trace check generated":                    {judges: true},
	"trace check drawn":                        {judges: true},
	"trace forecast prices --bundle":           {more: []string{"--every", "3h"}, onnx: true},
	"trace forecast prices --from":             {onnx: true},
	"trace generate --preset":                  {more: []string{"--markets", "9", "--days", "3"}},
	"models evaluate data --bundle bundle --a": {leave: "it takes a bundle of the SpotVortex agent: TestModelsDataset gives it one"},
}

// treatmentOf returns how a command is treated, and the longest beginning that it has.
func treatmentOf(command string) (begin string, how treatment) {
	for k, x := range treatments {
		if strings.HasPrefix(command, k) && len(k) > len(begin) {
			begin, how = k, x
		}
	}
	return begin, how
}

// labCommand matches a line of a block of commands that spotter-lab runs.
var labCommand = regexp.MustCompile(`^(?:bin/)?spotter (models (?:dataset|evaluate|train)|scenario (?:from-trace|hunt)|trace (?:check|forecast|generate)) [^#]*`)

// commandsOfPages returns the commands of spotter-lab in docs, less the name of the program, each once.
func commandsOfPages(t *testing.T) []string {
	t.Helper()
	pages, err := filepath.Glob(filepath.Join(policytest.Root(t), "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range regexp.MustCompile("(?ms)^```sh\n(.*?)^```").FindAllStringSubmatch(string(text), -1) {
			for line := range strings.Lines(strings.ReplaceAll(block[1], "\\\n", " ")) {
				_, command, _ := strings.Cut(strings.TrimSpace(labCommand.FindString(line)), " ")
				if command != "" && !slices.Contains(all, command) {
					all = append(all, command)
				}
			}
		}
	}
	return all
}

// openb is a pod list of two services and a job.
const openb = `name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
a,4000,8192,0,0,,LS,Running,0,172800,10
b,4000,8192,0,0,,LS,Running,0,172800,20
c,8000,16384,1,1000,,BE,Succeeded,3600,90000,3700
`

// inputs makes what the commands read, in the folder where they run.
func inputs(t *testing.T, root string) {
	t.Helper()
	made := func(name string, args ...string) {
		if code, _, stderr := call(t, append(args, "--out", name)...); code != cli.ExitOK {
			t.Fatalf("%s: exit code %d\n%s", name, code, stderr)
		}
	}
	for _, name := range []string{"recorded", "h100", "generated", "drawn", "prices"} {
		made(name, "trace", "generate", "--preset", "aws-2024", "--seed", "7", "--markets", "60", "--days", "20", "--from",
			"2023-03-01", "--availability")
	}
	for _, name := range []string{"v100", "r5", "v100-april"} {
		if err := trace.Write(name, tracetest.Alternating(t, name, policy.TimeOf(time.Date(2023, 2, 15, 0, 0, 0, 0, time.UTC)))); err != nil {
			t.Fatal(err)
		}
	}
	made("data", "models", "dataset", "--generated", "2", "--days", "2", "--generated-share", "0.02")
	if err := os.CopyFS("bundle", os.DirFS(filepath.Join(root, "models", "builtin"))); err != nil {
		t.Fatal(err)
	}
	var hours strings.Builder
	hours.WriteString("USAGE_HOUR,REGION_NUM,INSTANCE_TYPE,NORM_USAGE\n")
	for h := range 24 * 14 {
		fmt.Fprintf(&hours, "2022-03-%02d %02d:00:00.000,2,A,%d\n", 1+h/24, h%24, 400+h%24)
	}
	for name, text := range map[string]string{"demand.csv.gz": hours.String(), "prices.csv.gz": prices(20, 5, 1),
		"openb_pod_list_default.csv": openb} {
		var b bytes.Buffer
		b.WriteString(text)
		if strings.HasSuffix(name, ".gz") {
			b.Reset()
			z := gzip.NewWriter(&b)
			if _, err := z.Write([]byte(text)); err != nil {
				t.Fatal(err)
			}
			if err := z.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(name, b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestCommandsOfPages runs the commands of spotter-lab that appear in docs, on small
// generated inputs.
func TestCommandsOfPages(t *testing.T) {
	commands, met := commandsOfPages(t), map[string]bool{}
	root, from := policytest.Root(t), t.TempDir()
	if os.Getenv("SPOTTER_ONNXRUNTIME") == "" {
		t.Setenv("SPOTTER_ONNXRUNTIME", filepath.Join(root, "bin", "libonnxruntime.so.1"))
	}
	t.Chdir(from)
	inputs(t, root)
	for _, command := range commands {
		begin, how := treatmentOf(command)
		met[begin] = true
		if how.leave != "" {
			continue
		}
		t.Run(command, func(t *testing.T) {
			args := append(strings.Fields(command), how.more...)
			if how.onnx {
				withONNX(t)
			}
			if at := slices.Index(args, "--out"); at >= 0 { // the command creates it
				if err := os.RemoveAll(filepath.Join(from, args[at+1])); err != nil {
					t.Fatal(err)
				}
			}
			if code, out, stderr := call(t, args...); code != cli.ExitOK && (!how.judges || code != cli.ExitFailed) {
				t.Errorf("exit code %d\n%s%s", code, out, stderr)
			}
		})
	}
	for begin := range treatments {
		if !met[begin] {
			t.Errorf("no page has a command %q any more", begin)
		}
	}
	if len(commands) < 15 {
		t.Errorf("the pages have only %d commands of spotter-lab", len(commands))
	}
}
