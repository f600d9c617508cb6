package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	karpenterapis "sigs.k8s.io/karpenter/pkg/apis"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/mcp"
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/test/testenv"
)

// An agent is a client of the server, with the output schemas of its tools.
type agent struct {
	*sdk.ClientSession

	outputs map[string]*jsonschema.Resolved
}

// connected returns an agent that is connected by transport, and passes progress on.
func connected(t *testing.T, transport sdk.Transport, progress func(*sdk.ProgressNotificationParams)) *agent {
	t.Helper()
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, &sdk.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
			if progress != nil {
				progress(r.Params)
			}
		}})
	session, err := client.Connect(t.Context(), transport, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	a := &agent{session, map[string]*jsonschema.Resolved{}}
	list, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range list.Tools {
		if tool.OutputSchema == nil {
			continue
		}
		text, err := json.Marshal(tool.OutputSchema)
		if err != nil {
			t.Fatal(err)
		}
		var schema jsonschema.Schema
		if err := json.Unmarshal(text, &schema); err != nil {
			t.Fatal(err)
		}
		if a.outputs[tool.Name], err = schema.Resolve(nil); err != nil {
			t.Fatalf("%s: %v", tool.Name, err)
		}
	}
	return a
}

// inMemory returns an agent of a server in this process.
func inMemory(t *testing.T, progress func(*sdk.ProgressNotificationParams)) *agent {
	t.Helper()
	p := &cli.Program{Version: "unknown", Stderr: io.Discard}
	server, err := mcp.NewServer(t.Context(), p, commands, mcpTypes(), nil)
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := sdk.NewInMemoryTransports()
	if _, err := server.Connect(t.Context(), ours, nil); err != nil {
		t.Fatal(err)
	}
	return connected(t, theirs, progress)
}

// asks calls a tool and returns its result.
func (a *agent) asks(t *testing.T, tool string, arguments any) *sdk.CallToolResult {
	t.Helper()
	r, err := a.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	return r
}

// textOf returns the text of a part of a result.
func textOf(t *testing.T, r *sdk.CallToolResult, part int) string {
	t.Helper()
	if part >= len(r.Content) {
		t.Fatalf("%d parts, want %d", len(r.Content), part+1)
	}
	text, ok := r.Content[part].(*sdk.TextContent)
	if !ok {
		t.Fatalf("part %d is a %T", part, r.Content[part])
	}
	return text.Text
}

// answers calls a tool that must succeed, checks that the result has the form of its schema, and
// returns its JSON and the command that repeats it.
func (a *agent) answers(t *testing.T, tool string, arguments any) (text, command string) {
	t.Helper()
	r := a.asks(t, tool, arguments)
	words := textOf(t, r, 0)
	if r.IsError {
		t.Fatalf("%s %s: %s", tool, arguments, words)
	}
	text = textOf(t, r, 1)
	command, ok := strings.CutPrefix(strings.Split(words, "\n")[0], "command: spotter ")
	if !ok {
		t.Errorf("%s: no command in %q", tool, words)
	}
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatalf("%s: %v\n%s", tool, err, text)
	}
	_, object := value.(map[string]any)
	if object != (r.StructuredContent != nil) {
		t.Errorf("%s: the result is an object: %t, its structured content is %T", tool, object, r.StructuredContent)
	}
	if schema := a.outputs[tool]; schema != nil {
		if err := schema.Validate(r.StructuredContent); err != nil {
			t.Errorf("%s: %v\n%.500s", tool, err, text)
		}
	}
	return text, command
}

// repeats checks that a command prints the same JSON as a tool.
func repeats(t *testing.T, command, text string) {
	t.Helper()
	code, stdout, stderr := call(t, split(command)...)
	var compact bytes.Buffer
	if err := json.Compact(&compact, []byte(stdout)); err != nil || code != cli.ExitOK && code != cli.ExitFailed {
		t.Fatalf("%s: exit code %d, %v\n%s", command, code, err, stderr)
	}
	if got := compact.String(); got != text {
		t.Errorf("%s prints\n%.2000s\nand the tool returned\n%.2000s", command, got, text)
	}
}

