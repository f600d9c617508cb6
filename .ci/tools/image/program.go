package main

import (
	"debug/buildinfo"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

// program is the path of the program in the image.
const program = "usr/bin/spotter"

// goEnv is what the program is built with for an architecture. It needs cgo, by which
// it loads ONNX Runtime, and so a C compiler for that architecture.
func goEnv(arch string) ([]string, error) {
	env := []string{"CGO_ENABLED=1", "GOOS=linux", "GOARCH=" + arch}
	if arch == runtime.GOARCH && runtime.GOOS == "linux" {
		return env, nil
	}
	p := platforms[arch]
	if _, err := exec.LookPath(p.compiler); err != nil {
		return nil, wrong(fmt.Errorf("building for %s: %w: Debian has it in %s", arch, err, p.packages))
	}
	return append(env, "CC="+p.compiler), nil
}

// compile builds the program and returns its file.
func (b *builder) compile(arch string) (string, error) {
	env, err := goEnv(arch)
	if err != nil {
		return "", err
	}
	out := filepath.Join(b.work, "spotter-"+arch)
	return out, b.run(b.root, env, "go", "build", "-trimpath", "-gcflags=all=-dwarf=false", "-buildvcs=false",
		"-ldflags", "-s -w -X main.version="+b.version, "-o", out, "./cmd/spotter")
}

// programTree returns the program with its licences and those of all modules that
// are linked into it.
func (b *builder) programTree(compiled string) (tree, error) {
	binary, err := os.ReadFile(compiled)
	if err != nil {
		return nil, err
	}
	t := tree{program: {Mode: 0o755, Data: binary}}
	own, err := os.ReadFile(filepath.Join(b.root, "LICENSE"))
	if err != nil {
		return nil, err
	}
	t["usr/share/doc/spotter/LICENSE"] = file(own)
	return t, b.addLicences(t, compiled)
}

// licenceName is what files with licences and notices are called.
var licenceName = regexp.MustCompile(`(?i)^(licen[cs]es?|copying|notices?|copyright|patents|authors)([-._].*)?$`)

// addLicences adds the licences of the modules that a program is built from: the licence
// files in the folder of each linked package and in the folders above it, up to its module.
// A module without a licence is an error, since it must not be redistributed.
func (b *builder) addLicences(t tree, compiled string) error {
	info, err := buildinfo.ReadFile(compiled)
	if err != nil {
		return err
	}
	missing := map[string]bool{}
	for _, m := range info.Deps {
		missing[m.Path] = true
	}
	env := os.Environ()
	tags := ""
	for _, s := range info.Settings {
		switch s.Key {
		case "GOOS", "GOARCH", "CGO_ENABLED":
			env = append(env, s.Key+"="+s.Value)
		case "-tags":
			tags = s.Value
		}
	}
	cmd := exec.Command("go", "list", "-deps", "-tags="+tags, "-f",
		"{{with .Module}}{{.Path}}\t{{.Version}}\t{{.Dir}}\t{{$.Dir}}{{end}}", "./cmd/spotter")
	cmd.Dir, cmd.Env, cmd.Stderr = b.root, env, b.said
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("go list: %w", err)
	}
	for line := range strings.Lines(string(out)) {
		f := strings.Split(strings.TrimSpace(line), "\t")
		if len(f) != 4 || f[1] == "" {
			continue // the standard library, or this module
		}
		n, err := addLicencesOf(t, f[0]+"@"+f[1], f[2], f[3])
		if err != nil {
			return err
		}
		if n > 0 {
			delete(missing, f[0])
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("modules without a licence: %s", strings.Join(sortedKeys(missing), ", "))
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return err
	}
	n, err := addLicencesOf(t, "go", strings.TrimSpace(string(root)), strings.TrimSpace(string(root)))
	if err == nil && n == 0 {
		err = errors.New("the Go distribution has no LICENSE file")
	}
	return err
}

// addLicencesOf adds the files with licences in dir and above, up to the folder of
// the module, and returns how many there are.
func addLicencesOf(t tree, module, top, dir string) (int, error) {
	n := 0
	for ; strings.HasPrefix(dir, top); dir = filepath.Dir(dir) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return 0, err
		}
		rel, err := filepath.Rel(top, dir)
		if err != nil {
			return 0, err
		}
		for _, e := range entries {
			if !e.Type().IsRegular() || !licenceName.MatchString(e.Name()) ||
				slices.Contains([]string{".go", ".sh", ".py"}, filepath.Ext(e.Name())) {
				continue
			}
			n++
			data, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if err != nil {
				return 0, err
			}
			t[path.Join(licencesOf, module, filepath.ToSlash(rel), e.Name())] = file(data)
		}
	}
	return n, nil
}
