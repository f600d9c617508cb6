// Package pictures writes pictures into files.
package pictures

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spotter-dev/spotter/eval/chart"
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/policy"
)

// A Named picture is one file of a folder.
type Named struct {
	Name    string
	Picture chart.Picture
}

// Write writes a picture into each file, and makes the folders of the files. On a fault no file is
// written.
func Write(files []string, format chart.Format, all []Named) error {
	for _, file := range files {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
	}
	return cli.ReplaceFiles(files, func(w io.Writer, i int) error {
		if err := chart.Write(w, format, all[i].Picture); err != nil {
			return fmt.Errorf("%s: %w", all[i].Name, err)
		}
		return nil
	})
}

// RowsShown bounds the rows of a raster.
const RowsShown = 36

// Seconds returns t as an axis of time takes it.
func Seconds(t policy.Time) float64 { return float64(t) / 1000 }