// TestMCPTools: every tool only reads, and describes each of its inputs.
func TestMCPTools(t *testing.T) {
	a := inMemory(t, nil)
	list, err := a.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
		if h := tool.Annotations; h == nil || !h.ReadOnlyHint || h.OpenWorldHint == nil || tool.Title == "" || tool.Description == "" {
			t.Errorf("%s: %+v", tool.Name, tool)
		}
		schema, ok := tool.InputSchema.(map[string]any)
		properties, has := schema["properties"].(map[string]any)
		if !ok || !has || schema["type"] != "object" {
			t.Fatalf("%s takes %v", tool.Name, tool.InputSchema)
		}
		for name, p := range properties {
			if x, ok := p.(map[string]any); !ok || x["description"] == "" || x["description"] == nil || x["type"] == nil {
				t.Errorf("%s: %s is %v", tool.Name, name, p)
			}
		}
		out, _ := json.Marshal(tool.OutputSchema)
		in, _ := json.Marshal(tool.InputSchema)
		t.Logf("%s: %d bytes of input schema, %d of output schema", tool.Name, len(in), len(out))
	}
	slices.Sort(names)
	if want := []string{"eval", "explain", "policies", "top", "try", "validate", "whatif"}; !slices.Equal(names, want) {
		t.Errorf("the tools are %q, want %q", names, want)
	}
}

// TestMCPAnswers: the result of a tool is what the command prints that the result names.
func TestMCPAnswers(t *testing.T) {
	a, scenario := inMemory(t, nil), file(t, "tiny.yaml", tiny)
	steps := recordedRun(t, "spotvortex")
	for _, c := range []struct {
		tool, arguments string
		want            []string
	}{
		{"eval", `{"scenarios": [%q], "trace": "synthetic", "policies": ["spot", "static:share=0.5"], "windows": 2, "seeds": "2"}`,
			[]string{`"runs":[]`, `"run_count":16`, `"policy":"static:share=0.5"`}},
		{"eval", `{"scenarios": [%q], "trace": "synthetic", "policies": ["spot"], "windows": "1", "seeds": 1, "runs": true, "gates":
			["spot:net_savings_pct.median >= 1000", "spot:outage_delta.max <= 1000000"]}`,
			[]string{`"passed":false`, `"seed":1,"policy":"spot"`}},
		{"eval", `{"scenarios": [%q], "trace": "synthetic", "policies": ["spot"], "windows": 1, "seeds": 1, "metrics": ["jobs_done"]}`,
			[]string{`"metrics":{"jobs_done":{"n":1,`, `"medians":{"jobs_done":0}`}},
		{"whatif", `{"scenario": %q, "trace": "synthetic", "seeds": 2, "variants": [
			{"set": ["deployment/web.spec.replicas=6"], "policy": "portfolio"}, {"policy": "static:share=0.5"}]}`,
			[]string{`"variants":[`, `replicas=6`}},
		{"whatif", `{"scenario": %q, "trace": "synthetic", "seeds": 1, "variants": [{"sweep": "deployment/web.spec.replicas=2,4"}]}`,
			[]string{`"sweep":"`}},
		{"validate", `{"scenarios": [%q, "web-week"], "trace": "synthetic"}`, []string{`"hours":24`, `"scenario":"web-week"`}},
		{"policies", `{"names": ["portfolio"]}`, []string{`"name":"portfolio"`}},
		{"policies", ``, []string{`"name":"static"`}},
	} {
		arguments := c.arguments
		if strings.Contains(arguments, "%q") {
			arguments = fmt.Sprintf(arguments, scenario)
		}
		var in any
		if arguments != "" {
			in = json.RawMessage(arguments)
		}
		text, command := a.answers(t, c.tool, in)
		for _, want := range c.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s %s: %s is not in\n%.3000s", c.tool, arguments, want, text)
			}
		}
		t.Logf("%d bytes of %s", len(text), command)
		repeats(t, command, text)
	}
	text, command := a.answers(t, "explain", map[string]any{"run": steps})
	repeats(t, command, text)
	text, command = a.answers(t, "explain", map[string]any{"run": steps, "step": 1})
	repeats(t, command, text)
	var decision struct{ At string }
	if err := json.Unmarshal([]byte(text), &decision); err != nil {
		t.Fatal(err)
	}
	r := a.asks(t, "explain", map[string]any{"run": steps, "at": decision.At})
	if words := textOf(t, r, 0); !strings.Contains(words, "\ndecision id: "+decision.At) || textOf(t, r, 1) != text {
		t.Errorf("the decision at %s reads\n%s", decision.At, words)
	}
	if words := textOf(t, a.asks(t, "explain", map[string]any{"run": steps}), 0); !strings.Contains(words, "\ndecision ids: "+decision.At+", ") {
		t.Errorf("the list of decisions reads\n%s", words)
	}
}

