package main

import (
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// An actionRun runs the steps of action.yml in order, as a runner does.
type actionRun struct {
	t      *testing.T
	known  map[string]string // the values of expressions, by their text
	env    []string
	repo   string
	said   string
	upload string // the folder that was uploaded
}

type actionStep struct {
	ID, If, Run, Uses string
	Env, With         map[string]string
	Continue          bool `yaml:"continue-on-error"`
}

// expression is one of action.yml.
var expression = regexp.MustCompile(`\$\{\{\s*([^}]*?)\s*\}\}`)

// expand replaces expressions by their values. As in a runner, the value of an unknown expression
// is empty.
func (a *actionRun) expand(text string) string {
	return expression.ReplaceAllStringFunc(text, func(x string) string { return a.known[expression.FindStringSubmatch(x)[1]] })
}

// holds evaluates the conditions that action.yml has.
func (a *actionRun) holds(condition string) bool {
	for _, part := range strings.Split(condition, " && ") {
		m := regexp.MustCompile(`^(\S+) (==|!=) '(.*)'$`).FindStringSubmatch(part)
		if m == nil {
			a.t.Fatalf("condition %q cannot be evaluated here", part)
		}
		if (a.known[m[1]] == m[3]) != (m[2] == "==") {
			return false
		}
	}
	return true
}

// doAll does all steps and returns the exit code of the first that ends the job.
func (a *actionRun) doAll(steps []actionStep) int {
	for _, s := range steps {
		if s.If != "" && !a.holds(s.If) {
			continue
		}
		if strings.HasPrefix(s.Uses, "actions/upload-artifact@") {
			a.upload = a.expand(s.With["path"])
			a.known["steps."+s.ID+".outputs.artifact-url"] = "https://github.example/o/r/actions/runs/1/artifacts/" + a.expand(s.With["name"])
			continue
		}
		if s.Run == "" {
			a.t.Fatalf("step %s is not run", s.Uses)
		}
		out := filepath.Join(a.t.TempDir(), "output")
		c := exec.CommandContext(a.t.Context(), "bash", "-eo", "pipefail", "-c", s.Run) //nolint:gosec // a step of this repository
		c.Dir = a.repo
		c.Env = append(append(os.Environ(), a.env...), "GITHUB_OUTPUT="+out)
		for name, value := range s.Env {
			c.Env = append(c.Env, name+"="+a.expand(value))
		}
		text, err := c.CombinedOutput()
		a.said += string(text)
		data, _ := os.ReadFile(out) // it does not exist where the step had no output
		for _, line := range strings.Split(string(data), "\n") {
			if name, value, ok := strings.Cut(line, "="); ok {
				a.known["steps."+s.ID+".outputs."+name] = value
			}
		}
		if err != nil && !s.Continue {
			return c.ProcessState.ExitCode()
		}
	}
	return 0
}

// A fixtureRepo is a repository with a scenario, as a user of the action has one.
type fixtureRepo struct {
	t   *testing.T
	dir string
}

func (f fixtureRepo) git(args ...string) string {
	f.t.Helper()
	c := exec.CommandContext(f.t.Context(), "git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.com",
		"-C", f.dir}, args...)...)
	out, err := c.CombinedOutput()
	if err != nil {
		f.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// commit writes the scenario with the policy static of a share of Spot and returns
// the commit.
func (f fixtureRepo) commit(share string) string {
	f.t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "scenarios", "library", "tiny.yaml"))
	if err != nil {
		f.t.Fatal(err)
	}
	changed := strings.Replace(string(text), "  mode: active",
		"  policy: {name: static, parameters: {share: \""+share+"\"}}\n  mode: active", 1)
	if err := os.WriteFile(filepath.Join(f.dir, "shop.yaml"), []byte(changed), 0o600); err != nil {
		f.t.Fatal(err)
	}
	f.git("add", "shop.yaml")
	f.git("commit", "-qm", "share "+share)
	return f.git("rev-parse", "HEAD")
}

