package trace

import (
	"errors"
	"path/filepath"
	"testing"
)

// A depthRow is a row of a file that another program wrote.
type depthRow struct {
	Time      int64   `parquet:"time,timestamp(millisecond)"`
	Zone      string  `parquet:"zone"`
	Type      string  `parquet:"instance_type"`
	Spot      float64 `parquet:"spot_price"`
	Available bool    `parquet:"available"`
	Requested int32   `parquet:"requested"`
	Launched  int32   `parquet:"launched"`
}

// What a file says of depth is checked where it is read, and the row is named.
func TestDepthThatCannotBe(t *testing.T) {
	good := depthRow{int64(at(1, 0)), "z", "t", 1, true, 16, 9}
	for name, c := range map[string]struct {
		row    depthRow
		column string
	}{
		"more than requested": {depthRow{int64(at(1, 1)), "z", "t", 1, true, 16, 17}, colLaunched},
		"none requested":      {depthRow{int64(at(1, 1)), "z", "t", 1, false, 0, 0}, colRequested},
		"not available":       {depthRow{int64(at(1, 1)), "z", "t", 1, false, 16, 1}, colAvailable},
		"available":           {depthRow{int64(at(1, 1)), "z", "t", 1, true, 16, 0}, colAvailable},
		"far too many":        {depthRow{int64(at(1, 1)), "z", "t", 1, true, 20_000, 1}, colRequested},
	} {
		path := writeRows(t, []depthRow{good, c.row})
		_, err := Open(path, ReadOptions{Provider: "p", Region: "r"})
		var fault *FileError
		if !errors.As(err, &fault) || !errors.Is(err, ErrValue) || fault.Column != c.column || fault.Row != 2 || fault.Value == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	bad := small(t)
	bad.Series[2].Launched[0] = 17
	if err := Write(filepath.Join(t.TempDir(), "t"), bad); !errors.Is(err, ErrValue) {
		t.Errorf("written: %v", err)
	}
}
