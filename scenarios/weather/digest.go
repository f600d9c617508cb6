package weather

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"math"
	"slices"
)

// digestVersion is incremented whenever the records change.
const digestVersion = 3

// The kinds of record that are hashed.
const (
	recordHeader = iota + 1
	recordMarket
	recordShortage
	recordReclaim
	recordAlarm
	recordLateNotice
	recordAPIFault
	recordTrace
	recordDepth
	recordTruth
)

// recordSize is the size in bytes of every record: kind, flags, slot, market, and three numbers.
const recordSize = 1 + 3 + 4 + 8 + 3*8

// Digest returns the SHA-256 of the input of the weather (the digest of the trace, the settings of
// the market, the seed, the span) and of everything that was drawn: for every market its band, its
// slots, the shortages in which it is closed, and for each slot its reclaims with their
// announcements and its false alarms. Equal digests mean equal weather. The digest depends neither
// on the order of the markets nor on the other contents of a scenario, such as policies and
// workloads: scenarios that differ only in these are compared under the same weather.
func (w *Weather) Digest() [32]byte {
	w.digest.Do(func() {
		d := digester{sum: sha256.New(), buf: make([]byte, 0, 256*recordSize)}
		d.header(&w.cfg)
		order := make([]int, len(w.markets))
		for i := range order {
			order[i] = i
		}
		slices.SortFunc(order, func(a, b int) int { return cmp.Compare(w.markets[a].name, w.markets[b].name) })
		for _, i := range order {
			d.market(w, &w.markets[i])
		}
		d.flush()
		d.sum.Sum(w.digestSum[:0])
	})
	return w.digestSum
}

// A digester writes fixed-size records to a hash, many at a time.
type digester struct {
	sum hash.Hash
	buf []byte
}

func (d *digester) flush() {
	d.sum.Write(d.buf)
	d.buf = d.buf[:0]
}

// record writes one record. Integers are in two's complement; floats are represented by their bits.
func (d *digester) record(kind, flags uint8, slot int32, market, x, y, z uint64) {
	if len(d.buf)+recordSize > cap(d.buf) {
		d.flush()
	}
	d.buf = append(d.buf, kind, flags, 0, 0)
	d.buf = binary.LittleEndian.AppendUint32(d.buf, uint32(slot))
	d.buf = binary.LittleEndian.AppendUint64(d.buf, market)
	d.buf = binary.LittleEndian.AppendUint64(d.buf, x)
	d.buf = binary.LittleEndian.AppendUint64(d.buf, y)
	d.buf = binary.LittleEndian.AppendUint64(d.buf, z)
}

func (d *digester) header(c *Config) {
	d.record(recordHeader, digestVersion, int32(c.Slots), c.Seed, uint64(c.From), uint64(c.To),
		math.Float64bits(c.Intensity))
	d.trace(c.Trace)
	d.truth(&c.Truth)
	for _, s := range c.NoticeFaults {
		d.record(recordLateNotice, 0, 0, uint64(s.Delay), uint64(s.At), uint64(s.Duration), math.Float64bits(s.Share))
	}
	for _, f := range c.APIFaults {
		d.record(recordAPIFault, 0, 0, 0, uint64(f.At), uint64(f.Duration), math.Float64bits(f.Share))
	}
}

// trace writes the digest of the trace as four numbers.
func (d *digester) trace(sum [32]byte) {
	n := func(i int) uint64 { return binary.LittleEndian.Uint64(sum[8*i:]) }
	d.record(recordTrace, 0, 0, n(0), n(1), n(2), n(3))
}

func (d *digester) market(w *Weather, m *market) {
	d.record(recordMarket, flags(m.spot, m.modelled), m.slots, m.hash, uint64(int64(m.band)), math.Float64bits(m.rate), 0)
	for i := m.shortagesFrom; i < m.shortagesUntil; i++ {
		s := &w.shortages[i]
		d.record(recordShortage, flags(s.silent, false)|uint8(s.Cause)<<4, 0, m.hash, uint64(s.From), uint64(s.Until),
			math.Float64bits(s.Depth))
	}
	for _, s := range w.steps[m.stepsFrom:m.stepsUntil] {
		d.record(recordDepth, 0, s.Nodes, m.hash, uint64(s.From), 0, 0)
	}
	if !m.spot {
		return
	}
	for slot := range m.slots {
		i := m.first + slot
		for n := w.starts[i]; n < w.starts[i+1]; n++ {
			e := &w.events[n]
			d.record(recordReclaim, uint8(e.cause)<<4, slot, m.hash, uint64(e.at), uint64(e.notice), uint64(e.recommended))
		}
		for n := w.alarmStarts[i]; n < w.alarmStarts[i+1]; n++ {
			d.record(recordAlarm, 0, slot, m.hash, uint64(w.alarms[n]), 0, 0)
		}
	}
}

// flags packs two bits.
func flags(a, b bool) (f uint8) {
	if a {
		f |= 1
	}
	if b {
		f |= 2
	}
	return f
}
