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

// A journal is the list of what was fetched, each entry on disk before the next request. An entry
// is its length and its checksum (CRC-32C), four bytes each, and then JSON. A tail that was cut off
// by a crash is dropped and fetched again.
type journal struct {
	file *os.File
	path string
}

// An entry is one thing that was fetched, or the plan. One field is set.
type entry struct {
	Plan     *plan          `json:"plan,omitempty"`
	Zones    *zonesEntry    `json:"zones,omitempty"`
	Page     *page          `json:"page,omitempty"`
	OnDemand *onDemandEntry `json:"on_demand,omitempty"`
	Bands    *bandsEntry    `json:"bands,omitempty"`
	Scores   *scoresEntry   `json:"scores,omitempty"`
}

// A plan is what a recording was asked to fetch.
type plan struct {
	Regions   []string    `json:"regions"`
	Types     []string    `json:"types,omitempty"`
	Families  []string    `json:"families,omitempty"`
	Product   string      `json:"product"`
	ZoneNames bool        `json:"zone_names,omitempty"`
	From      policy.Time `json:"from"`
	Until     policy.Time `json:"until"`

	// Present says that Until was the present, at which scores and bands could
	// be seen.
	Present bool `json:"present,omitempty"`
}

// A zonesEntry holds the IDs of the zones of a region by name, none where AWS
// refused to list them.
type zonesEntry struct {
	Region string            `json:"region"`
	IDs    map[string]string `json:"ids,omitempty"`
}

// A page is one answer of DescribeSpotPriceHistory for the window From…Until
// of a region. Its rows are columns; zone and type are indices into the tables
// of names.
type page struct {
	Region string         `json:"region"`
	From   policy.Time    `json:"from"`
	Until  policy.Time    `json:"until"`
	Next   string         `json:"next,omitempty"` // empty: the window is complete
	Zones  []zoneName     `json:"zones,omitempty"`
	Types  []string       `json:"types,omitempty"`
	Zone   []int          `json:"zone,omitempty"`
	Type   []int          `json:"type,omitempty"`
	At     []policy.Time  `json:"at,omitempty"`
	Price  []policy.Money `json:"price,omitempty"`
}

// An onDemandEntry holds the on-demand prices of a region by type.
type onDemandEntry struct {
	Region string                  `json:"region"`
	Prices map[string]policy.Money `json:"prices"`
}

// A bandsEntry holds the interruption bands of all regions by type.
type bandsEntry struct {
	Regions map[string]map[string]int8 `json:"regions"`
}

// A scoresEntry holds the placement scores of a type by zone.
type scoresEntry struct {
	Region string          `json:"region,omitempty"`
	Type   string          `json:"type,omitempty"`
	Scores map[string]int8 `json:"scores,omitempty"`

	// Over says that AWS takes no further configuration for now.
	Over bool `json:"over,omitempty"`
}

// journalMagic is the first line of the file and names the version of its entries.
const journalMagic = "spotter record 2\n"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// entryMax is the most bytes of an entry. A longer length is damage.
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

// begin cuts the file at end, after the last whole entry, and continues there.
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

// readJournal returns the whole entries and where they end.
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

// cut takes the end of the file for the end of the entries.
func cut(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

// add writes an entry and returns when it is on disk.
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

// remove ends the journal: what it held is in the trace.
func (j *journal) remove() error {
	if err := j.file.Close(); err != nil {
		return err
	}
	if err := os.Remove(j.path); err != nil {
		return err
	}
	return syncPath(filepath.Dir(j.path))
}

// syncPath flushes a file, or the names in a folder, to disk.
func syncPath(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}
