package sweep

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/sim"
)

// A store stores runs as files in a folder, named by their keys. It is safe for concurrent use.
type store struct {
	dir string
	n   atomic.Int64
}

// open creates the folder for runs.
func (f *call) open() (*store, error) {
	s := &store{dir: filepath.Join(f.out, "runs")}
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return nil, cli.Invalid(fmt.Errorf("--out: %w", err), "give a folder that can be written")
	}
	return s, nil
}

// kept returns the number of runs that were read or written.
func (s *store) kept() int64 { return s.n.Load() }

func (s *store) path(key string) string { return filepath.Join(s.dir, key[:2], key+".json") }

// Get returns a run. An unreadable run counts as missing and is computed again.
func (s *store) Get(key string) (*sim.Result, bool) {
	text, err := os.ReadFile(s.path(key))
	if err != nil {
		return nil, false
	}
	r := &sim.Result{}
	if json.Unmarshal(text, r) != nil {
		return nil, false
	}
	s.n.Add(1)
	return r, true
}

// Put stores a run atomically.
func (s *store) Put(key string, r *sim.Result) error {
	text, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("keeping a run: %w", err)
	}
	path := s.path(key)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("keeping a run: %w", err)
	}
	if err := cli.ReplaceFile(path, func(w io.Writer) error { _, err := w.Write(text); return err }); err != nil {
		return fmt.Errorf("keeping a run: %w", err)
	}
	s.n.Add(1)
	return nil
}
