package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spotter-dev/spotter/models"
	"github.com/spotter-dev/spotter/policy/spotvortex"
)

// A modelsDir is the folder that pools name models in; empty if they can name none.
// What lies in it may be links to each other, and none leads out of it.
type modelsDir string

var errNoModels = errors.New("the controller has no models that a pool could name: its models.dir is empty")

// check says what is wrong with the folder.
func (d modelsDir) check() error {
	if d == "" {
		return nil
	}
	root, err := os.OpenRoot(string(d))
	if err != nil {
		return err
	}
	return root.Close()
}

// has says whether a pool may name a bundle. Whether it is there is asked later, and
// again: its volume may be filled meanwhile.
func (d modelsDir) has(name string) error {
	if d == "" && name != builtinBundle && name != builtinActions {
		return errNoModels
	}
	return nil
}

// open verifies and opens a bundle by its name.
func (d modelsDir) open(name string) (*openBundle, error) {
	if name == builtinBundle || name == builtinActions {
		var shipped bundles
		return shipped.get(name)
	}
	if d == "" {
		return nil, errNoModels
	}
	root, err := os.OpenRoot(string(d))
	if err != nil {
		return nil, err
	}
	defer root.Close()
	folder, err := root.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	b, err := models.Open(folder.FS(), bundleCloud)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return start(name, b)
}

// readRuntime reads a runtime file of the SpotVortex agent by its name, and what it
// names in turn.
func (d modelsDir) readRuntime(name string) (spotvortex.Config, error) {
	if d == "" {
		return spotvortex.Config{}, errNoModels
	}
	root, err := os.OpenRoot(string(d))
	if err != nil {
		return spotvortex.Config{}, err
	}
	defer root.Close()
	return readRuntime(name, root.ReadFile)
}
