package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/internal/cli"
)

// A treatment is how a command of a page is run where it is not run as it stands.
type treatment struct {
	// leave says why it is not run; on a cluster says that it is run there alone.
	leave   string
	cluster bool

	// before is what a shell does before: it makes what the text of the page speaks of.
	before string

	// exits are the exit codes other than 0 that are accepted.
	exits []int

	// begins says that it runs at the same time as those that come after it, and meets is called
	// when it has begun.
	begins bool
	meets  func(*clone)

	// says is what must be in what it prints.
	says string
}

// A page is a document whose commands are run, in their order.
type page struct {
	name     string
	commands map[string]treatment // by the command, or by its beginning up to "…"
}

const (
	isScreen  = "it takes a terminal: the tests of tui play it"
	isRelease = "it takes what a release has published"
	isInstall = "test/install runs it with a release that is made here"
)

// pagesRun are the documents whose commands are run.
var pagesRun = []page{
	{"README.md", map[string]treatment{
		"make run":  {leave: "it has made the program that runs these, and compares for minutes"},
		"make test": {leave: "it is what runs this"},
		"curl…":     {leave: isInstall}, "./spotter eval…": {leave: isInstall}, "./spotter tui": {leave: isInstall},
		"spotter try":     {cluster: true, says: "You pay about"},
		"bin/spotter tui": {leave: isScreen},
		"bin/spotter eval my-scenario.yaml --gate…": {before: "bin/spotter scenario show web-week > my-scenario.yaml",
			exits: []int{cli.ExitFailed}},
		"spotter run…":      {cluster: true, begins: true, meets: (*clone).decides},
		"kubectl get cpool": {cluster: true, says: "general"},
	}},
	{"docs/quickstart.md", map[string]treatment{
		"spotter try":                       {cluster: true, says: "You pay about"},
		"make build":                        {leave: "it is what has made the program that runs these"},
		"kubectl create namespace…":         {cluster: true},
		"bin/spotter crds | kubectl apply…": {cluster: true, says: "serverside-applied"},
		"cat > pool.yaml…":                  {cluster: true},
		"kubectl apply --server-side…":      {cluster: true},
		"cat > config.yaml…":                {cluster: true},
		"bin/spotter run…": {cluster: true, begins: true,
			before: `sed -i "s|^metrics:.*|metrics: {bindAddress: '$METRICS', secure: false}|" config.yaml`, meets: (*clone).decides},
		"kubectl get cpool": {cluster: true, says: "general"},
		"kubectl describe…": {cluster: true, says: "Last Decision Id"},
		"bin/spotter explain…": {cluster: true,
			before: "kill -INT $(cat running) && while kill -0 $(cat running) 2>/dev/null; do sleep 0.2; done", says: "general"},
		"bin/spotter tui --live…":            {leave: isScreen},
		"bin/spotter crds | kubectl delete…": {cluster: true, says: "deleted"},
		"kubectl delete namespace…":          {cluster: true},
	}},
	{"docs/run.md", map[string]treatment{
		"spotter run --kubeconfig…":      {cluster: true, begins: true, meets: (*clone).decides},
		"spotter run --config…":          {leave: "it is that of a pod: charts/install_test.go runs it with the configuration of the chart"},
		"kubectl get cpool…":             {cluster: true, says: "general"},
		"kubectl -n spotter create…":     {cluster: true},
		"kubectl -n spotter annotate…":   {cluster: true, says: "annotated"},
		"spotter run --policies model:…": {leave: "it takes a trained bundle: TestRunModel… run one"},
		"kubectl patch cpool web…":       {cluster: true, before: "sed s/general/web/ pool.yaml | kubectl apply -f -", says: "patched"},
	}},
	{"docs/migration.md", map[string]treatment{
		"spotter convert…":         {leave: "it takes manifests of other systems: the tests of convert have them"},
		"kubectl get cpool…":       {cluster: true, before: "sed s/general/web/ pool.yaml | kubectl apply -f -", says: "portfolio"},
		"kubectl patch cpool web…": {cluster: true, says: "patched"},
	}},
	{"docs/install.md", map[string]treatment{
		"helm…":                        {leave: "charts/install_test.go installs and tests the release"},
		"kubectl get cpool":            {cluster: true},
		"kubectl apply --server-side…": {leave: "charts/installyaml_test.go applies it, twice"},
		"skopeo…":                      {leave: isRelease}, "bin/imagetool…": {leave: isRelease}, "ctr…": {leave: isRelease},
		"--set…": {leave: "it is a value: charts/render_test.go renders with it"},
		"spotter cleanup --namespace spotter --dry…": {cluster: true},
		"spotter cleanup --namespace spotter --dep…": {leave: "charts/install_test.go runs it as the job of the release"},
		"kubectl delete crd…":                        {cluster: true, says: "deleted"},
		"kubectl delete namespace…": {cluster: true,
			before: "kubectl create namespace spotter --dry-run=client -o yaml | kubectl apply -f -"},
	}},
	{"docs/rackspace.md", map[string]treatment{
		"kubectl -n spotter-system create secret…": {cluster: true,
			before: "kubectl create namespace spotter-system; echo token > token.txt", says: "created"},
	}},
	{"docs/bill.md", map[string]treatment{
		"spotter bill web-week --policy…": {says: "rows, $"},
		"spotter bill results.parquet…":   {says: "bill.csv"},
		"spotter bill steps…":             {says: "left between two steps"},
	}},
	{"docs/budgets.md", nil},
	{"docs/kueue.md", map[string]treatment{
		"spotter sim docs/examples/kueue-spot.yaml…":  {says: "research"},
		"spotter eval docs/examples/kueue-spot.yaml…": {says: "on-demand"},
	}},
	{"docs/nodepools.md", map[string]treatment{
		"spotter scenario validate…": {says: "good"},
		"spotter eval mine.yaml…":    {says: "as-is"},
	}},
	{"docs/asg.md", map[string]treatment{
		"aws autoscaling…": {leave: "it takes an account of AWS: a group that is made up stands in"},
		"spotter scenario validate…": {before: `cat >> mine.yaml <<'EOF'
---
{"AutoScalingGroups": [{"AutoScalingGroupName": "web", "MinSize": 0, "MaxSize": 9, "DesiredCapacity": 2, "DefaultCooldown": 300,
  "AvailabilityZones": ["us-east-1a"], "HealthCheckType": "EC2", "HealthCheckGracePeriod": 300, "TerminationPolicies": ["Default"],
  "MixedInstancesPolicy": {"LaunchTemplate": {"Overrides": [{"InstanceType": "m5.xlarge"}, {"InstanceType": "m5a.xlarge"}]},
    "InstancesDistribution": {"OnDemandBaseCapacity": 1, "OnDemandPercentageAboveBaseCapacity": 0, "SpotAllocationStrategy": "price-capacity-optimized"}}}]}
EOF`, says: "good"},
	}},
	{"docs/explain.md", map[string]treatment{
		"spotter replay steps --policy…": {exits: []int{cli.ExitFailed}},
	}},
	{"docs/plot.md", nil},
	{"docs/whatif.md", map[string]treatment{
		"spotter whatif cluster.yaml --set…":        {before: "spotter scenario show tiny | sed 's|{name: general}|{name: general, annotations: {spotter.dev/capacity-types: on-demand}}|' > cluster.yaml", says: "consolidateAfter=30m"},
		"spotter whatif cluster.yaml --allow-spot…": {says: "savings plan 60%"},
		"spotter whatif cluster.yaml --nodepools…":  {before: "mkdir pools && sed -n '/^kind: CapacityPool/,/^---/p' cluster.yaml | sed '1i apiVersion: spotter.dev/v1alpha1' > pools/general.yaml", says: "nodepools pools/"},
		"spotter whatif cluster.yaml --sweep…":      {says: "no knee"},
	}},
	{"docs/sweep.md", map[string]treatment{
		"spotter sweep plan.yaml…": {says: "fresh seeds"},
	}},
	{"docs/scenarios.md", map[string]treatment{"spotter scenario hunt…": {leave: "the tests of spotter-lab run it"}}},
	{"docs/capture.md", map[string]treatment{
		"spotter capture --out cluster.yaml --trace…": {leave: "it takes a recording of your own: TestCapture… run one"},
		"spotter capture --out cluster.yaml --anon…":  {cluster: true, says: "cluster.yaml"},
		"spotter capture --out then.yaml…":            {leave: "its date is that of a recording of your own: TestCapture… run one"},
		"spotter sim cluster.yaml":                    {cluster: true},
		"spotter eval cluster.yaml…":                  {cluster: true, says: "portfolio"},
	}},
}

