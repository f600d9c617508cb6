package input

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/scenarios"
)

// Stdin is the name that stands for standard input.
const Stdin = "-"

// stdinName is what errors call it.
const stdinName = "standard input"

// SourceFlags are the flags that say how the manifests of a scenario are read.
type SourceFlags struct {
	Recursive, Strict bool
}

// RegisterSources adds the flags.
func (f *SourceFlags) RegisterSources(flags *pflag.FlagSet) {
	flags.BoolVarP(&f.Recursive, "recursive", "R", false, "read the folders in a folder too")
	flags.BoolVar(&f.Strict, "strict", false, "refuse objects of kinds that are not simulated, instead of skipping them")
	cli.Section(flags, "Manifests", "recursive", "strict")
}

// ReadScenario reads a scenario by its embedded name, or from a file, a folder or standard input, and
// returns its text as well, with the defaults of what it lacks. It prints what was skipped and what
// was added.
func (f *SourceFlags) ReadScenario(ctx context.Context, p *cli.Program, name string) ([]byte, *scenarios.Scenario, error) {
	text, err := ReadManifests(ctx, name, f.Recursive)
	if err != nil {
		return nil, nil, err
	}
	text, sc, _, err := f.Complete(p, name, text)
	return text, sc, err
}

// Complete reads the text of the manifests that name stands for, with the defaults of what it
// lacks, which it returns in words. It prints what was skipped and what was added.
func (f *SourceFlags) Complete(p *cli.Program, name string, text []byte) ([]byte, *scenarios.Scenario, string, error) {
	text, added := scenarios.Complete(FileName(name), text)
	sc, err := ParseScenario(name, text)
	if err != nil {
		return nil, nil, "", err
	}
	if err := sc.Strict(); f.Strict && err != nil {
		return nil, nil, "", cli.Invalid(err, "take them out, or leave --strict out to skip them")
	}
	for _, line := range []string{sc.Skipped, added} {
		if line != "" {
			fmt.Fprintf(p.Stderr, "%s\n", line)
		}
	}
	return text, sc, added, nil
}

// LoadScenario is [SourceFlags.ReadScenario] without the text.
func (f *SourceFlags) LoadScenario(ctx context.Context, p *cli.Program, name string) (*scenarios.Scenario, error) {
	_, sc, err := f.ReadScenario(ctx, p, name)
	return sc, err
}

// LoadScenario reads a scenario as [SourceFlags.ReadScenario] does, and prints nothing.
func LoadScenario(ctx context.Context, name string) (*scenarios.Scenario, error) {
	text, err := ReadManifests(ctx, name, false)
	if err != nil {
		return nil, err
	}
	text, _ = scenarios.Complete(FileName(name), text)
	return ParseScenario(name, text)
}

// ReadManifests returns the text of the manifests that name stands for: an embedded scenario, a file,
// all files of a folder, with recursive those of the folders in it too, or standard input. A pipe
// to which no process writes may be one of them: the end of ctx ends the wait.
func ReadManifests(ctx context.Context, name string, recursive bool) ([]byte, error) {
	var text []byte
	loaded := make(chan error, 1)
	go func() {
		var err error
		text, err = source(name, recursive)
		loaded <- err
	}()
	var err error
	select {
	case err = <-loaded:
	case <-ctx.Done():
		return nil, fmt.Errorf("reading %s: %w", FileName(name), ctx.Err())
	}
	switch {
	case errors.Is(err, scenarios.ErrNotFound):
		return nil, cli.Invalid(err, ScenarioAdvice)
	case errors.Is(err, errNoManifests):
		return nil, cli.Invalid(err, "give a folder with manifests, or -R to read the folders in it too")
	case err != nil:
		return nil, cli.Invalid(err, scenarioAdvice(name))
	}
	return text, nil
}

var errNoManifests = errors.New("there is no file that ends with .yaml, .yml or .json")

func source(name string, recursive bool) ([]byte, error) {
	if name == Stdin {
		return io.ReadAll(os.Stdin)
	}
	if info, err := os.Stat(name); err != nil || !info.IsDir() || scenarios.Embedded(name) {
		return scenarios.Source(name)
	}
	var files []scenarios.SourceFile
	err := filepath.WalkDir(name, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != name && !recursive:
			return fs.SkipDir
		case d.IsDir() || !slices.Contains([]string{".yaml", ".yml", ".json"}, strings.ToLower(filepath.Ext(path))):
			return nil
		}
		text, err := os.ReadFile(path)
		files = append(files, scenarios.SourceFile{Name: path, Text: text})
		return err
	})
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("%s: %w", name, errNoManifests)
	}
	return scenarios.Join(files), err
}

// FileName is how errors call what is read.
func FileName(name string) string {
	if name == Stdin {
		return stdinName
	}
	return name
}
