package policy_test

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A ban is what some packages must not use, and what to do instead.
type ban struct {
	funcs   map[string]string // by import path and name
	imports map[string]string

	// order refuses goroutines, select, channels and ranges over maps.
	order bool
}

// clock, machine and decision are the bans. The assembly of the functions in
// machine differs by processor, and so do their last bits.
var (
	clock = map[string]string{
		"time.Now": "use Snapshot.Now", "time.Since": "use Snapshot.Now", "time.Until": "use Snapshot.Now",
		"time.Sleep": "return Plan.Wake", "time.After": "return Plan.Wake", "time.AfterFunc": "return Plan.Wake",
		"time.NewTimer": "return Plan.Wake", "time.NewTicker": "return Plan.Wake", "time.Tick": "return Plan.Wake",
	}
	machine = map[string]string{
		"math.Exp": portable, "math.Exp2": portable, "math.Expm1": portable, "math.Log": portable, "math.Log2": portable,
		"math.Log10": portable, "math.Log1p": portable, "math.Pow": portable, "math.Hypot": "use math.Sqrt",
		"math.FMA": "write the product and the sum", "math.Sin": "use a table", "math.Cos": "use a table",
		"math.Sincos": "use a table", "math.Tan": "use a table", "math.Tanh": portable,
		"math/rand.NormFloat64": chances, "math/rand.ExpFloat64": chances,
		"math/rand/v2.NormFloat64": chances, "math/rand/v2.ExpFloat64": chances,
	}
	decision = map[string]string{
		"maps.Keys": "sort the keys", "maps.Values": "sort the keys", "maps.All": "sort the keys",
	}
	outside = map[string]string{
		"os": "no I/O in a decision", "io": "no I/O in a decision", "net": "no I/O in a decision", "net/http": "no I/O in a decision",
		"log": "return a Reason", "log/slog": "return a Reason", "os/exec": "no I/O in a decision", "syscall": "no I/O in a decision",
		"math/rand": "no chance in a decision", "math/rand/v2": "no chance in a decision", "crypto/rand": "no chance in a decision",
		"unsafe": "no addresses in a decision", "context": "nothing hidden in a decision",
	}
)

const (
	portable = "use policy/portable"
	chances  = "use scenarios/chance"
)

// bansOn returns the bans for pkg: all of them for packages that decide, the clock for simulation,
// and the arithmetic for all packages whose results must be the same on every machine.
func bansOn(pkg string) []ban {
	var bans []ban
	if r := ruleOf(pkg); r != nil && r.decides {
		bans = append(bans, ban{funcs: clock, imports: outside, order: true}, ban{funcs: decision})
	}
	if anyMatches([]string{"sim", "models", "scenarios/chance", "scenarios/weather"}, pkg) {
		bans = append(bans, ban{funcs: clock})
	}
	if anyMatches([]string{"policy/...", "sim", "scenarios/...", "eval", "eval/format", "eval/oracle", "models"}, pkg) {
		bans = append(bans, ban{funcs: machine})
	}
	return bans
}

// TestPurity refuses the constructs through which the outside could enter a
// decision, and those whose result depends on the machine.
func TestPurity(t *testing.T) {
	patterns := []string{"./policy/...", "./sim", "./scenarios/...", "./eval", "./eval/format", "./eval/oracle", "./models"}
	exports := make(map[string]string)
	for _, p := range list(t, append([]string{"-export", "-deps"}, patterns...)...) {
		exports[p.ImportPath] = p.Export
	}
	for _, p := range list(t, patterns...) {
		name, _ := strings.CutPrefix(p.ImportPath, module+"/")
		bans := bansOn(name)
		if len(bans) == 0 || len(p.GoFiles) == 0 {
			continue
		}
		fset := token.NewFileSet()
		var files []*ast.File
		for _, file := range p.GoFiles {
			f, err := parser.ParseFile(fset, filepath.Join(p.Dir, file), nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, f)
		}
		for _, fault := range impurities(fset, p.ImportPath, files, exports, bans) {
			t.Error(fault)
		}
	}
}

