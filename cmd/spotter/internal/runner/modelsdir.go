package runner

import (
	"errors"
	"fmt"
	"os"

	"github.com/spotter-dev/spotter/internal/bundles"
	"github.com/spotter-dev/spotter/models"
	"github.com/spotter-dev/spotter/policy/builtin/spotvortex"
)

// A ModelsDir is the folder of models that pools may name; empty if they can name no model. Its
// entries may be links to each other. A link out of it cannot be followed.
type ModelsDir string

var errNoModels = errors.New("the controller has no models that a pool could name: its models.dir is empty")

// Check returns an error if the folder cannot be opened.
func (d ModelsDir) Check() error {
	if d == "" {
		return nil
	}
	root, err := os.OpenRoot(string(d))
	if err != nil {
		return err
	}
	return root.Close()
}

// Has returns an error if a pool may not name a bundle. It does not check whether the bundle
// exists, since its volume may be filled later.
func (d ModelsDir) Has(name string) error {
	if d == "" && name != bundles.Builtin && name != bundles.BuiltinActions {
		return errNoModels
	}
	return nil
}

// Open verifies and opens a bundle by its name.
func (d ModelsDir) Open(name string) (*bundles.Loaded, error) {
	if name == bundles.Builtin || name == bundles.BuiltinActions {
		var shipped bundles.Cache
		return shipped.Get(name)
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
	b, err := models.Open(folder.FS(), bundles.Cloud)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return bundles.Load(name, b)
}

// readRuntime reads a runtime file of the SpotVortex agent by its name, and the file that it names.
func (d ModelsDir) readRuntime(name string) (spotvortex.Config, error) {
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
