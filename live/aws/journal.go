package aws

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"

	"github.com/spotter-dev/spotter/policy"
)

// A journal is a list of fetched data. Each entry is on disk before the next request. An entry
// consists of its length and its checksum (CRC-32C), four bytes each, followed by JSON. A tail that
// was cut off by a crash is discarded and fetched again.
type journal struct {
	file *os.File
	path string
}

// An entry contains the plan or one item of fetched data. Exactly one field is set.
type entry struct {
	Plan     *plan          `json:"plan,omitempty"`
	Zones    *zonesEntry    `json:"zones,omitempty"`
	Page     *page          `json:"page,omitempty"`
	OnDemand *onDemandEntry `json:"on_demand,omitempty"`
	Bands    *bandsEntry    `json:"bands,omitempty"`
	Scores   *scoresEntry   `json:"scores,omitempty"`
}

// A plan describes the data that a recording requests.
type plan struct {
	Regions   []string    `json:"regions"`
	Types     []string    `json:"types,omitempty"`
	Families  []string    `json:"families,omitempty"`
	Product   string      `json:"product"`
	ZoneNames bool        `json:"zone_names,omitempty"`
	From      policy.Time `json:"from"`
	Until     policy.Time `json:"until"`

	// Present reports whether Until was the present, for which scores and bands can be fetched.
	Present bool `json:"present,omitempty"`
}

// A zonesEntry contains the IDs of the zones of a region by name. IDs is nil if AWS refused to list
// them.
type zonesEntry struct {
	Region string            `json:"region"`
	IDs    map[string]string `json:"ids,omitempty"`
}

// A page is one response of DescribeSpotPriceHistory for the window [From, Until) of a region. Its
// rows are stored as columns; Zone and Type are indices into Zones and Types.
type page struct {
	Region string         `json:"region"`
	From   policy.Time    `json:"from"`
	Until  policy.Time    `json:"until"`
	Next   string         `json:"next,omitempty"` // token of the next page; empty if the window is complete
	Zones  []zoneName     `json:"zones,omitempty"`
	Types  []string       `json:"types,omitempty"`
	Zone   []int          `json:"zone,omitempty"`
	Type   []int          `json:"type,omitempty"`
	At     []policy.Time  `json:"at,omitempty"`
	Price  []policy.Money `json:"price,omitempty"`
}

// An onDemandEntry contains the on-demand prices of a region by type.
type onDemandEntry struct {
	Region string                  `json:"region"`
	Prices map[string]policy.Money `json:"prices"`
}

// A bandsEntry contains the interruption bands by region and type.
type bandsEntry struct {
	Regions map[string]map[string]int8 `json:"regions"`
}

// A scoresEntry contains the placement scores of a type by zone ID.
type scoresEntry struct {
	Region string          `json:"region,omitempty"`
	Type   string          `json:"type,omitempty"`
	Scores map[string]int8 `json:"scores,omitempty"`

	// Over reports whether AWS accepts no further configuration for now.
	Over bool `json:"over,omitempty"`
}

// journalMagic is the first line of the file. It contains the version of the entries.
const journalMagic = "spotter record 2\n"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// entryMax is the maximum size of an entry in bytes. A greater length means that the file is
// damaged.
const entryMax = 64 << 20

// openJournal opens or creates the journal at path and returns its entries.
func openJournal(path string) (*journal, []entry, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, nil, err
	}
	j := &journal{file: f, path: path}
	entries, end, err := readJournal(f)
	if err == nil {
		err = j.begin(end)
	}
	if err != nil {
		f.Close()
		return nil, nil, fmt.Errorf("reading the journal %s: %w", path, err)
	}
	return j, entries, nil
}

// begin truncates the file at end, after the last complete entry, so that new entries follow.
func (j *journal) begin(end int64) error {
	if err := j.file.Truncate(end); err != nil {
		return err
	}
	if _, err := j.file.Seek(end, io.SeekStart); err != nil {
		return err
	}
	if end > 0 {
		return nil
	}
	if _, err := j.file.WriteString(journalMagic); err != nil {
		return err
	}
	if err := j.file.Sync(); err != nil {
		return err
	}
	return syncPath(filepath.Dir(j.path))
}

// readJournal returns the complete entries and the offset of their end.
func readJournal(f *os.File) (entries []entry, end int64, err error) {
	r := bufio.NewReaderSize(f, 1<<16)
	magic := make([]byte, len(journalMagic))
	if _, err := io.ReadFull(r, magic); err != nil {
		return nil, 0, cut(err)
	}
	if string(magic) != journalMagic {
		return nil, 0, fmt.Errorf("%w: it starts with %q", ErrFolder, magic)
	}
	end = int64(len(magic))
	for {
		var head [8]byte
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return entries, end, cut(err)
		}
		n, sum := binary.LittleEndian.Uint32(head[:4]), binary.LittleEndian.Uint32(head[4:])
		if n == 0 || n > entryMax {
			return entries, end, nil
		}
		body := make([]byte, n)
		if _, err := io.ReadFull(r, body); err != nil {
			return entries, end, cut(err)
		}
		if crc32.Checksum(body, castagnoli) != sum {
			return entries, end, nil
		}
		var e entry
		if err := json.Unmarshal(body, &e); err != nil {
			return nil, 0, err
		}
		entries = append(entries, e)
		end += int64(len(head)) + int64(n)
	}
}

// cut returns nil for the end of the file, which also ends the entries, and other errors unchanged.
func cut(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

// add writes an entry and flushes it to disk.
func (j *journal) add(e entry) error {
	body, err := json.Marshal(e)
	if err != nil {
		return err
	}
	b := binary.LittleEndian.AppendUint32(nil, uint32(len(body)))
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(body, castagnoli))
	if _, err := j.file.Write(append(b, body...)); err != nil {
		return fmt.Errorf("writing the journal %s: %w", j.path, err)
	}
	if err := j.file.Sync(); err != nil {
		return fmt.Errorf("writing the journal %s: %w", j.path, err)
	}
	return nil
}

// remove closes and deletes the journal after its data was written to the trace.
func (j *journal) remove() error {
	if err := j.file.Close(); err != nil {
		return err
	}
	if err := os.Remove(j.path); err != nil {
		return err
	}
	return syncPath(filepath.Dir(j.path))
}

// syncPath flushes a file, or the entries of a folder, to disk.
func syncPath(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}
