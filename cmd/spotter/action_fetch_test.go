package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestActionFetch: the step takes the release that the action is of, whichever way it is
// pinned, and runs nothing that has another sum.
func TestActionFetch(t *testing.T) {
	archive, name := releasedArchive(t)
	sum := fmt.Sprintf("%x", sha256.Sum256(archive))
	commit, object, other := strings.Repeat("1", 40), strings.Repeat("2", 40), strings.Repeat("3", 40)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/info/refs": // as a server that does not speak to git
			fmt.Fprintf(w, "%s\trefs/tags/v0\n%s\trefs/tags/v0.2.0\n%s\trefs/tags/v0.2.0^{}\n%s\trefs/tags/v0.1.0\n", commit, object, commit, other)
		case "/releases/download/v0.2.0/checksums.txt":
			fmt.Fprintf(w, "%s  other.tar.gz\n%s  %s\n", other, sum, name)
		case "/releases/download/v0.2.0/" + name:
			if _, err := w.Write(archive); err != nil {
				t.Error(err)
			}
		case "/releases/download/v0.3.0/checksums.txt":
			fmt.Fprintf(w, "%s  other.tar.gz\n", other)
		default:
			http.NotFound(w, r)
		}
	}))
	defer server.Close()
	for _, c := range []struct {
		name, says string
		env        []string
	}{
		{"a version", "", []string{"ACTION_REF=v0.2.0"}},
		{"a tag that moves", "", []string{"ACTION_REF=v0"}},
		{"a commit", "", []string{"ACTION_REF=" + commit}},
		{"another version than the action's", "", []string{"ACTION_REF=v0.1.0", "VERSION=v0.2.0"}},
		{"the sum that it has", "", []string{"ACTION_REF=v0", "CHECKSUM=" + sum}},
		{"another sum", "has the SHA-256 " + sum + " and not " + other, []string{"ACTION_REF=v0", "CHECKSUM=" + other}},
		{"a branch", "no release of Spotter is at main", []string{"ACTION_REF=main"}},
		{"a version that is not there", "has no release v0.1.0", []string{"ACTION_REF=v0.1.0"}},
		{"a machine that nothing is released for", "v0.3.0 has no " + name, []string{"ACTION_REF=v0.3.0"}},
	} {
		said, out, code := step(t, "build", append(c.env, "SOURCE="+server.URL, "COMPARE=none", "BASE_SHA=", "BINARY=",
			"GIT_TERMINAL_PROMPT=0")...)
		if c.says != "" {
			if code != 2 || !strings.Contains(said, "::error title=spotter::") || !strings.Contains(said, c.says) || out["spotter"] != "" {
				t.Errorf("%s: exit %d, %v\n%s", c.name, code, out, said)
			}
			continue
		}
		if text, err := os.ReadFile(out["spotter"]); code != 0 || err != nil || string(text) != releasedProgram {
			t.Errorf("%s: exit %d, %v, %q\n%s", c.name, code, err, text, said)
		}
	}
}

// releasedProgram is used in place of the spotter program in a release.
const releasedProgram = "#!/bin/sh\necho released\n"

// releasedArchive returns the archive of a release for this machine, and its name.
func releasedArchive(t *testing.T) (archive []byte, name string) {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	err := w.WriteHeader(&tar.Header{Name: "spotter", Mode: 0o755, Size: int64(len(releasedProgram))})
	if err == nil {
		_, err = io.WriteString(w, releasedProgram)
	}
	if err = errors.Join(err, w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	text, err := exec.CommandContext(t.Context(), "sh", "-c", "printf spotter_$(uname -s)_$(uname -m).tar.gz").Output()
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), string(text)
}

// A gitlabJob is what a file for GitLab says that is done before Spotter runs.
type gitlabJob struct {
	Before []string `yaml:"before_script"`
}

// gitlabStarter returns the job that eval init writes for GitLab.
func gitlabStarter(t *testing.T) gitlabJob {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("internal", "eval", "starter", "gitlab.yaml"))
	var jobs map[string]gitlabJob
	if err == nil {
		err = yaml.Unmarshal(text, &jobs)
	}
	if err != nil || len(jobs["spotter"].Before) == 0 {
		t.Fatalf("%v, %v", jobs, err)
	}
	return jobs["spotter"]
}

// TestGitLabFetch: the job for GitLab installs the program of a release, and none whose
// sum is another or that has none.
func TestGitLabFetch(t *testing.T) {
	for _, tool := range []string{"bash", "curl", "sha256sum"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(err)
		}
	}
	archive, name := releasedArchive(t)
	for _, c := range []struct {
		sums string
		good bool
	}{
		{fmt.Sprintf("%x  %s\n%x  other.tar.gz\n", sha256.Sum256(archive), name, sha256.Sum256(nil)), true},
		{fmt.Sprintf("%x  %s\n", sha256.Sum256(nil), name), false},
		{fmt.Sprintf("%x  other.tar.gz\n", sha256.Sum256(archive)), false},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch strings.TrimPrefix(r.URL.Path, "/") {
			case name:
				_, _ = w.Write(archive) // curl says what is missing
			case "checksums.txt":
				_, _ = io.WriteString(w, c.sums)
			default:
				http.NotFound(w, r)
			}
		}))
		dir := t.TempDir()
		script := strings.NewReplacer("/tmp", dir, "/usr/local/bin", dir).Replace("set -eo pipefail\n" +
			strings.Join(gitlabStarter(t).Before, "\n"))
		run := exec.CommandContext(t.Context(), "bash", "-c", script) //nolint:gosec // a file of this repository
		run.Env = append(os.Environ(), "RELEASE="+server.URL)
		said, err := run.CombinedOutput()
		server.Close()
		text, _ := os.ReadFile(filepath.Join(dir, "spotter")) // it does not exist where it was refused
		if (err == nil) != c.good || (string(text) == releasedProgram) != c.good {
			t.Errorf("sums %q: %v, the program is %q\n%s", c.sums, err, text, said)
		}
	}
}