// TestActionRun runs the action on a repository with a pull request: the first push creates a
// comment, the next one edits it, and where the base has no such file the comment shows the
// current state. The token of a fork has no permission to write a comment, but its summary and
// artifact have the text.
func TestActionRun(t *testing.T) {
	for _, tool := range []string{"bash", "jq", "git"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("the steps of the action need %s: %v", tool, err)
		}
	}
	repo := fixtureRepo{t, t.TempDir()}
	repo.git("init", "-q")
	repo.git("commit", "-q", "--allow-empty", "-m", "none")
	empty := repo.git("rev-parse", "HEAD")
	base := repo.commit("0.6")
	repo.commit("0.1")
	g := &fakeForge{comments: []fakeComment{{1, "Looks good to me."}}}
	server := httptest.NewServer(g)
	defer server.Close()

	a := runAction(t, repo, server.URL, base, "secret")
	text := secondComment(t, g)
	for _, want := range []string{"<!-- spotter eval: shop -->\n### ✗ Spotter: +$", "| shop.yaml, manifest | $",
		"| A month | Bill before | Bill after | Change |", "- ✗ compared with the files in ", "- ✓ manifest: outage\\_minutes.max &lt;= 99, is ",
		"\n1. +$", "less of the capacity is on Spot: ", "before `▁", "<details><summary>", "[The whole report, with charts](https://github.example/o/r/actions/runs/1/artifacts/spotter-shop)"} {
		if !strings.Contains(text, want) {
			t.Errorf("the comment has no %q:\n%.1500s", want, text)
		}
	}
	if a.code != 1 {
		t.Errorf("a change that is worse ends with %d\n%s", a.code, a.said)
	}
	for _, name := range []string{"report.html", "comment.md", "spotter.json", "spotter.xml"} {
		if info, err := os.Stat(filepath.Join(a.upload, name)); err != nil || info.Size() == 0 {
			t.Errorf("the artifact has no %s: %v", name, err)
		}
	}

	repo.commit("0.6")
	if a = runAction(t, repo, server.URL, base, "secret"); a.code != 0 {
		t.Errorf("no change ends with %d\n%s", a.code, a.said)
	}
	if text = secondComment(t, g); !strings.Contains(text, "### ✓ Spotter: no change, $") {
		t.Errorf("the comment is not brought up to date:\n%.400s", text)
	}

	g.comments = g.comments[:1]
	if a = runAction(t, repo, server.URL, empty, "secret"); a.code != 0 {
		t.Errorf("the first run ends with %d\n%s", a.code, a.said)
	}
	if text = secondComment(t, g); !strings.Contains(text, "There is nothing to compare with") ||
		!strings.Contains(text, "| shop.yaml, manifest | $") {
		t.Errorf("the first run does not show the state:\n%.600s", text)
	}

	g.status, g.writes = 403, 0
	if a = runAction(t, repo, server.URL, empty, "secret"); a.code != 0 || g.writes != 0 ||
		!strings.Contains(a.said, "::notice title=spotter::no comment") {
		t.Errorf("a fork ends with %d\n%s", a.code, a.said)
	}
	if a = runAction(t, repo, server.URL, empty, ""); a.code != 0 || !strings.Contains(a.said, "there is no token") {
		t.Errorf("without a token it ends with %d\n%s", a.code, a.said)
	}
	if summary, err := os.ReadFile(a.summary); err != nil || !strings.Contains(string(summary), "| shop.yaml, manifest | $") {
		t.Errorf("the summary of a fork has no comment: %v\n%s", err, summary)
	}
}

// secondComment returns the body of the comment behind the reviewer's.
func secondComment(t *testing.T, g *fakeForge) string {
	t.Helper()
	if len(g.comments) != 2 {
		t.Fatalf("%d comments, want 2", len(g.comments))
	}
	return g.comments[1].Body
}

// An actionResult is what a run of the action came to.
type actionResult struct {
	*actionRun
	code    int
	summary string
}

// runAction runs the action on the head of repo, as a job of a pull request.
func runAction(t *testing.T, repo fixtureRepo, api, base, token string) actionResult {
	t.Helper()
	var action struct {
		Inputs map[string]struct{ Default string }
		Runs   struct{ Steps []actionStep }
	}
	text, err := os.ReadFile(filepath.Join("..", "..", "action.yml"))
	if err == nil {
		err = yaml.Unmarshal(text, &action)
	}
	if err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]string{"github.action_path": root, "github.event.pull_request.base.sha": base}
	for name, in := range action.Inputs {
		known["inputs."+name] = in.Default
	}
	for name, value := range map[string]string{"binary": otherSpotter(t, "v1.0.0"), "scenarios": "shop.yaml",
		"seeds": "6", "baseline": "on-demand",
		"gates": "manifest:outage_minutes.max <= 99\n", "comment-key": "shop", "token": token} {
		known["inputs."+name] = value
	}
	summary := filepath.Join(t.TempDir(), "summary")
	env := slices.Concat(forges(t, api)["github"], []string{"GITHUB_STEP_SUMMARY=" + summary, "RUNNER_TEMP=" + t.TempDir()})
	a := &actionRun{t: t, known: known, env: env, repo: repo.dir}
	code := a.doAll(action.Runs.Steps)
	if token != "" && strings.Contains(a.said, token) {
		t.Errorf("the log has the token:\n%s", a.said)
	}
	return actionResult{a, code, summary}
}
