package scenarios

import (
	"embed"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/spotter-dev/spotter/internal/nearest"
)

// ErrNotFound is returned for a scenario that is neither embedded nor a file.
var ErrNotFound = errors.New("no such scenario")

//go:embed library/*.yaml library/hunted/*.yaml
var library embed.FS

// hunted is the folder of the embedded scenarios that `spotter scenario hunt` found.
const hunted = "hunted"

// Names returns the names of the embedded scenarios in order, excluding those of [Hunted].
func Names() []string { return embedded("") }

// Hunted returns the names, as "hunted/NAME", of the embedded scenarios in which a policy was found
// to perform badly, in order.
func Hunted() []string { return embedded(hunted) }

// Embedded reports whether there is an embedded scenario with this name.
func Embedded(name string) bool {
	_, err := library.ReadFile(path.Join("library", name+".yaml"))
	return err == nil
}

func embedded(folder string) []string {
	entries, err := library.ReadDir(path.Join("library", folder))
	if err != nil {
		panic(fmt.Sprintf("scenarios: reading the embedded folder: %v", err))
	}
	var names []string
	for _, e := range entries {
		if !e.IsDir() {
			names = append(names, path.Join(folder, strings.TrimSuffix(e.Name(), ".yaml")))
		}
	}
	return names
}

// Source returns the text of the embedded scenario with this name, or else of the file at this
// path.
func Source(nameOrPath string) ([]byte, error) {
	if data, err := library.ReadFile(path.Join("library", nameOrPath+".yaml")); err == nil {
		return data, nil
	}
	data, err := os.ReadFile(nameOrPath)
	if errors.Is(err, os.ErrNotExist) {
		meant := ""
		if best, ok := nearest.Of(nameOrPath, slices.Concat(Names(), Hunted())); ok {
			meant = fmt.Sprintf("; did you mean %q?", best)
		}
		return nil, fmt.Errorf("%w: %q is neither a file nor embedded (%s)%s", ErrNotFound, nameOrPath,
			strings.Join(Names(), ", "), meant)
	}
	return data, err
}