// impurities returns where files break bans. The types of what they import are
// read from exports, the compiler's own files by import path.
func impurities(fset *token.FileSet, pkg string, files []*ast.File, exports map[string]string, bans []ban) []string {
	lookup := func(path string) (io.ReadCloser, error) {
		if exports[path] == "" {
			return nil, fmt.Errorf("no export data for %s", path)
		}
		return os.Open(exports[path])
	}
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}}
	conf := types.Config{Importer: importer.ForCompiler(fset, "gc", lookup)}
	if _, err := conf.Check(pkg, fset, files, info); err != nil {
		return []string{fmt.Sprintf("checking %s: %v", pkg, err)}
	}
	var wrong []string
	for _, f := range files {
		for _, b := range bans {
			for _, imp := range f.Imports {
				if why, bad := b.imports[strings.Trim(imp.Path.Value, `"`)]; bad {
					wrong = append(wrong, fmt.Sprintf("%v: import %s: %s", fset.Position(imp.Pos()), imp.Path.Value, why))
				}
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if fault := b.breaks(info, n); fault != "" {
					wrong = append(wrong, fmt.Sprintf("%v: %s", fset.Position(n.Pos()), fault))
				}
				return true
			})
		}
	}
	slices.Sort(wrong)
	return wrong
}

// breaks returns how the node n breaks b, "" if it does not.
func (b *ban) breaks(info *types.Info, n ast.Node) string {
	switch n := n.(type) {
	case *ast.Ident:
		obj := info.Uses[n]
		if obj == nil || obj.Pkg() == nil || obj.Parent() != obj.Pkg().Scope() {
			return "" // a method, such as After of a time.Time, is not the function
		}
		if name := obj.Pkg().Path() + "." + obj.Name(); b.funcs[name] != "" {
			return name + ": " + b.funcs[name]
		}
	case *ast.GoStmt, *ast.SelectStmt, *ast.SendStmt, *ast.ChanType:
		if b.order {
			return "no goroutines in a decision"
		}
	case *ast.RangeStmt:
		if _, isMap := info.Types[n.X].Type.Underlying().(*types.Map); b.order && isMap {
			return "range over a map: sort the keys"
		}
	}
	return ""
}

// TestImpuritiesAreFound shows that each ban bites.
func TestImpuritiesAreFound(t *testing.T) {
	exports := make(map[string]string)
	for _, p := range list(t, "-export", "-deps", "time", "math", "maps", "math/rand/v2", "os") {
		exports[p.ImportPath] = p.Export
	}
	bans := append(bansOn("policy/builtin/static"), bansOn("sim")...)
	for _, c := range []struct{ name, imports, body string }{
		{"clock", `"time"`, "_ = time.Now()"},
		{"clock under another name", `clock "time"`, "_ = clock.Since"},
		{"after", `"time"`, "_ = time.After(1)"},
		{"dot import", `. "time"`, "_ = Now()"},
		{"exp", `"math"`, "_ = math.Exp(1)"},
		{"map", ``, "for range map[int]int{} {}"},
		{"keys", `"maps"`, "_ = maps.Keys(map[int]int{})"},
		{"goroutine", ``, "go func() {}()"},
		{"select", ``, "select {}"},
		{"files", `"os"`, "_ = os.Args"},
		{"chance", `"math/rand/v2"`, "_ = rand.NormFloat64()"},
	} {
		src := "package p\n"
		if c.imports != "" {
			src += "import " + c.imports + "\n"
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, "p.go", src+"func f() { "+c.body+" }\n", 0)
		if err != nil {
			t.Fatal(err)
		}
		wrong := impurities(fset, "p", []*ast.File{f}, exports, bans)
		if len(wrong) == 0 || strings.Contains(wrong[0], "checking") {
			t.Errorf("%s: not found: %v", c.name, wrong)
		}
	}
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "p.go", "package p\nimport \"time\"\nvar f = time.Time.After\nvar d = time.Minute\n", 0)
	if err != nil {
		t.Fatal(err)
	}
	if wrong := impurities(fset, "p", []*ast.File{f}, exports, bans); len(wrong) > 0 {
		t.Errorf("found in what is pure: %v", wrong)
	}
}
