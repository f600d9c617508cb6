// Package bundles opens bundles of trained models, from folders or embedded in the program, and
// executes them with ONNX Runtime. It does not depend on simulations or the controller.
package bundles

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/models"
	"github.com/spotter-dev/spotter/models/onnx"
)

// ONNXAdvice explains how to enable trained models.
const ONNXAdvice = onnx.Advice

// Advice explains what to do about a bundle that cannot be used.
const Advice = "run `spotter models verify DIR` on the folder of the bundle"

// Cloud is the provider for whose markets bundles are used.
const Cloud = "aws"

// StartONNX loads ONNX Runtime. If SPOTTER_ONNXRUNTIME is set, it loads only that file. Otherwise
// it searches the folder of this program, then the system.
func StartONNX() (library, version string, err error) {
	candidates := []string{os.Getenv("SPOTTER_ONNXRUNTIME")}
	if candidates[0] == "" && onnx.Linked {
		candidates = libraries()
	}
	for _, path := range candidates {
		v, startErr := onnx.Start(path)
		if startErr == nil {
			return path, v, nil
		}
		err = errors.Join(err, startErr)
	}
	return "", "", err
}

// libraries returns the paths to search for ONNX Runtime. The system searches its library folders
// for a name without a folder.
func libraries() []string {
	names := []string{"libonnxruntime.so.1", "libonnxruntime.so"}
	if runtime.GOOS == "darwin" {
		names = []string{"libonnxruntime.1.dylib", "libonnxruntime.dylib"}
	}
	var found []string
	if program, err := os.Executable(); err == nil {
		adjacent := filepath.Join(filepath.Dir(program), names[0])
		if _, err := os.Stat(adjacent); err == nil {
			found = append(found, adjacent)
		}
	}
	return append(found, names...)
}

// A Cache contains the bundles that policies name. Each is opened once, and all runs share its
// sessions. The zero value is empty.
type Cache struct {
	mu   sync.Mutex
	open map[string]func() (*Loaded, error)
}

// A Loaded is a bundle with sessions for its graphs.
type Loaded struct {
	*models.Bundle
	ForecasterSession, ActionsSession models.Session
}

// Get returns the verified bundle in dir, ready to run. It is safe for concurrent use.
func (c *Cache) Get(dir string) (*Loaded, error) {
	c.mu.Lock()
	load := c.open[dir]
	if load == nil {
		load = sync.OnceValues(func() (*Loaded, error) {
			b, err := Read(dir, Cloud)
			if err != nil {
				return nil, err
			}
			return Load(dir, b)
		})
		if c.open == nil {
			c.open = map[string]func() (*Loaded, error){}
		}
		c.open[dir] = load
	}
	c.mu.Unlock()
	return load()
}

// Load opens sessions for a bundle. name is its name in errors.
func Load(name string, v *models.Bundle) (*Loaded, error) {
	if _, _, err := StartONNX(); err != nil {
		return nil, cli.Invalid(err, ONNXAdvice)
	}
	o, err := OpenSessions(v)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return o, nil
}

// Read reads and verifies the bundle in dir.
func Read(dir, cloud string) (*models.Bundle, error) {
	fsys, err := Folder(dir)
	if err != nil {
		return nil, err
	}
	b, err := models.Open(fsys, cloud)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return b, nil
}

// OpenSessions opens a session for each graph of b, and tests each with one inference.
func OpenSessions(b *models.Bundle) (*Loaded, error) {
	o := &Loaded{Bundle: b}
	for _, x := range []struct {
		net *models.Net
		to  *models.Session
	}{{b.Forecaster, &o.ForecasterSession}, {b.Actions, &o.ActionsSession}} {
		if x.net == nil {
			continue
		}
		s, err := onnx.Open(x.net)
		if err == nil {
			*x.to = s
			err = models.Probe(x.net, s)
		}
		if err != nil {
			return nil, errors.Join(err, o.Close())
		}
	}
	return o, nil
}

// Close closes the sessions.
func (o *Loaded) Close() error {
	var err error
	for _, s := range []models.Session{o.ForecasterSession, o.ActionsSession} {
		if s != nil {
			err = errors.Join(err, s.Close())
		}
	}
	return err
}