// pagesLeft are those whose commands are not run here, with the reason.
var pagesLeft = map[string]string{
	"docs/acceptance.md":        "it takes recordings that are not in the repository: make acceptance",
	"docs/azure.md":             "it takes prices of Azure: TestAzureShadow runs try and run beside a server that plays them",
	"docs/gcp.md":               "it takes prices of Google: TestGCPShadow runs try and run beside a server that plays them",
	"docs/ci.md":                "the tests of the action run them",
	"docs/shards.md":            "TestShards and TestShardsOnKubernetes merge parts",
	"docs/commitments.md":       "it is a comparison of minutes: eval has the scenario among its own",
	"docs/e2e.md":               "it takes minutes by itself: make e2e",
	"docs/fidelity.md":          "they take minutes by themselves, and CI runs them",
	"docs/reference-eval.md":    "it takes a recording of your own",
	"docs/market.md":            "it takes recordings: the tests of spotter-lab run its commands on small ones",
	"docs/record.md":            "it takes an account of AWS: TestTraceRecord runs it beside a server that plays one",
	"docs/recording.md":         "it is that of a pod, and takes a bucket: TestRecord… run it beside a server that plays one",
	"docs/reference-cli.md":     "TestReadmeCommands reads the examples of help",
	"docs/reference-metrics.md": "jsonnet-bundler fetches from GitHub: TestMixin renders what it would",
	"docs/reference-lab.md":     "the tests of spotter-lab run them",
	"docs/report.md":            "it is a comparison of minutes: TestEvalReport writes one, TestEvalCompareFiles compares two",
	"docs/tui.md":               isScreen,
	"docs/verify.md":            isRelease,
	"docs/history.md":           "it takes a Prometheus and logs: TestCaptureSince and TestCaptureAudit run it beside some that are made up",
}

