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
	"strings"
	"testing"
)

// TestActionFetch: the step takes the release that the action is of, whichever way it is
// pinned, and runs nothing that has another sum.
func TestActionFetch(t *testing.T) {
	var archive bytes.Buffer
	z := gzip.NewWriter(&archive)
	w := tar.NewWriter(z)
	const program = "#!/bin/sh\necho released\n"
	if err := errors.Join(w.WriteHeader(&tar.Header{Name: "spotter", Mode: 0o755, Size: int64(len(program))}), func() error {
		_, err := io.WriteString(w, program)
		return err
	}(), w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	name, err := exec.CommandContext(t.Context(), "sh", "-c", "printf spotter_$(uname -s)_$(uname -m).tar.gz").Output()
	if err != nil {
		t.Fatal(err)
	}
	sum := fmt.Sprintf("%x", sha256.Sum256(archive.Bytes()))
	commit, object, other := strings.Repeat("1", 40), strings.Repeat("2", 40), strings.Repeat("3", 40)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/info/refs": // as a server that does not speak to git
			fmt.Fprintf(w, "%s\trefs/tags/v0\n%s\trefs/tags/v0.2.0\n%s\trefs/tags/v0.2.0^{}\n%s\trefs/tags/v0.1.0\n", commit, object, commit, other)
		case "/releases/download/v0.2.0/checksums.txt":
			fmt.Fprintf(w, "%s  other.tar.gz\n%s  %s\n", other, sum, name)
		case "/releases/download/v0.2.0/" + string(name):
			if _, err := w.Write(archive.Bytes()); err != nil {
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
		{"a machine that nothing is released for", "v0.3.0 has no " + string(name), []string{"ACTION_REF=v0.3.0"}},
	} {
		said, out, code := step(t, "build", append(c.env, "SOURCE="+server.URL, "COMPARE=none", "BASE_SHA=", "BINARY=", "GIT_TERMINAL_PROMPT=0")...)
		if c.says != "" {
			if code != 2 || !strings.Contains(said, "::error title=spotter::") || !strings.Contains(said, c.says) || out["spotter"] != "" {
				t.Errorf("%s: exit %d, %v\n%s", c.name, code, out, said)
			}
			continue
		}
		if text, err := os.ReadFile(out["spotter"]); code != 0 || err != nil || string(text) != program {
			t.Errorf("%s: exit %d, %v, %q\n%s", c.name, code, err, text, said)
		}
	}
}
