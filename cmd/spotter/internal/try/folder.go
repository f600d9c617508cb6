package try

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/eval/format"
	"github.com/spotter-dev/spotter/eval/report"
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

// A folder is the output folder of a trial. If none is true, no files are written.
type folder struct {
	dir  string
	none bool
}

// The files of a folder. markFile marks the others as written by try.
const (
	scenarioFile = "cluster.yaml"
	pricesFile   = "cluster.prices.parquet"
	reportFile   = "report.html"
	resultsFile  = "report.json"
	poolsFile    = "capacitypool.yaml"
	markFile     = ".spotter-try"
)

func (f folder) scenario() string { return filepath.Join(f.dir, scenarioFile) }
func (f folder) pools() string    { return filepath.Join(f.dir, poolsFile) }

// check returns an error if the folder contains files that try did not write, or cannot be written.
// It does not create the folder.
func (f folder) check(force bool) error {
	if f.none {
		return nil
	}
	const advice = "give another folder with --dir, or --force to replace them"
	if f.dir == "" {
		return cli.Invalid(errors.New("--dir: it names no folder"), "leave it out for spotter-try")
	}
	if _, err := os.Lstat(filepath.Join(f.dir, markFile)); errors.Is(err, fs.ErrNotExist) && !force {
		for _, name := range []string{scenarioFile, pricesFile, reportFile, resultsFile, poolsFile} {
			if _, err := os.Lstat(filepath.Join(f.dir, name)); err == nil {
				return cli.Invalid(fmt.Errorf("--dir: %s was not written by try", filepath.Join(f.dir, name)), advice)
			}
		}
	}
	there := f.dir
	for there != filepath.Dir(there) {
		if _, err := os.Stat(there); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		there = filepath.Dir(there)
	}
	if err := cli.CheckWritable(filepath.Join(there, scenarioFile)); err != nil {
		return cli.Invalid(fmt.Errorf("--dir: %w", err), "give a folder that can be made and written")
	}
	return nil
}

// write writes all files and returns their paths.
func (f folder) write(s *staged, r *eval.Report, p *poolPlan, found *result) ([]string, error) {
	if f.none {
		return []string{}, nil
	}
	if err := os.MkdirAll(f.dir, 0o755); err != nil {
		return nil, err
	}
	var page, results bytes.Buffer
	if err := report.Write(&page, r, report.Options{}); err != nil {
		return nil, err
	}
	if err := format.Write(&results, r, format.JSON, format.Options{}); err != nil {
		return nil, err
	}
	files := []string{f.scenario(), filepath.Join(f.dir, reportFile), filepath.Join(f.dir, resultsFile)}
	texts := [][]byte{s.text, page.Bytes(), results.Bytes()}
	if len(p.pools) > 0 {
		text, err := p.write(found)
		if err != nil {
			return nil, err
		}
		files, texts = append(files, f.pools()), append(texts, text)
	} else if err := os.Remove(f.pools()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err // the existing file would belong to another call
	}
	var prices []string
	if s.trace != nil { // otherwise the trace is embedded
		prices = []string{filepath.Join(f.dir, pricesFile)}
		if err := trace.WriteFile(prices[0], s.trace); err != nil {
			return nil, err
		}
	}
	mark := filepath.Join(f.dir, markFile)
	err := cli.ReplaceFiles(append(files, mark), func(w io.Writer, i int) error {
		if i == len(files) {
			return nil
		}
		_, err := w.Write(texts[i])
		return err
	})
	return append(files, prices...), err
}