// blockOf matches a block of commands, and hereDoc the start of a here-document in one.
var (
	blockOf = regexp.MustCompile("(?ms)^```sh\n(.*?)^```")
	hereDoc = regexp.MustCompile(`<<'?(\w+)'?`)
)

// commandsOf returns the commands of a page, those of several lines as one.
func commandsOf(t *testing.T, name string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", name))
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, block := range blockOf.FindAllStringSubmatch(string(text), -1) {
		open, end := "", ""
		for _, line := range strings.Split(strings.TrimSuffix(block[1], "\n"), "\n") {
			open += line + "\n"
			m := hereDoc.FindStringSubmatch(line)
			switch {
			case end != "" && line != end, end == "" && strings.HasSuffix(line, `\`):
				continue
			case end == "" && m != nil:
				end = m[1]
				continue
			}
			if c := strings.TrimSpace(open); c != "" && !strings.HasPrefix(c, "#") {
				all = append(all, c)
			}
			open, end = "", ""
		}
		if open != "" {
			t.Errorf("%s: a command does not end: %s", name, open)
		}
	}
	return all
}

// of returns how a command is treated, and the key by which it is known.
func (p *page) of(command string) (key string, how treatment) {
	plain, _, _ := strings.Cut(command, " #")
	plain = strings.TrimSpace(plain)
	for k, x := range p.commands {
		begin, open := strings.CutSuffix(k, "…")
		if (plain == begin || open && strings.HasPrefix(plain, begin)) && len(k) > len(key) {
			key, how = k, x
		}
	}
	return key, how
}

// TestCommandsAreRun: the commands of every page are run by a test, or left for a
// reason; and what is said of a command is said of one that is there.
func TestCommandsAreRun(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join("..", "..", "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"README.md"}
	for _, p := range pages {
		names = append(names, "docs/"+filepath.Base(p))
	}
	ran := 0
	for _, name := range names {
		commands := commandsOf(t, name)
		at := slices.IndexFunc(pagesRun, func(p page) bool { return p.name == name })
		switch {
		case len(commands) > 0 && at < 0 && pagesLeft[name] == "":
			t.Errorf("nobody runs the commands of %s", name)
		case at >= 0 && (len(commands) == 0 || pagesLeft[name] != ""):
			t.Errorf("%s has %d commands, and is left for %q", name, len(commands), pagesLeft[name])
		}
		if at < 0 {
			continue
		}
		met := map[string]bool{}
		for _, c := range commands {
			key, how := pagesRun[at].of(c)
			met[key] = true
			if how.leave == "" {
				ran++
			}
		}
		for key := range pagesRun[at].commands {
			if !met[key] {
				t.Errorf("%s has no command %q any more", name, key)
			}
		}
	}
	if ran < 45 {
		t.Errorf("only %d commands are run", ran)
	}
	for name := range pagesLeft {
		if !slices.Contains(names, name) || len(commandsOf(t, name)) == 0 {
			t.Errorf("%s, which is left, has no commands", name)
		}
	}
}

// A clone is where commands are run: a folder that looks like one of the repository.
type clone struct {
	t           *testing.T
	dir         string
	environment []string
	flags       string // more flags for a controller: other processes may use the default ports
	decided     func() // waits until the controller that was begun has decided
}

// decides waits until what was begun has decided.
func (x *clone) decides() { x.decided() }

// binary builds the program once for all tests and benchmarks.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "spotter-test-*")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "spotter")
	out, err := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-o", path, ".").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, nil
})

// built returns the program as a user builds it, without the race detector, unless
// SPOTTER names it.
func built(t testing.TB) string {
	t.Helper()
	if path := os.Getenv("SPOTTER"); path != "" {
		return path
	}
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// newClone makes one that has the program.
func newClone(t *testing.T, program string) *clone {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	x := &clone{t: t, dir: filepath.Join(t.TempDir(), "spotter")}
	if err := os.MkdirAll(filepath.Join(x.dir, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(program, filepath.Join(x.dir, "bin", "spotter")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"live", "charts", "docs"} {
		if err := os.Symlink(filepath.Join(root, name), filepath.Join(x.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	x.environment = append(os.Environ(), "HOME="+x.dir, "PATH="+filepath.Join(x.dir, "bin")+":"+os.Getenv("PATH"))
	return x
}

// shell runs a text as bash does, and returns its exit code and what it prints.
func (x *clone) shell(text string) (int, string) {
	x.t.Helper()
	cmd := exec.CommandContext(x.t.Context(), "bash", "-euo", "pipefail", "-c", text)
	cmd.Dir, cmd.Env = x.dir, x.environment
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		x.t.Fatalf("%s: %v", text, err)
	}
	return cmd.ProcessState.ExitCode(), out.String()
}

// seedsFlag matches the flag that says how often a comparison is made.
var seedsFlag = regexp.MustCompile(` --seeds \S+`)

// oneSeed returns a command as it is run: comparisons once and not twenty times.
func oneSeed(command string) string {
	plain, _, _ := strings.Cut(command, " #")
	plain = strings.TrimSpace(plain)
	if fields := strings.Fields(plain); len(fields) < 2 || fields[1] != "eval" {
		return command
	}
	return seedsFlag.ReplaceAllString(plain, "") + " --seeds 1"
}

// run runs the commands of a page: those for a cluster, or the others.
func (x *clone) run(p *page, cluster bool) int {
	x.t.Helper()
	n := 0
	for _, command := range commandsOf(x.t, p.name) {
		_, how := p.of(command)
		if how.leave != "" || how.cluster != cluster {
			continue
		}
		n++
		if code, out := x.shell(how.before); code != 0 {
			x.t.Errorf("%s: before %s: exit %d\n%s", p.name, command, code, out)
		}
		if how.begins {
			x.begin(command)
			how.meets(x)
			continue
		}
		begun := time.Now()
		code, out := x.shell(oneSeed(command))
		x.t.Logf("%v: %s", time.Since(begun).Round(time.Second/10), oneSeed(command))
		if code != 0 && !slices.Contains(how.exits, code) || !strings.Contains(out, how.says) {
			x.t.Errorf("%s: %s\nexit %d, want %q in\n%s", p.name, command, code, how.says, out)
		}
	}
	return n
}

// begin starts a command that runs at the same time as those that come after it, until the page is done. Its
// number is in the file "running".
func (x *clone) begin(command string) {
	x.t.Helper()
	plain, _, _ := strings.Cut(command, " #")
	cmd := exec.Command("bash", "-c", "echo $$ > running; exec "+plain+x.flags)
	cmd.Dir, cmd.Env = x.dir, x.environment
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		x.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	x.t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt) // it may have ended
		if err := <-ended; err != nil {
			x.t.Errorf("%s: %v\n%s", command, err, out.String())
		} else if x.t.Failed() {
			x.t.Logf("%s\n%s", command, out.String())
		}
	})
}

// TestCommandsOfPages runs the commands of the pages that need no cluster.
func TestCommandsOfPages(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program, and simulates for a minute")
	}
	recentPrices(t)
	program, ran := built(t), 0
	for _, p := range pagesRun {
		t.Run(filepath.Base(p.name), func(t *testing.T) { ran += newClone(t, program).run(&p, false) })
	}
	if !t.Failed() && ran < 20 {
		t.Errorf("%d commands were run", ran)
	}
}