// TestMCPTry tries a demonstration and the manifests of a cluster, and writes nothing.
func TestMCPTry(t *testing.T) {
	recentPrices(t)
	dir := t.TempDir()
	scenario := file(t, "tiny.yaml", tiny)
	t.Chdir(dir)
	a := inMemory(t, nil)
	for _, arguments := range []map[string]any{{"demo": true}, {"filename": scenario}} {
		text, command := a.answers(t, "try", arguments)
		if !strings.Contains(text, `"files":[]`) || !strings.Contains(text, `"policies":[{`) || !strings.HasPrefix(command, "try --no-files ") {
			t.Errorf("%s: %s", command, text)
		}
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
		t.Errorf("it wrote %v, %v", files, err)
	}
}

// TestMCPCluster: top and try on an API server, with rights to read and no others.
func TestMCPCluster(t *testing.T) {
	if testing.Short() {
		t.Skip("starts an API server and processes")
	}
	env := testenv.New(t, testenv.Options{ControllerManager: true, Scheduler: true, Kwok: true, CRDs: karpenterapis.CRDs})
	recentPrices(t)
	crew(t, env)
	reader := rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"get", "list"}}
	kubeconfig := testenv.Kubeconfig(t, env.User(t, "agent", reader))
	mark := env.Mark()
	a := inMemory(t, nil)
	text, command := a.answers(t, "top", map[string]any{"kubeconfig": kubeconfig, "sort": "price"})
	if !strings.Contains(text, `"totals":{"nodes":4,"spot_nodes":2,`) || !strings.HasPrefix(command, "top --sort=price --kubeconfig=") {
		t.Errorf("%s: %s", command, text)
	}
	if text, _ = a.answers(t, "try", map[string]any{"kubeconfig": kubeconfig}); !strings.Contains(text, `"nodes":4,"spot_nodes":2,`) {
		t.Errorf("try: %s", text)
	}
	if writes := env.Audit(t, mark, func(e testenv.AuditEvent) bool { return e.User == "agent" && e.Writes() }); len(writes) > 0 {
		t.Errorf("it wrote %v", writes)
	}
	r := a.asks(t, "top", map[string]any{"kubeconfig": kubeconfig, "context": "none"})
	if text := textOf(t, r, 0); !r.IsError || !strings.Contains(text, `"none"`) {
		t.Errorf("an unknown context: %s", text)
	}
}

// TestMCPErrors: wrong arguments and errors of commands are results that say what is wrong with
// which field, and what its value was.
func TestMCPErrors(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	a, scenario := inMemory(t, nil), file(t, "tiny.yaml", tiny)
	broken := file(t, "broken.yaml", strings.Replace(tiny, "duration: 24h", "duration: long", 1))
	for _, c := range []struct {
		tool, arguments string
		want            []string
	}{
		{"eval", `{"windows": true}`, []string{"windows", "true"}},
		{"eval", `{"speed": 3}`, []string{"speed"}},
		{"eval", `{"out": ["x.json"]}`, []string{"out"}},
		{"eval", `{"seeds": "many"}`, []string{"spotter: --seeds", `"many"`, "give a number of seeds"}},
		{"eval", `{"policies": ["chance"]}`, []string{"chance", "known are"}},
		{"eval", `{"metrics": ["regrett"]}`, []string{"--metrics", `"regrett"`, "did you mean regret?"}},
		{"eval", `{"scenarios": ["none.yaml"]}`, []string{"none.yaml"}},
		{"eval", `{"scenarios": ["--out=x.json"]}`, []string{"--out=x.json"}},
		{"eval", `{"scenarios": ["-"]}`, []string{"scenarios", `"-"`, "carries the protocol"}},
		{"try", `{"filename": "-"}`, []string{"filename", `"-"`, "carries the protocol"}},
		{"whatif", `{"scenario": "tiny", "variants": [{"nodepools": "-"}]}`, []string{"nodepools", `"-"`, "carries the protocol"}},
		{"whatif", `{"scenario": "tiny"}`, []string{"variants"}},
		{"whatif", `{"scenario": "tiny", "variants": [{}]}`, []string{"variants"}},
		{"whatif", `{"scenario": "tiny", "variants": [{"set": ["deployment/none.spec.replicas=1"]}]}`, []string{"none"}},
		{"explain", `{}`, []string{"run"}},
		{"explain", `{"run": ".", "at": "noon"}`, []string{"--at", `"noon"`}},
		{"explain", `{"run": ".", "step": 0}`, []string{"--step", "0 is not above 0"}},
		{"explain", `{"run": "none"}`, []string{"none", "no such file"}},
		{"validate", fmt.Sprintf(`{"scenarios": [%q, %q]}`, scenario, broken), []string{broken, "duration", "long"}},
		{"policies", `{"names": ["chance"]}`, []string{"chance"}},
		{"top", `{"sort": "colour"}`, []string{"--sort", `"colour"`}},
		{"top", `{}`, []string{"no cluster"}},
		{"try", `{}`, []string{"no cluster"}},
		{"try", `{"demo": true, "context": "a"}`, []string{"give one of them"}},
	} {
		r := a.asks(t, c.tool, json.RawMessage(c.arguments))
		text := textOf(t, r, 0)
		if !r.IsError || r.StructuredContent != nil || !strings.HasPrefix(text, "spotter: ") {
			t.Errorf("%s %s: error %t, %s", c.tool, c.arguments, r.IsError, text)
		}
		for _, want := range c.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s %s: %q is not in %s", c.tool, c.arguments, want, text)
			}
		}
	}
	if _, err := a.CallTool(t.Context(), &sdk.CallToolParams{Name: "run"}); err == nil {
		t.Error("there is a tool run")
	}
}

