package forecaster

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/models"
)

// AboutName is the file of a data set that describes the others.
const AboutName = "dataset.json"

// An About is what a data set says of itself.
type About struct {
	// Fingerprint is the SHA-256 of all other files, in the order of their
	// names, and of what follows here.
	Fingerprint string `json:"fingerprint"`

	// Data says in words what the rows are made of.
	Data string `json:"data"`

	// Families are the instance families that rows are of.
	Families []string `json:"families"`

	// Accelerated are those with accelerators, the only kind of which anything was
	// recorded.
	Accelerated []string `json:"accelerated_families"`

	Features     string   `json:"features"`
	FeatureNames []string `json:"feature_names"`
	Labels       []string `json:"labels"`
	LabelTexts   []string `json:"label_texts"`
	Rows         []string `json:"rows"`
	Closed       []string `json:"closed_form"`
	Strata       []string `json:"strata"`

	// Sources are the recorded regions, of which rows name the one that their
	// weather was recorded in or is a variant of.
	Sources []string `json:"sources"`

	// Normalisation is fitted to the rows to train on alone.
	Normalisation models.Normalisation `json:"normalisation"`

	Splits map[string]Split `json:"splits"`
}

// A Split counts the rows of a split by stratum, and says how far they reach.
type Split struct {
	Rows    int            `json:"rows"`
	Strata  map[string]int `json:"strata"`
	From    time.Time      `json:"from"`
	Until   time.Time      `json:"until"`
	HeldOut bool           `json:"held_out_regions"`
}

// Write writes the data set to the folder dir, which must not be there or be
// empty.
func (d *Dataset) Write(dir string) (*About, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	if there, err := os.ReadDir(dir); err != nil || len(there) > 0 {
		return nil, fmt.Errorf("%s: it is not empty", dir)
	}
	about := d.about()
	sum := sha256.New()
	for s := range splits {
		t := &d.tables[s]
		for _, f := range []struct {
			name string
			data any
			n    int
		}{
			{"features", t.features, len(about.FeatureNames)}, {"labels", t.labels, labelColumns}, {"closed", t.closed,
				len(ClosedNames)},
			{"rows", t.rows, rowColumns}, {"agent", t.agent, agentFeatures},
		} {
			if f.name == "agent" && s != reporting {
				continue
			}
			data, err := npy(f.data, t.len(), f.n)
			if err != nil {
				return nil, err
			}
			sum.Write(data)
			if err := os.WriteFile(filepath.Join(dir, s.String()+"."+f.name+".npy"), data, 0o644); err != nil {
				return nil, err
			}
		}
	}
	facts, err := json.Marshal(about)
	if err != nil {
		return nil, err
	}
	sum.Write(facts)
	about.Fingerprint = hex.EncodeToString(sum.Sum(nil))
	text, err := json.MarshalIndent(about, "", "  ")
	if err != nil {
		return nil, err
	}
	return about, os.WriteFile(filepath.Join(dir, AboutName), append(text, '\n'), 0o644)
}

// about describes d.
func (d *Dataset) about() *About {
	names := models.FeatureNames(models.MarketFeaturesV2)
	a := &About{
		Features: models.MarketFeaturesV2, FeatureNames: names, Labels: LabelNames, LabelTexts: LabelTexts, Rows: RowNames, Closed: ClosedNames,
		Normalisation: normalisation(d.tables[training].features,
			len(names)), Splits: map[string]Split{}, Sources: d.cfg.sources(),
	}
	a.Families, a.Accelerated = families()
	var recordings []string
	for _, r := range d.cfg.Recordings {
		recordings = append(recordings, fmt.Sprintf("%s (%v to %v, SHA-256 %x)", r.Name, r.From, r.To, r.Digest[:8]))
	}
	a.Data = fmt.Sprintf("%d generated worlds of %d days in %s, and recorded availability: %s; prices are modelled; held out: %s; cut at %v and %v; seed %d",
		d.cfg.Generated, d.cfg.Days, strings.Join(d.cfg.Regions, ", "), strings.Join(recordings,
			", "), strings.Join(d.cfg.HoldOut, ", "),
		d.cfg.TrainUntil, d.cfg.ChooseUntil, d.cfg.Seed)
	for s := range Strata {
		a.Strata = append(a.Strata, s.String())
	}
	for s := range splits {
		t := &d.tables[s]
		x := Split{Rows: t.len(), Strata: map[string]int{}, HeldOut: s == reporting}
		first, last := int32(math.MaxInt32), int32(0)
		for i := range t.len() {
			row := t.rows[i*rowColumns : (i+1)*rowColumns]
			x.Strata[Stratum(row[rowStratum]).String()]++
			first, last = min(first, row[rowMinutes]), max(last, row[rowMinutes])
		}
		if t.len() > 0 {
			x.From, x.Until = time.Unix(int64(first)*60, 0).UTC(), time.Unix(int64(last)*60, 0).UTC()
		}
		a.Splits[s.String()] = x
	}
	return a
}

// normalisation returns the mean and the deviation of each column.
func normalisation(features []float32, width int) models.Normalisation {
	n := models.Normalisation{Mean: make([]float64, width), Scale: make([]float64, width)}
	rows := float64(max(1, len(features)/width))
	for i, x := range features {
		n.Mean[i%width] += float64(x) / rows
	}
	for i, x := range features {
		d := float64(x) - n.Mean[i%width]
		n.Scale[i%width] += float64(d*d) / rows
	}
	for k := range n.Scale {
		n.Scale[k] = math.Sqrt(n.Scale[k])
		if n.Scale[k] < 1e-6 {
			n.Scale[k] = 1
		}
		n.Mean[k], n.Scale[k] = float64(float32(n.Mean[k])), float64(float32(n.Scale[k]))
	}
	return n
}

// npy returns a table in NumPy's format, version 1.0.
func npy(data any, rows, columns int) ([]byte, error) {
	kind := "<f4"
	if _, whole := data.([]int32); whole {
		kind = "<i4"
	}
	header := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%d, %d), }", kind, rows, columns)
	const before = 10 // magic, version and the length of the header
	header += strings.Repeat(" ", 63-(before+len(header))%64) + "\n"
	var b bytes.Buffer
	b.WriteString("\x93NUMPY\x01\x00")
	b.Write(binary.LittleEndian.AppendUint16(nil, uint16(len(header))))
	b.WriteString(header)
	if err := binary.Write(&b, binary.LittleEndian, data); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// readNPY reads a table that npy wrote into a slice of T.
func readNPY[T float32 | int32](dir, name string, columns int) ([]T, error) {
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return nil, err
	}
	if len(data) < 10 || !bytes.HasPrefix(data, []byte("\x93NUMPY\x01\x00")) {
		return nil, fmt.Errorf("%s: it is no table of NumPy, version 1.0", name)
	}
	n := 10 + int(binary.LittleEndian.Uint16(data[8:]))
	var zero T
	want := "<f4"
	if _, whole := any(zero).(int32); whole {
		want = "<i4"
	}
	if n > len(data) || !strings.Contains(string(data[:n]), want) ||
		!strings.Contains(string(data[:n]), fmt.Sprintf(", %d)", columns)) {
		return nil, fmt.Errorf("%s: it has not %d columns of %s", name, columns, want)
	}
	if (len(data)-n)%(4*columns) != 0 {
		return nil, fmt.Errorf("%s: its last row is cut off", name)
	}
	out := make([]T, (len(data)-n)/4)
	if err := binary.Read(bytes.NewReader(data[n:]), binary.LittleEndian, out); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return slices.Clip(out), nil
}
