package policy_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A division says which tests run without the race detector, as the Makefile has it.
type division struct {
	// pure are packages of which nothing is raced, nor of apart ones, whose tests run other
	// programs. Of mixed ones and of commands only the tests that raced and racedCommands
	// match are.
	pure, apart, mixed, commands []string
	raced, racedCommands         *regexp.Regexp

	// plain matches the tests of all other packages that are not raced.
	plain *regexp.Regexp
}

// variable returns what the Makefile says that name is.
func variable(t *testing.T, text, name string) string {
	t.Helper()
	m := regexp.MustCompile(`(?m)^` + name + `\s*:?= *((?:.*\\\n)*.*)$`).FindStringSubmatch(text)
	if m == nil || strings.TrimSpace(m[1]) == "" {
		t.Fatalf("the Makefile has no %s", name)
	}
	return strings.Join(strings.Fields(strings.ReplaceAll(m[1], "\\\n", " ")), " ")
}

func readDivision(t *testing.T) division {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	pattern := func(name string) *regexp.Regexp {
		return regexp.MustCompile(strings.ReplaceAll(variable(t, string(text), name), "$$", "$"))
	}
	return division{
		pure: strings.Fields(variable(t, string(text), "PURE")), mixed: strings.Fields(variable(t, string(text), "MIXED")),
		commands: strings.Fields(variable(t, string(text), "COMMANDS")), apart: strings.Fields(variable(t, string(text), "APART")),
		raced: pattern("RACED_TESTS"), racedCommands: pattern("RACED_COMMANDS"), plain: pattern("PLAIN_TESTS"),
	}
}

// A source is the functions of a package: those of its tests, and all others.
type source struct {
	fset           *token.FileSet
	tests, program []*ast.FuncDecl
}

// parseFolder reads all files of a package, whatever their build constraints.
func parseFolder(t *testing.T, dir string) *source {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(names) == 0 {
		t.Fatalf("%s: no Go files, %v", dir, err)
	}
	s := &source{fset: token.NewFileSet()}
	for _, name := range names {
		f, err := parser.ParseFile(s.fset, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		s.add(f, strings.HasSuffix(name, "_test.go"))
	}
	return s
}

// add takes the functions of a file. What is initialised with a package counts as one
// of its functions, under the name of the variable.
func (s *source) add(f *ast.File, test bool) {
	to := &s.program
	if test {
		to = &s.tests
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			*to = append(*to, d)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				v, ok := spec.(*ast.ValueSpec)
				if !ok {
					continue
				}
				for _, name := range v.Names {
					body := &ast.BlockStmt{}
					for _, x := range v.Values {
						body.List = append(body.List, &ast.ExprStmt{X: x})
					}
					*to = append(*to, &ast.FuncDecl{Name: name, Type: &ast.FuncType{}, Body: body})
				}
			}
		}
	}
}

// starts returns the places in a function where goroutines start or synchronise: go, select,
// channels, the method Go of wait groups, timers with a function, and parallel tests. A package
// that only guards its state by a mutex or a Once starts no goroutine: a package that shares that
// state does, and is raced.
func starts(fset *token.FileSet, f *ast.FuncDecl) (at []string) {
	ast.Inspect(f, func(n ast.Node) bool {
		what := ""
		switch n := n.(type) {
		case *ast.GoStmt:
			what = "go"
		case *ast.SelectStmt:
			what = "select"
		case *ast.ChanType:
			what = "chan"
		case *ast.SelectorExpr:
			x, _ := n.X.(*ast.Ident)
			switch name := n.Sel.Name; {
			case name == "Go", name == "AfterFunc", name == "Parallel" && x != nil && x.Name == "t":
				what = name
			case x != nil && (x.Name == "testenv" || x.Name == "synctest") && (name == "New" || name == "Start" || name == "Test"):
				what = x.Name + "." + name
			}
		}
		if what != "" {
			at = append(at, fmt.Sprintf("%v: %s", fset.Position(n.Pos()), what))
		}
		return true
	})
	return at
}

// reached returns what the tests start, by the name of the test: themselves or by
// other functions of the test files. Methods of one name count as one, so that it finds
// rather too much.
func (s *source) reached() map[string][]string {
	own, calls := map[string][]string{}, map[string][]string{}
	for _, f := range s.tests {
		name := f.Name.Name
		if f.Recv != nil {
			name = "." + name
		}
		own[name] = append(own[name], starts(s.fset, f)...)
		calls[name] = append(calls[name], named(f)...)
	}
	all := map[string][]string{}
	for name := range calls {
		if !strings.HasPrefix(name, "Test") || name == "TestMain" {
			continue
		}
		all[name] = nil
		met, next := map[string]bool{}, []string{name}
		for len(next) > 0 {
			f := next[0]
			next = next[1:]
			if !met[f] {
				met[f] = true
				all[name] = append(all[name], own[f]...)
				next = append(next, calls[f]...)
			}
		}
	}
	return all
}