// TestMCPProject: the project file, which may name files to write, is not read, and the command
// that repeats a call does not read it either.
func TestMCPProject(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile(cli.ProjectFile, []byte("eval:\n  out: results.json\n  seeds: 7\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	a := inMemory(t, nil)
	r := a.asks(t, "eval", map[string]any{"scenarios": []string{"tiny"}, "policies": []string{"spot"}, "windows": 1, "seeds": 1})
	if words := textOf(t, r, 0); r.IsError || !strings.HasPrefix(words, "command: "+cli.ProjectVariable+"=off spotter eval tiny ") {
		t.Errorf("%s", words)
	}
	if _, err := os.Stat("results.json"); err == nil {
		t.Error("a file was written")
	}
}

// A progress is the notifications that an agent received.
type progress struct {
	mu  sync.Mutex
	all []sdk.ProgressNotificationParams
}

func (p *progress) add(n *sdk.ProgressNotificationParams) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all = append(p.all, *n)
}

// received returns the notifications with a token.
func (p *progress) received(token string) (out []sdk.ProgressNotificationParams) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, n := range p.all {
		if n.ProgressToken == token {
			out = append(out, n)
		}
	}
	return out
}

// asksWith calls a tool with a token for progress.
func (a *agent) asksWith(ctx context.Context, token, tool string, arguments any) (*sdk.CallToolResult, error) {
	p := &sdk.CallToolParams{Name: tool, Arguments: arguments}
	p.SetProgressToken(token)
	return a.CallTool(ctx, p)
}

// long are the arguments of a comparison that would take minutes, but less than an hour.
func long(t *testing.T) map[string]any {
	t.Helper()
	return map[string]any{"scenarios": []string{file(t, "tiny.yaml", tiny)}, "trace": "synthetic",
		"policies": []string{"spot", "static"}, "seeds": "4000"}
}

// TestMCPProgress: an agent that requests progress receives it, always more than before, and never
// more than the total; one that does not receives none.
func TestMCPProgress(t *testing.T) {
	var got progress
	a := inMemory(t, got.add)
	in := map[string]any{"scenarios": []string{file(t, "tiny.yaml", tiny)}, "trace": "synthetic",
		"policies": []string{"spot", "static"}, "seeds": "12"}
	if r, err := a.asksWith(t.Context(), "one", "eval", in); err != nil || r.IsError {
		t.Fatalf("%v, %s", err, textOf(t, r, 0))
	}
	if r, err := a.asksWith(t.Context(), "two", "whatif", map[string]any{"scenario": in["scenarios"].([]string)[0],
		"trace": "synthetic", "seeds": 4, "variants": []map[string]any{{"policy": "spot"}}}); err != nil || r.IsError {
		t.Fatalf("%v, %s", err, textOf(t, r, 0))
	}
	before := len(got.all)
	a.answers(t, "eval", in)
	for _, token := range []string{"one", "two"} {
		all := got.received(token)
		runs, last := 0, -1.0
		for _, n := range all {
			if n.Progress <= last || n.Total != 0 && n.Progress > n.Total || n.Message == "" {
				t.Errorf("%s: %+v after %v", token, n, last)
			}
			last = n.Progress
			if n.Total > 0 {
				runs++
			}
		}
		if len(all) < 3 || runs == 0 {
			t.Errorf("%s: %d notifications, %d with a total: %+v", token, len(all), runs, all)
		}
	}
	if n := len(got.all); n != before {
		t.Errorf("%d notifications of progress that was not requested", n-before)
	}
}

