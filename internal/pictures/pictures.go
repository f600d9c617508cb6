// Package pictures writes pictures to files.
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

// A Named is a picture and its name in errors.
type Named struct {
	Name    string
	Picture chart.Picture
}

// Write writes each picture to the file with the same index, and creates the folders of the files.
// If one fails, no file is written.
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

// RowsShown is the maximum number of rows of a raster.
const RowsShown = 36

// Seconds returns t as a value of a time axis, in seconds since 1970.
func Seconds(t policy.Time) float64 { return float64(t) / 1000 }
