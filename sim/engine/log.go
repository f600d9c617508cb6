package engine

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"io"
	"strconv"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/portable"
)

// logVersion is incremented whenever equal runs no longer result in equal hashes.
const logVersion = 3

// A Record is a kind of entry of the event log.
type Record uint64

// The kinds of entries. Their numbers are part of the hash.
const (
	RecordStep Record = iota + 1
	RecordSteer
	RecordLaunch
	RecordRefused
	RecordRegistered
	RecordInitialized
	RecordNotice
	RecordRecommended
	RecordReclaimed
	RecordDraining
	RecordUndrained
	RecordDeleted
	RecordBill
	RecordCreated
	RecordBound
	RecordReady
	RecordEvicted
	RecordLost
	RecordEnded
	RecordReplicas
	RecordIncident
	RecordRecovered
	RecordReleased
	RecordJobDone
	RecordJobMissed
	RecordFault
	RecordOutbid
	RecordGate
	RecordPaused
	RecordDeletionCost
	RecordGangStart
	RecordGangRestart
	RecordGangRequeued
	RecordGangFailed
	RecordCredits
	RecordQueueAdmitted
	RecordQueuePreempted
)

var recordNames = [...]string{
	RecordStep: "step", RecordSteer: "steer", RecordLaunch: "launch", RecordRefused: "refused", RecordRegistered: "registered",
	RecordInitialized: "initialized", RecordNotice: "notice", RecordRecommended: "recommended", RecordReclaimed: "reclaimed",
	RecordDraining: "draining", RecordUndrained: "undrained", RecordDeleted: "deleted", RecordBill: "bill", RecordCreated: "created",
	RecordBound: "bound", RecordReady: "ready", RecordEvicted: "evicted", RecordLost: "lost", RecordEnded: "ended",
	RecordReplicas: "replicas", RecordIncident: "incident", RecordRecovered: "recovered", RecordReleased: "released",
	RecordJobDone: "job-done", RecordJobMissed: "job-missed", RecordFault: "fault", RecordOutbid: "outbid",
	RecordGate: "gate", RecordPaused: "paused", RecordDeletionCost: "deletion-cost",
	RecordGangStart: "gang-start", RecordGangRestart: "gang-restart", RecordGangRequeued: "gang-requeued", RecordGangFailed: "gang-failed",
	RecordCredits: "credits", RecordQueueAdmitted: "queue-admitted", RecordQueuePreempted: "queue-preempted",
}

// An Entry is one entry of the event log.
type Entry struct {
	At policy.Time

	// Kind, Subject and Object are written as in the log: "launch general-7 aws/us-east-1/…".
	// Subject and Object may be empty.
	Kind, Subject, Object string

	// Amount is in millionths of a dollar, in milliseconds or a count, depending on Kind.
	Amount int64
}

// A Log is the event log of a run. It is always hashed, and written out on request.
//
// The hash is SHA-256 over the header and records of five 64-bit little-endian words: the instant
// in milliseconds, the kind, the 64-bit hashes of the subject's and the object's name, and an
// amount (see [Entry]).
type Log struct {
	sum hash.Hash
	buf []byte
	out *bufio.Writer // nil if the log is not written out

	// Watch, if not nil, is called for every entry.
	Watch func(Entry)
}

// NewLog starts a log with a header that the hash covers. Lines are written to out unless it is
// nil.
func NewLog(header []byte, out io.Writer) *Log {
	l := &Log{sum: sha256.New(), buf: make([]byte, 0, 8192)}
	if out != nil {
		l.out = bufio.NewWriter(out)
	}
	l.buf = binary.LittleEndian.AppendUint64(l.buf, logVersion)
	l.buf = append(l.buf, header...)
	return l
}

const recordSize = 40

// Add appends one record. Subject and object may be empty.
func (l *Log) Add(at policy.Time, kind Record, subject, object string, amount int64) {
	l.AddNamed(at, kind, subject, object, amount, "")
}

// AddNamed appends one record whose amount is a code. Unless name is empty, the line in the log has
// the name instead of the number. The hash covers the number.
func (l *Log) AddNamed(at policy.Time, kind Record, subject, object string, amount int64, name string) {
	if len(l.buf)+recordSize > cap(l.buf) {
		l.sum.Write(l.buf)
		l.buf = l.buf[:0]
	}
	b := binary.LittleEndian.AppendUint64(l.buf, uint64(at))
	b = binary.LittleEndian.AppendUint64(b, uint64(kind))
	b = binary.LittleEndian.AppendUint64(b, portable.HashString(subject))
	b = binary.LittleEndian.AppendUint64(b, portable.HashString(object))
	l.buf = binary.LittleEndian.AppendUint64(b, uint64(amount))
	if l.out != nil {
		if name == "" {
			name = strconv.FormatInt(amount, 10)
		}
		fmt.Fprintf(l.out, "%v %s %s %s %s\n", at, recordNames[kind], orDash(subject), orDash(object), name)
	}
	if l.Watch != nil {
		l.Watch(Entry{At: at, Kind: recordNames[kind], Subject: subject, Object: object, Amount: amount})
	}
}

// Digest ends the log and returns its hash.
func (l *Log) Digest() ([32]byte, error) {
	l.sum.Write(l.buf)
	l.buf = l.buf[:0]
	var err error
	if l.out != nil {
		err = l.out.Flush()
	}
	return [32]byte(l.sum.Sum(nil)), err
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