// named returns the names in a function, those after a dot with the dot.
func named(f *ast.FuncDecl) (names []string) {
	behind := map[*ast.Ident]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			behind[n.Sel] = true
		case *ast.Ident:
			if behind[n] {
				names = append(names, "."+n.Name)
			} else {
				names = append(names, n.Name)
			}
		}
		return true
	})
	return names
}

// all returns what the functions of a package start, of its program and its tests.
func (s *source) all() (at []string) {
	for _, f := range slices.Concat(s.program, s.tests) {
		at = append(at, starts(s.fset, f)...)
	}
	return at
}

// reaching returns the tests that start goroutines, of those that which chooses.
func (s *source) reaching(which func(test string) bool) (tests []string) {
	reached := s.reached()
	for _, name := range slices.Sorted(maps.Keys(reached)) {
		if len(reached[name]) > 0 && which(name) {
			tests = append(tests, fmt.Sprintf("%s: %s", name, reached[name][0]))
		}
	}
	return tests
}

// unraced returns the tests that start goroutines and that the variable, raced, does not
// name, and says so where it names none.
func (s *source) unraced(variable string, raced *regexp.Regexp) (wrong []string) {
	for _, w := range s.reaching(func(test string) bool { return !raced.MatchString(test) }) {
		wrong = append(wrong, variable+" must name "+w)
	}
	if !slices.ContainsFunc(slices.Collect(maps.Keys(s.reached())), raced.MatchString) {
		wrong = append(wrong, variable+" names none of its tests")
	}
	return wrong
}

// count returns how many of the lists have a package.
func count(p string, lists ...map[string]bool) (n int) {
	for _, l := range lists {
		if l[p] {
			n++
		}
	}
	return n
}

// TestRaced holds the division of the Makefile: only packages that start no goroutine may run
// without the race detector. New packages are raced until they are listed.
func TestRaced(t *testing.T) {
	d := readDivision(t)
	within := func(patterns []string) map[string]bool {
		all := map[string]bool{}
		for _, p := range list(t, patterns...) {
			all[p.ImportPath] = true
		}
		return all
	}
	pure, apart, mixed, commands := within(d.pure), within(d.apart), within(d.mixed), within(d.commands)
	for _, p := range list(t, "./...") {
		s := parseFolder(t, p.Dir)
		var wrong []string
		switch {
		case count(p.ImportPath, pure, apart, mixed, commands) > 1:
			wrong = append(wrong, "it is in more than one list")
		case pure[p.ImportPath]:
			for _, w := range s.all() {
				wrong = append(wrong, "PURE starts nothing: "+w)
			}
		case apart[p.ImportPath]:
			for _, f := range s.program {
				for _, w := range starts(s.fset, f) {
					wrong = append(wrong, "APART starts nothing but in tests: "+w)
				}
			}
		case mixed[p.ImportPath]:
			wrong = s.unraced("RACED_TESTS", d.raced)
		case commands[p.ImportPath]:
			wrong = s.unraced("RACED_COMMANDS", d.racedCommands)
		default:
			for _, w := range s.reaching(d.plain.MatchString) {
				wrong = append(wrong, "PLAIN_TESTS must not name "+w)
			}
		}
		for _, w := range wrong {
			t.Errorf("%s: %s", p.ImportPath, w)
		}
	}
}

// TestUnracedIsFound shows that goroutines are found wherever they begin.
func TestUnracedIsFound(t *testing.T) {
	for body, want := range map[string]int{
		"go f()": 1, "select {}": 1, "_ = make(chan int)": 1, "wg.Go(f)": 1, "t.Parallel()": 1, "time.AfterFunc(1, f)": 1,
		"_ = testenv.New(t, o)": 1, "synctest.Test(t, f)": 1, "mu.Lock()": 0, "once.Do(f)": 0, "f.Parallel()": 0,
	} {
		s := &source{fset: token.NewFileSet()}
		f, err := parser.ParseFile(s.fset, "p_test.go", "package p\nfunc TestX() { helper() }\nfunc TestY() {}\nfunc helper() { "+body+" }\n", 0)
		if err != nil {
			t.Fatal(err)
		}
		s.add(f, true)
		if got := s.all(); len(got) != want {
			t.Errorf("%s: found %q", body, got)
		}
		got := s.reaching(func(string) bool { return true })
		if len(got) != want || want > 0 && !strings.HasPrefix(got[0], "TestX: ") {
			t.Errorf("%s: tests %q", body, got)
		}
	}
}
