package shard

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/sim"
)

// A Part contains the results of one machine for a plan.
type Part struct {
	Head

	// Cells are in the order of reports.
	Cells []Cell

	// Name is the name of the file that the part was read from.
	Name string
}

// A Head is the metadata of a part.
type Head struct {
	Plan  Plan  `json:"plan"`
	Share Share `json:"share"`
	Build Build `json:"build"`

	// Jobs is the number of jobs of the share. A part with fewer cells was stopped early.
	Jobs int `json:"jobs"`
}

// A Cell is one run, or for the policy [eval.OracleName] the bounds of a case and seed.
type Cell struct {
	// Key is the key from [Keys.Of], Input the inputs of the job.
	Key   string
	Input Input

	Truth, Scenario string
	Window          int
	From            policy.Time
	Seed            uint64
	Policy          string

	// Err is the error of a failed run, empty if it did not fail. Result is nil for a failed run.
	Err    string
	Result *sim.Result
	Bounds *eval.Bounds
}

func (c *Cell) at() at { return at{c.Truth, c.Scenario, c.Window, c.Policy, c.Seed} }

// The keys of a part's metadata.
const (
	keyFormat = "spotter.part"
	keyHead   = "spotter.part.head"
	keySum    = "spotter.part.sum"
)

// partFormat is the version of the format of parts.
const partFormat = "1"

// sumMark is the prefix of the value of keySum. It is followed by the hexadecimal SHA-256 of the
// whole file, computed with zeros in place of the digest. Every changed bit of a part is therefore
// detected.
const sumMark = "sha256 of this file with zeros here: "

// noSum replaces the digest while it is computed.
var noSum = strings.Repeat("0", hex.EncodedLen(sha256.Size))

// A row is a cell in a file: its identity, its inputs and its results. Result and Bounds are JSON,
// empty if missing.
type row struct {
	Truth    string `parquet:"truth,dict"`
	Scenario string `parquet:"scenario,dict"`
	Window   int64  `parquet:"window"`
	From     int64  `parquet:"from,timestamp(millisecond)"`
	Seed     uint64 `parquet:"seed"`
	Policy   string `parquet:"policy,dict"`
	Key      string `parquet:"key"`
	File     string `parquet:"scenario_digest,dict"`
	Trace    string `parquet:"trace_digest,dict"`
	Bound    string `parquet:"bound_digest,dict"`
	Files    string `parquet:"files_digest,dict"`
	Err      string `parquet:"error"`
	Result   string `parquet:"result"`
	Bounds   string `parquet:"bounds"`
}

// Write writes p as Parquet. Equal parts result in equal bytes. Results and bounds are encoded as
// JSON, which preserves all bits of numbers.
func Write(w io.Writer, p *Part) error {
	head, err := json.Marshal(p.Head)
	if err != nil {
		return err
	}
	rows := make([]row, len(p.Cells))
	for i := range p.Cells {
		if rows[i], err = rowOf(&p.Cells[i]); err != nil {
			return err
		}
	}
	var out bytes.Buffer
	if err := parquet.Write(&out, rows, parquet.Compression(&parquet.Zstd),
		parquet.DataPageStatistics(false), parquet.SkipPageBounds("result"), // statistics would repeat the smallest and the largest result in full
		parquet.KeyValueMetadata(keyFormat, partFormat), parquet.KeyValueMetadata(keyHead, string(head)),
		parquet.KeyValueMetadata(keySum, sumMark+noSum)); err != nil {
		return err
	}
	data := out.Bytes()
	at := bytes.LastIndex(data, []byte(sumMark+noSum)) + len(sumMark)
	sum := sha256.Sum256(data)
	hex.Encode(data[at:], sum[:])
	_, err = w.Write(data)
	return err
}

func rowOf(c *Cell) (row, error) {
	r := row{c.Truth, c.Scenario, int64(c.Window), int64(c.From), c.Seed, c.Policy, c.Key, c.Input.Scenario,
		c.Input.Trace, c.Input.Bound, c.Input.Files, c.Err, "", ""}
	for _, x := range []struct {
		there bool
		value any
		to    *string
	}{{c.Result != nil, c.Result, &r.Result}, {c.Bounds != nil, c.Bounds, &r.Bounds}} {
		if !x.there {
			continue
		}
		text, err := json.Marshal(x.value)
		if err != nil {
			return r, fmt.Errorf("%s, seed %d, %s: %w", c.Scenario, c.Seed, c.Policy, err)
		}
		*x.to = string(text)
	}
	return r, nil
}

// Read reads a part. name is its name in errors. It returns an error if data was changed after
// [Write].
func Read(name string, data []byte) (p *Part, err error) {
	at := bytes.LastIndex(data, []byte(sumMark)) + len(sumMark)
	if at < len(sumMark) || at+len(noSum) > len(data) {
		return nil,
			refused(name,
				"it is not a complete part of a comparison: it has no digest of its own; it is damaged or cut short, or another file")
	}
	said := string(data[at : at+len(noSum)])
	bare := slices.Concat(data[:at], []byte(noSum), data[at+len(noSum):])
	if sum := sha256.Sum256(bare); hex.EncodeToString(sum[:]) != said {
		return nil, refused(name, "it is damaged or cut short: its SHA-256 is not the one that it states")
	}
	defer func() {
		if bug := recover(); bug != nil { // the decoder panics on some files
			p, err = nil, refused(name, "it is not a part of a comparison: %v", bug)
		}
	}()
	f, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, refused(name, "it is not a part of a comparison: %v", err)
	}
	if v, _ := f.Lookup(keyFormat); v != partFormat {
		return nil, refused(name, "it is of format %q, and this build reads %s", v, partFormat)
	}
	p = &Part{Name: name}
	head, _ := f.Lookup(keyHead)
	if err := json.Unmarshal([]byte(head), &p.Head); err != nil {
		return nil, refused(name, "%s: %v", keyHead, err)
	}
	rows, err := parquet.Read[row](bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, refused(name, "%v", err)
	}
	for i := range rows {
		c, err := cellOf(&rows[i])
		if err != nil {
			return nil, refused(name, "its row %d: %v", i+1, err)
		}
		p.Cells = append(p.Cells, c)
	}
	return p, nil
}

func cellOf(r *row) (Cell, error) {
	c := Cell{
		Key: r.Key, Input: Input{r.File, r.Trace, r.Bound, r.Files},
		Truth: r.Truth, Scenario: r.Scenario, Window: int(r.Window), From: policy.Time(r.From), Seed: r.Seed, Policy: r.Policy, Err: r.Err,
	}
	if r.Result != "" {
		if err := json.Unmarshal([]byte(r.Result), &c.Result); err != nil {
			return c, err
		}
	}
	if r.Bounds != "" {
		if err := json.Unmarshal([]byte(r.Bounds), &c.Bounds); err != nil {
			return c, err
		}
	}
	return c, nil
}
