package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// A k9sPlugin has the fields of a plugin of k9s:
// https://raw.githubusercontent.com/derailed/k9s/master/internal/config/json/schemas/plugins.json
type k9sPlugin struct {
	ShortCut, Description, Command string
	Scopes, Args                   []string
	Override, Confirm, Dangerous   bool
	Background, OverwriteOutput    bool
}

// k9sVariable is what k9s takes for a variable in an argument (envRX in internal/view/env.go).
var k9sVariable = regexp.MustCompile(`(\$(!?)([\w\-]+))|(\$\{(!?)([\w\-%/: ]+)})`)

// substitute returns an argument as k9s hands it on. It refuses unknown variables, as k9s does.
func substitute(arg string, variables map[string]string) (out string, err error) {
	out = k9sVariable.ReplaceAllStringFunc(arg, func(name string) string {
		value, known := variables[strings.Trim(name, "${}")]
		if !known {
			err = fmt.Errorf("k9s has no variable %s, in %s", name, arg)
		}
		return value
	})
	return out, err
}

// k9sCalls returns how a plugin calls spotter for the object under the cursor: the arguments of each call.
func k9sCalls(t *testing.T, home string, p k9sPlugin, variables map[string]string) [][]string {
	t.Helper()
	bin, calls := t.TempDir(), filepath.Join(t.TempDir(), "calls")
	// A capture makes its file, or the call after it would have none.
	stub := "#!/bin/sh\nprintf '%s\\n' \"$@\" -- >>'" + calls + "'\nwhile [ $# -gt 0 ]; do [ \"$1\" != --out ] || : >\"$2\" || exit 1; shift; done\n"
	for name, text := range map[string]string{"spotter": stub, "less": "#!/bin/sh\ncat\n"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	var args []string
	for _, a := range p.Args {
		arg, err := substitute(a, variables)
		if err != nil {
			t.Fatal(err)
		}
		args = append(args, arg)
	}
	c := exec.Command(p.Command, args...)
	c.Env = []string{"HOME=" + home, "PATH=" + bin + ":" + os.Getenv("PATH")}
	if out, err := c.CombinedOutput(); err != nil || len(out) > 0 {
		t.Fatalf("%s %q: %v\n%s", p.Command, args, err, out)
	}
	text, err := os.ReadFile(calls)
	if err != nil {
		t.Fatal(err)
	}
	var all [][]string
	for _, call := range strings.Split(strings.TrimSuffix(string(text), "\n--\n"), "\n--\n") {
		all = append(all, strings.Split(call, "\n"))
	}
	return all
}

// k9sFits reports whether a call is about the object under the cursor and the files of the cluster.
func k9sFits(c *cobra.Command, p k9sPlugin, about, cluster, folder string) bool {
	value := func(flag string) string { return c.Flag(flag).Value.String() }
	switch c.Name() {
	case "explain":
		return value("run") == folder && value("node")+value("pool") == "general" && (value("node") != "") == slices.Contains(p.Scopes, "nodes")
	case "capture":
		return value("context") == cluster && value("out") == folder+".yaml"
	case "whatif":
		return slices.Equal(c.Flags().Args(), []string{folder + ".yaml"}) &&
			(slices.Contains(p.Scopes, "nodes") || strings.Contains(strings.Join(p.Args, " "), `pool/"$NAME".spec.`))
	}
	return false
}

// TestK9s: k9s takes the plugins, and every call of theirs is one that the program takes, about the
// object under the cursor.
func TestK9s(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "deploy", "k9s", "plugins.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Plugins map[string]k9sPlugin }
	if err := yaml.UnmarshalStrict(text, &file); err != nil || len(file.Plugins) < 2 {
		t.Fatalf("%d plugins: %v", len(file.Plugins), err)
	}
	const cluster = "arn:aws:eks:us-east-1:1:cluster/prod"
	home, keys, offered := t.TempDir(), map[string]bool{}, map[string]bool{}
	for name, p := range file.Plugins {
		if !regexp.MustCompile(`^([a-z]|(Shift|Ctrl)-[A-Z])$`).MatchString(p.ShortCut) || p.Description == "" || len(p.Scopes) == 0 {
			t.Errorf("%s: %+v is no plugin", name, p)
		}
		about := "general"
		for _, scope := range p.Scopes {
			if key := scope + " " + p.ShortCut; keys[key] {
				t.Errorf("%s is taken twice", key)
			} else {
				keys[key] = true
			}
			if scope == "nodepools" {
				about = "general-spot"
			}
		}
		for _, args := range k9sCalls(t, home, p, map[string]string{"NAME": about, "CONTEXT": cluster}) {
			c, rest, err := root().Find(args)
			if err != nil || !c.Runnable() {
				t.Errorf("%s: spotter %q: %v", name, args, err)
				continue
			}
			if err := c.ParseFlags(rest); err != nil {
				t.Errorf("%s: spotter %q: %v", name, args, err)
			}
			if err := c.ValidateArgs(c.Flags().Args()); err != nil {
				t.Errorf("%s: spotter %q: %v", name, args, err)
			}
			if !k9sFits(c, p, about, cluster, filepath.Join(home, "spotter", cluster)) {
				t.Errorf("%s: spotter %q", name, args)
			}
			for _, scope := range p.Scopes {
				offered[scope+" "+c.Name()] = true
			}
		}
	}
	for _, want := range []string{"nodes explain", "nodes whatif", "nodepools explain", "nodepools whatif", "capacitypools explain", "capacitypools whatif"} {
		if !offered[want] {
			t.Errorf("there is no %s: %v", want, offered)
		}
	}
	if _, err := substitute(`~/"$CONTEXT" $HOME`, map[string]string{"CONTEXT": "a"}); err == nil {
		t.Error("a variable that k9s does not have is taken")
	}
}
