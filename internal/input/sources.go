package input

import (
	"bytes"
	"compress/gzip"
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

// Stdin is the argument that means standard input.
const Stdin = "-"

// stdinName is the name of standard input in errors.
const stdinName = "standard input"

// SourceFlags are the flags for reading the manifests of a scenario.
type SourceFlags struct {
	Recursive, Strict bool
}

// RegisterSources adds the flags.
func (f *SourceFlags) RegisterSources(flags *pflag.FlagSet) {
	flags.BoolVarP(&f.Recursive, "recursive", "R", false, "read the folders in a folder too")
	flags.BoolVar(&f.Strict, "strict", false, "refuse objects of kinds that are not simulated, instead of skipping them")
	cli.Section(flags, "Manifests", "recursive", "strict")
}

// ReadScenario reads a scenario by its embedded name, or from a file, a folder or standard input.
// It also returns the text, including added defaults, and prints what was skipped and what was
// added.
func (f *SourceFlags) ReadScenario(ctx context.Context, p *cli.Program, name string) ([]byte, *scenarios.Scenario,
	error) {
	text, err := ReadManifests(ctx, name, f.Recursive)
	if err != nil {
		return nil, nil, err
	}
	text, sc, _, err := f.Complete(p, name, text)
	return text, sc, err
}

// Complete parses the text of the manifests called name and adds defaults for what is missing. It
// returns a description of them, and prints what was skipped and what was added.
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

// ReadManifests returns the text of the manifests called name: an embedded scenario, a file, all
// files of a folder (if recursive is true, also of its subfolders), or standard input. It stops
// waiting when ctx ends, because name may be a pipe that no process writes to.
func ReadManifests(ctx context.Context, name string, recursive bool) ([]byte, error) {
	return load(ctx, name, func() ([]byte, error) { return source(name, recursive) })
}

// ReadFiles returns the files of the manifests called name, found as in [ReadManifests].
func ReadFiles(ctx context.Context, name string, recursive bool) ([]scenarios.SourceFile, error) {
	return load(ctx, name, func() ([]scenarios.SourceFile, error) {
		files, _, err := sources(name, recursive)
		return files, err
	})
}

// load returns the result of read, or an error if ctx ends before.
func load[T any](ctx context.Context, name string, read func() (T, error)) (found T, err error) {
	type loaded struct {
		found T
		err   error
	}
	done := make(chan loaded, 1)
	go func() {
		found, err := read()
		done <- loaded{found, err}
	}()
	select {
	case x := <-done:
		found, err = x.found, x.err
	case <-ctx.Done():
		return found, fmt.Errorf("reading %s: %w", FileName(name), ctx.Err())
	}
	switch {
	case errors.Is(err, scenarios.ErrNotFound):
		return found, cli.Invalid(err, ScenarioAdvice)
	case errors.Is(err, errNoManifests):
		return found, cli.Invalid(err, "give a folder with manifests, or -R to read the folders in it too")
	case err != nil:
		return found, cli.Invalid(err, scenarioAdvice(name))
	}
	return found, nil
}

var errNoManifests = errors.New("there is no file that ends with .yaml, .yml or .json")

// source returns the text of a scenario.
func source(name string, recursive bool) ([]byte, error) {
	files, joined, err := sources(name, recursive)
	switch {
	case err != nil:
		return nil, err
	case joined:
		return scenarios.Join(files), nil
	}
	return files[0].Text, nil
}

// sources returns the files of a scenario, and whether name is a folder.
func sources(name string, recursive bool) (files []scenarios.SourceFile, folder bool, err error) {
	if info, err := os.Stat(name); name == Stdin || err != nil || !info.IsDir() || scenarios.Embedded(name) {
		text, err := readOne(name)
		return []scenarios.SourceFile{{Name: FileName(name), Text: text}}, false, err
	}
	err = filepath.WalkDir(name, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != name && !recursive:
			return fs.SkipDir
		case d.IsDir() || !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(strings.TrimSuffix(strings.ToLower(path), ".gz"))):
			return nil
		}
		text, err := readOne(path)
		files = append(files, scenarios.SourceFile{Name: path, Text: text})
		return err
	})
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("%s: %w", name, errNoManifests)
	}
	return files, true, err
}

// textMax is the maximum decompressed size of a file, in bytes.
const textMax = 1 << 30

// readOne returns the text of a file, an embedded scenario or standard input. It decompresses gzip.
func readOne(name string) (text []byte, err error) {
	if name == Stdin {
		text, err = io.ReadAll(os.Stdin)
	} else {
		text, err = scenarios.Source(name)
	}
	if err != nil || !bytes.HasPrefix(text, []byte{0x1f, 0x8b}) {
		return text, err
	}
	r, err := gzip.NewReader(bytes.NewReader(text))
	if err == nil {
		text, err = io.ReadAll(io.LimitReader(r, textMax+1))
	}
	if err == nil && len(text) > textMax {
		err = fmt.Errorf("its text is larger than %d MiB", textMax>>20)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: decompressing: %w", FileName(name), err)
	}
	return text, nil
}

// FileName returns the name of an input in errors.
func FileName(name string) string {
	if name == Stdin {
		return stdinName
	}
	return name
}
