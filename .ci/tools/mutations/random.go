package main

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// guarding are the files whose lines are drawn at random: those that decide whether something is done to a cluster, and do it.
var guarding = []string{
	"policy/guard/*.go", "policy/gpubudget/*.go", "live/permit/*.go", "live/drain/*.go", "live/gpubudget/*.go",
	"live/asg/write.go", "live/karpenter/write.go", "live/rackspace/write.go",
}

// survivorsMax is the greatest part of random mutations that may survive.
const survivorsMax = 0.1

// swapped are the operators that take each other's place.
var swapped = map[token.Token]string{
	token.LAND: "||", token.LOR: "&&", token.LSS: "<=", token.LEQ: "<", token.GTR: ">=", token.GEQ: ">",
}

// An edit is one change of a guarding line: the bytes from begin to end of the file become text.
type edit struct {
	file       string
	line       int
	kind       string
	begin, end int
	text       string
}

// String names the edit as --at takes it. The number of bytes distinguishes edits of one line.
func (e edit) String() string { return fmt.Sprintf("%s:%d:%s:%d", e.file, e.line, e.kind, e.begin) }

// mutation returns the edit as a mutation of the tests of its package, those without a control plane.
func (e edit) mutation() mutation {
	return mutation{Name: e.String(), File: e.file, Packages: "./" + filepath.Dir(e.file), Run: ".", plain: true}
}

// apply returns the file as changed.
func (e edit) apply() ([]byte, error) {
	source, err := os.ReadFile(e.file)
	if err != nil {
		return nil, err
	}
	return slices.Concat(source[:e.begin], []byte(e.text), source[e.end:]), nil
}

// edits returns every edit of the guarding files, ascending.
func edits() ([]edit, error) {
	var all []edit
	for _, pattern := range guarding {
		files, err := filepath.Glob(pattern)
		if err != nil {
			return nil, err
		}
		if len(files) == 0 {
			return nil, fmt.Errorf("%w: no file is named %s", errTable, pattern)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			of, err := editsOf(file)
			if err != nil {
				return nil, err
			}
			all = append(all, of...)
		}
	}
	slices.SortFunc(all, func(a, b edit) int {
		return cmp.Or(cmp.Compare(a.file, b.file), cmp.Compare(a.begin, b.begin), cmp.Compare(a.kind, b.kind))
	})
	return all, nil
}

// editsOf returns the edits of one file.
func editsOf(file string) ([]edit, error) {
	source, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, file, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var all []edit
	at := func(p token.Pos) int { return set.Position(p).Offset }
	add := func(kind string, from, to token.Pos, text string) {
		all = append(all, edit{file, set.Position(from).Line, kind, at(from), at(to), text})
	}
	ast.Inspect(tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.IfStmt:
			cond := string(source[at(n.Cond.Pos()):at(n.Cond.End())])
			add("negate", n.Cond.Pos(), n.Cond.End(), "!("+cond+")")
			if n.Else == nil && leaves(n.Body) {
				add("drop", n.Cond.Pos(), n.Cond.End(), "("+cond+") && false")
			}
		case *ast.BinaryExpr:
			if to := swapped[n.Op]; to != "" {
				add("swap", n.OpPos, n.OpPos+token.Pos(len(n.Op.String())), to)
			}
		case *ast.ExprStmt:
			if call, ok := n.X.(*ast.CallExpr); ok && matters(call) {
				add("remove", n.Pos(), n.End(), "")
			}
		}
		return true
	})
	return all, nil
}

// leaves reports whether a block ends what it is in.
func leaves(b *ast.BlockStmt) bool {
	if len(b.List) == 0 {
		return false
	}
	switch b.List[len(b.List)-1].(type) {
	case *ast.ReturnStmt, *ast.BranchStmt:
		return true
	}
	return false
}

// quiet are the calls that no test can miss: of logs, of builders of text, of panics, and of locks, which only the race
// detector can.
var quiet = []string{"Lock", "Unlock", "RLock", "RUnlock", "Info", "Warn", "Error", "Debug", "Log", "panic", "Write",
	"WriteString", "WriteByte", "Fprintf", "Fprint"}

// matters reports whether a test could miss a call.
func matters(call *ast.CallExpr) bool {
	switch f := call.Fun.(type) {
	case *ast.SelectorExpr:
		return !slices.Contains(quiet, f.Sel.Name)
	case *ast.Ident:
		return !slices.Contains(quiet, f.Name)
	}
	return true
}

// runRandom tries n edits that seed draws, or those that are named, and returns how many were too many to survive. One
// that does not compile is replaced by the next.
func runRandom(n int, seed uint64, named []string) (tooMany int, err error) {
	all, err := edits()
	if err != nil {
		return 0, err
	}
	if len(named) > 0 {
		all = slices.DeleteFunc(all, func(e edit) bool { return !slices.Contains(named, e.String()) })
		if n = len(all); n < len(named) {
			return 0, fmt.Errorf("%w: of %q only %d are there: the code has changed since", errTable, named, n)
		}
	}
	lines := len(all)
	random := rand.New(rand.NewPCG(seed, 0))
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	folder, err := os.MkdirTemp("", "mutations")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(folder)
	tried, survivors := 0, []edit(nil)
	for i := 0; i < len(all) && tried < n; i++ {
		m := all[i].mutation()
		changed, err := all[i].apply()
		if err != nil {
			return 0, err
		}
		caught, compiles, err := try(&m, folder, changed)
		switch {
		case err != nil:
			return 0, err
		case !compiles && len(named) == 0:
			continue
		case !compiles:
			return 0, fmt.Errorf("%w: %s does not compile", errTable, m.Name)
		case !caught:
			survivors = append(survivors, all[i])
		}
		tried++
	}
	limit := int(survivorsMax * float64(tried))
	fmt.Printf("%d of %d possible mutations of guarding lines, seed %d: %d survived, %d may\n", tried, lines, seed,
		len(survivors), limit)
	for _, e := range survivors {
		line, err := lineOf(e)
		if err != nil {
			return 0, err
		}
		fmt.Printf("  %s:%d  %s %s\n      go run ./.ci/tools/mutations --at %s\n", e.file, e.line, e.kind, line, e)
	}
	return max(0, len(survivors)-limit), nil
}

// lineOf returns the line that an edit changes.
func lineOf(e edit) (string, error) {
	source, err := os.ReadFile(e.file)
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(bytes.Split(source, []byte("\n"))[e.line-1])), nil
}