// TestMCPCancel: a call that its agent cancels ends soon, the next one gets its place, and nothing
// is written.
func TestMCPCancel(t *testing.T) {
	in := long(t)
	t.Chdir(t.TempDir())
	begun := make(chan struct{}, 100_000)
	a := inMemory(t, func(n *sdk.ProgressNotificationParams) {
		if n.Total > 0 || strings.HasPrefix(n.Message, "waiting") {
			begun <- struct{}{}
		}
	})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() {
		_, err := a.asksWith(ctx, "long", "eval", in)
		ended <- err
	}()
	<-begun
	waits, stopWaiting := context.WithCancel(t.Context())
	defer stopWaiting()
	waited := make(chan error, 1)
	go func() {
		_, err := a.asksWith(waits, "waits", "eval", in)
		waited <- err
	}()
	a.answers(t, "policies", nil) // what does not simulate does not wait
	stopWaiting()
	stop()
	for _, c := range []chan error{ended, waited} {
		if err := <-c; err == nil {
			t.Error("a cancelled call has a result")
		}
	}
	// The place of the cancelled call is free: this would otherwise wait for minutes.
	limited, stopLimit := context.WithTimeout(t.Context(), time.Minute)
	defer stopLimit()
	r, err := a.asksWith(limited, "next", "eval", map[string]any{"scenarios": []string{"tiny"}, "policies": []string{"spot"},
		"windows": 1, "seeds": 1})
	if err != nil || r.IsError {
		t.Errorf("the next call: %v", err)
	}
	if files, err := os.ReadDir("."); err != nil || len(files) > 0 {
		t.Errorf("it wrote %v, %v", files, err)
	}
}

// A recorder is a writer that keeps what is written.
type recorder struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (r *recorder) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.Write(b)
}

func (r *recorder) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.String()
}

// TestMCPProcess: the program over its streams, as agents start it. Standard output has messages of
// the protocol and nothing else, and the process ends with its input, whatever it does.
func TestMCPProcess(t *testing.T) {
	program := otherSpotter(t, "v1")
	c := exec.Command(program, "mcp")
	var logs recorder
	c.Stderr = &logs
	a := connected(t, &sdk.CommandTransport{Command: c, TerminateDuration: time.Minute}, nil)
	a.answers(t, "policies", nil)
	text, _ := a.answers(t, "eval", map[string]any{"scenarios": []string{"tiny"}, "policies": []string{"spot"}, "windows": 1, "seeds": 1})
	if !strings.Contains(text, `"version":"v1"`) {
		t.Errorf("it is of another program: %.300s", text)
	}
	if r := a.asks(t, "eval", map[string]any{"scenarios": []string{"/dev/stdin"}}); !r.IsError ||
		!strings.Contains(textOf(t, r, 0), "carries the protocol") {
		t.Errorf("/dev/stdin: %s", textOf(t, r, 0))
	}
	if err := a.Close(); err != nil {
		t.Errorf("it did not end with its input: %v\n%s", err, logs.String())
	}
	if !strings.Contains(logs.String(), "tool=eval") {
		t.Errorf("the log is\n%s", logs.String())
	}

	// Every line of standard output is a message, and a comparison that would take minutes ends with
	// the input.
	c = exec.Command(program, "mcp")
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var out recorder
	c.Stdout = &out
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	arguments, err := json.Marshal(long(t))
	if err != nil {
		t.Fatal(err)
	}
	sent := func(wanted []string, lines ...string) {
		t.Helper()
		for _, line := range lines {
			if _, err := io.WriteString(in, line+"\n"); err != nil {
				t.Fatal(err)
			}
		}
		testenv.Eventually(t, "calls are answered", func() error {
			for _, want := range wanted {
				if !strings.Contains(out.String(), want) {
					return fmt.Errorf("there is no %s in %q", want, out.String())
				}
			}
			return nil
		})
	}
	sent([]string{`"id":2`, `"id":3`},
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"validate","arguments":{"scenarios":["tiny","none.yaml"]}}}`,
		`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"eval","arguments":{"scenarios":["tiny"],"policies":["portfolio"],"windows":1,"seeds":1},"_meta":{"progressToken":"p"}}}`)
	sent([]string{`"progressToken":"q"`},
		`{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"eval","arguments":`+string(arguments)+`,"_meta":{"progressToken":"q"}}}`)
	_ = in.Close()
	if err := c.Wait(); err != nil || strings.Contains(out.String(), `"run_count":16000`) {
		t.Errorf("%v: the comparison was not stopped: %t", err, err == nil)
	}
	for line := range strings.Lines(out.String()) {
		var m struct{ JSONRPC string }
		if err := json.Unmarshal([]byte(line), &m); err != nil || m.JSONRPC != "2.0" {
			t.Errorf("%v: no message: %s", err, line)
		}
	}
}
