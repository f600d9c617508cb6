package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// TestFaultsOfTheUser: errors that the user can fix end with 2, however deeply they are wrapped,
// and say what to do. Internal errors end with 3.
func TestFaultsOfTheUser(t *testing.T) {
	file := filepath.Join(t.TempDir(), "letter")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, asFolder := os.ReadDir(file)
	_, below := os.ReadFile(filepath.Join(file, "x"))
	_, asFile := os.ReadFile(filepath.Dir(file))
	_, request := http.Get("http://127.0.0.1:1/api") //nolint:bodyclose // nothing listens there
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	_, listen := net.Listen("tcp", taken.Addr().String())
	kind := &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "spotter.dev", Kind: "CapacityPool"},
		SearchedVersions: []string{"v1alpha1"}}
	pods := schema.GroupResource{Resource: "pods"}
	for want, err := range map[string]error{
		file + " is a file, and not a folder":                       asFolder,
		"letter/x: not a directory":                                 below,
		" is a folder, and not a file":                              asFile,
		"no such file":                                              &fs.PathError{Op: "open", Path: "none", Err: syscall.ENOENT},
		"http://127.0.0.1:1 does not answer: connection refused":    request,
		"spotter: the API server at x does not answer: no":          &UnreachableError{Server: "the API server at x", Err: errors.New("no")},
		"cannot listen on " + taken.Addr().String():                 listen,
		`the cluster has no kind CapacityPool of the API group "sp`: kind,
		"the API server refuses the credentials":                    apierrors.NewUnauthorized("no"),
		"pods \"a\" is forbidden":                                   apierrors.NewForbidden(pods, "a", errors.New("no")),
		"pods \"a\" not found":                                      apierrors.NewNotFound(pods, "a"),
		"come back later":                                           apierrors.NewServiceUnavailable("come back later"),
	} {
		var out bytes.Buffer
		code := Report(&out, fmt.Errorf("doing: %w", errors.Join(errors.New("a"), fmt.Errorf("more: %w", err))))
		if lines := strings.Split(strings.TrimSpace(out.String()), "\n"); code != ExitInvalid ||
			!strings.Contains(out.String(), want) || len(lines) < 2 {
			t.Errorf("%v: exit %d, want %q in\n%s", err, code, want, &out)
		}
	}
	for _, err := range []error{errors.New("x"), &fs.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC},
		apierrors.NewInternalError(errors.New("x"))} {
		if code := Report(&bytes.Buffer{}, err); code != ExitError {
			t.Errorf("%v: exit %d, want %d", err, code, ExitError)
		}
	}
}

// TestWords: libraries' errors reach the user in plain words, and with what they name.
func TestWords(t *testing.T) {
	var into struct {
		Runs []struct {
			Seed uint64 `json:"seed"`
		} `json:"runs"`
	}
	number := func(_ any, err error) error { return err }
	for want, err := range map[string]error{
		`f: field "runs.seed": want a whole number, 0 or more, got a text`: json.Unmarshal([]byte(`{"runs": [{"seed": "x"}]}`), &into),
		`f: field "runs": want a list, got a mapping`:                      json.Unmarshal([]byte(`{"runs": {}}`), &into),
		"f: the JSON ends too early":                                       json.Unmarshal([]byte(`{"runs": [`), &into),
		"f: not JSON at byte 1: ":                                          json.Unmarshal([]byte(`x`), &into),
		"f: line 2: ":                                                      yaml.Unmarshal([]byte("a:\n\tb: 1"), &into),
		`f: "x" is not a number`:                                           number(strconv.ParseFloat("x", 64)),
		"f: 1e999 is too large a number":                                   number(strconv.ParseFloat("1e999", 64)),
		"f: -9e999 is too small a number":                                  number(strconv.ParseFloat("-9e999", 64)),
		`f: "maybe" is not true or false`:                                  number(strconv.ParseBool("maybe")),
		`f: "x" is not a time such as`:                                     number(time.Parse(time.DateOnly, "x")),
	} {
		got := Words(fmt.Errorf("f: %w", err))
		if !strings.HasPrefix(got, want) || strings.Contains(got, "json:") || strings.Contains(got, "yaml:") {
			t.Errorf("%v:\n%s, want %s", err, got, want)
		}
	}
	for text, want := range map[string]string{
		"x.yaml: yaml: line 3: odd": "x.yaml: line 3: odd",
		"yaml: unmarshal errors:\n  line 1: cannot unmarshal !!seq into map[string]yaml.Node": "line 1: want a mapping, got a list",
		"line 1: cannot unmarshal !!str `four` into int32":                                    `line 1: want a whole number, got "four"`,
	} {
		if got := yamlWords(text); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
