package sim

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"io"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/portable"
)

// logVersion changes whenever equal runs would no longer give equal hashes.
const logVersion = 3

// A recordKind is a kind of entry of the event log.
type recordKind uint64

const (
	logStep recordKind = iota + 1
	logSteer
	logLaunch
	logRefused
	logRegistered
	logInitialized
	logNotice
	logRecommended
	logReclaimed
	logDraining
	logUndrained
	logDeleted
	logBill
	logCreated
	logBound
	logReady
	logEvicted
	logLost
	logEnded
	logReplicas
	logIncident
	logRecovered
	logReleased
	logJobDone
	logJobMissed
	logFault
	logOutbid
	logGate
	logPaused
	logDeletionCost
	logGangStart
	logGangRestart
	logGangRequeued
	logGangFailed
)

var recordNames = [...]string{
	logStep: "step", logSteer: "steer", logLaunch: "launch", logRefused: "refused", logRegistered: "registered",
	logInitialized: "initialized", logNotice: "notice", logRecommended: "recommended", logReclaimed: "reclaimed",
	logDraining: "draining", logUndrained: "undrained", logDeleted: "deleted", logBill: "bill", logCreated: "created",
	logBound: "bound", logReady: "ready", logEvicted: "evicted", logLost: "lost", logEnded: "ended",
	logReplicas: "replicas", logIncident: "incident", logRecovered: "recovered", logReleased: "released",
	logJobDone: "job-done", logJobMissed: "job-missed", logFault: "fault", logOutbid: "outbid",
	logGate: "gate", logPaused: "paused", logDeletionCost: "deletion-cost",
	logGangStart: "gang-start", logGangRestart: "gang-restart", logGangRequeued: "gang-requeued", logGangFailed: "gang-failed",
}

// A journal is the event log of a run: hashed always, written out on request.
//
// The hash is SHA-256 over records of five 64-bit little-endian words: the
// instant in milliseconds, the kind, the 64-bit hashes of a subject's and an
// object's name, and an amount (micro-dollars or a count).
type journal struct {
	sum hash.Hash
	buf []byte
	out *bufio.Writer // nil without a log

	watch Watcher // nil without one
}

func newJournal(header []byte, out io.Writer) *journal {
	j := &journal{sum: sha256.New(), buf: make([]byte, 0, 8192)}
	if out != nil {
		j.out = bufio.NewWriter(out)
	}
	j.buf = binary.LittleEndian.AppendUint64(j.buf, logVersion)
	j.buf = append(j.buf, header...)
	return j
}

const recordSize = 40

// add appends one record. Subject and object may be empty.
func (j *journal) add(at policy.Time, kind recordKind, subject, object string, amount int64) {
	if len(j.buf)+recordSize > cap(j.buf) {
		j.sum.Write(j.buf)
		j.buf = j.buf[:0]
	}
	b := binary.LittleEndian.AppendUint64(j.buf, uint64(at))
	b = binary.LittleEndian.AppendUint64(b, uint64(kind))
	b = binary.LittleEndian.AppendUint64(b, portable.HashString(subject))
	b = binary.LittleEndian.AppendUint64(b, portable.HashString(object))
	j.buf = binary.LittleEndian.AppendUint64(b, uint64(amount))
	if j.out != nil {
		fmt.Fprintf(j.out, "%v %s %s %s %d\n", at, recordNames[kind], orDash(subject), orDash(object), amount)
	}
	if j.watch != nil {
		j.watch.Happened(Entry{At: at, Kind: recordNames[kind], Subject: subject, Object: object, Amount: amount})
	}
}

// digest ends the log and returns its hash.
func (j *journal) digest() ([32]byte, error) {
	j.sum.Write(j.buf)
	j.buf = j.buf[:0]
	var err error
	if j.out != nil {
		err = j.out.Flush()
	}
	return [32]byte(j.sum.Sum(nil)), err
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
