package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/spotter-dev/spotter/internal/cli"
)

// A fakeForge has the comments of one pull request of GitHub and of one merge request
// of GitLab, and answers as these do on the wire.
type fakeForge struct {
	mu       sync.Mutex
	comments []fakeComment
	writes   int
	status   int // of every write, 0 for what is right
}

type fakeComment struct {
	ID   int    `json:"id"`
	Body string `json:"body"`
}

// forgeRoutes are the paths of a list and of one comment, and the method that edits.
var forgeRoutes = []struct {
	list, one *regexp.Regexp
	edit      string
}{
	{regexp.MustCompile(`^/repos/o/r/issues/7/comments$`), regexp.MustCompile(`^/repos/o/r/issues/comments/(\d+)$`), http.MethodPatch},
	{regexp.MustCompile(`^/api/v4/projects/42/merge_requests/7/notes$`),
		regexp.MustCompile(`^/api/v4/projects/42/merge_requests/7/notes/(\d+)$`), http.MethodPut},
}

func (g *fakeForge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	var in fakeComment
	if data, err := io.ReadAll(r.Body); err == nil && len(data) > 0 && json.Unmarshal(data, &in) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if r.Header.Get("Authorization") != "Bearer secret" {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	for _, route := range forgeRoutes {
		one := route.one.FindStringSubmatch(r.URL.Path)
		switch {
		case route.list.MatchString(r.URL.Path) && r.Method == http.MethodGet:
			page, err := strconv.Atoi(r.URL.Query().Get("page"))
			if err != nil || r.URL.Query().Get("per_page") != "100" {
				w.WriteHeader(http.StatusUnprocessableEntity)
				return
			}
			from, to := min(100*(page-1), len(g.comments)), min(100*page, len(g.comments))
			_ = json.NewEncoder(w).Encode(slices.Concat([]fakeComment{}, g.comments[from:to]))
			return
		case g.status != 0 && (one != nil || route.list.MatchString(r.URL.Path)):
			w.WriteHeader(g.status)
			return
		case route.list.MatchString(r.URL.Path) && r.Method == http.MethodPost:
			g.writes++
			g.comments = append(g.comments, fakeComment{len(g.comments) + 1, in.Body})
			w.WriteHeader(http.StatusCreated)
			return
		case one != nil && r.Method == route.edit:
			id, err := strconv.Atoi(one[1])
			if err != nil || id < 1 || id > len(g.comments) {
				break
			}
			g.writes++
			g.comments[id-1].Body = in.Body
			return
		}
	}
	w.WriteHeader(http.StatusNotFound)
}

// forges are the variables of a job, by the forge that sets them, but for the token.
func forges(t *testing.T, server string) map[string][]string {
	t.Helper()
	return map[string][]string{
		"github": {"GITHUB_ACTIONS=true", "GITHUB_API_URL=" + server, "GITHUB_REPOSITORY=o/r",
			"GITHUB_EVENT_PATH=" + file(t, "event.json", `{"number": 9, "pull_request": {"number": 7}}`)},
		// The job is one of a fork, the project 41.
		"gitlab": {"GITLAB_CI=true", "CI_API_V4_URL=" + server + "/api/v4", "CI_PROJECT_ID=41",
			"CI_MERGE_REQUEST_PROJECT_ID=42", "CI_MERGE_REQUEST_IID=7"},
	}
}

// inJob makes the test a job with these variables and no others of a forge.
func inJob(t *testing.T, env []string) {
	t.Helper()
	for _, name := range []string{"GITHUB_ACTIONS", "GITHUB_TOKEN", "GITHUB_EVENT_PATH", "GITLAB_CI", "GITLAB_TOKEN", "CI_MERGE_REQUEST_IID"} {
		t.Setenv(name, "")
	}
	for _, x := range env {
		name, value, _ := strings.Cut(x, "=")
		t.Setenv(name, value)
	}
}

// TestComment: one comment, begun by what is new and edited in place, wherever among
// the others it stands, on both forges.
func TestComment(t *testing.T) {
	for _, name := range []string{"github", "gitlab"} {
		t.Run(name, func(t *testing.T) {
			g := &fakeForge{}
			for i := range 130 {
				g.comments = append(g.comments, fakeComment{i + 1, "look, it says <!-- spotter eval: default -->"})
			}
			server := httptest.NewServer(g)
			defer server.Close()
			inJob(t, forges(t, server.URL)[name])
			t.Setenv(strings.ToUpper(name)+"_TOKEN", "secret")
			comment := func(text string, more ...string) string {
				t.Helper()
				code, stdout, stderr := call(t, append([]string{"comment", file(t, "c.md", text)}, more...)...)
				if code != cli.ExitOK || strings.Contains(stdout+stderr, "secret") {
					t.Fatalf("exit %d: %s%s", code, stdout, stderr)
				}
				return stdout
			}
			const quiet = "<!-- spotter: nothing new -->\n"
			if comment(quiet + "a"); g.writes != 0 {
				t.Fatal("nothing new begins a comment")
			}
			const odd = "whole `$(report)` \"x\" ▁▂▃"
			comment(odd, "--link", "https://ci.example/artifacts/7")
			if want := "<!-- spotter eval: default -->\n" + odd +
				"\n[The whole report, with charts](https://ci.example/artifacts/7)\n"; len(g.comments) != 131 || g.comments[130].Body != want {
				t.Fatalf("%d comments, the last %q, want %q", len(g.comments), g.comments[len(g.comments)-1].Body, want)
			}
			if comment(odd, "--link", "https://ci.example/artifacts/7"); g.writes != 1 {
				t.Error("an equal comment is written again")
			}
			comment(quiet + "b")
			if want := "<!-- spotter eval: default -->\nb"; len(g.comments) != 131 || g.comments[130].Body != want {
				t.Errorf("it is not corrected: %q", g.comments[130].Body)
			}
			if comment("b", "--key", "other"); len(g.comments) != 132 {
				t.Error("two jobs share a comment")
			}
			for _, status := range []int{403, 404, 500} {
				g.status = status
				said, level := comment("c"), "::notice title=spotter::"
				if status == 500 {
					level = "::warning title=spotter::"
				}
				if !strings.Contains(said, "no comment: ") || !strings.Contains(said, fmt.Sprint(status)) ||
					strings.HasPrefix(said, level) != (name == "github") {
					t.Errorf("status %d: %s", status, said)
				}
			}
			server.Close()
			if said := comment("c"); !strings.Contains(said, "no comment: ") {
				t.Errorf("a server that is not there: %s", said)
			}
			t.Setenv(strings.ToUpper(name)+"_TOKEN", "")
			if said := comment("c"); !strings.Contains(said, "there is no token") {
				t.Errorf("a fork: %s", said)
			}
		})
	}
}

// TestCommentWrong: a job without a pull or merge request writes no comment, and invalid calls
// are refused.
func TestCommentWrong(t *testing.T) {
	text := file(t, "c.md", "a")
	inJob(t, []string{"GITHUB_ACTIONS=true", "GITHUB_TOKEN=secret", "GITHUB_EVENT_PATH=" +
		file(t, "event.json", `{"ref": "refs/heads/main"}`)})
	for _, env := range [][]string{nil, {"GITHUB_ACTIONS=", "GITLAB_CI=true", "GITLAB_TOKEN=secret"}} {
		for _, x := range env {
			name, value, _ := strings.Cut(x, "=")
			t.Setenv(name, value)
		}
		if code, stdout, stderr := call(t, "comment", text); code != cli.ExitOK ||
			!strings.Contains(stdout, "no pull or merge request: no comment") {
			t.Errorf("%v: exit %d: %s%s", env, code, stdout, stderr)
		}
	}
	wrongCallIs(t, "no such file", "comment", "nowhere.md")
	wrongCallIs(t, "FILE is missing", "comment")
	wrongCallIs(t, `--key: "a-->"`, "comment", text, "--key", "a-->")
	for _, link := range []string{"javascript:alert(1)", "https://a b", "https://x/)(", "report.html"} {
		wrongCallIs(t, "--link: ", "comment", text, "--link", link)
	}
	inJob(t, []string{"GITHUB_ACTIONS=true", "GITHUB_EVENT_PATH=" + file(t, "event.json", "{")})
	wrongCallIs(t, "GITHUB_EVENT_PATH: ", "comment", text)
	inJob(t, nil)
	wrongCallIs(t, "neither GITHUB_ACTIONS nor GITLAB_CI", "comment", text)
}
