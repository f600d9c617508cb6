package cluster

import (
	"fmt"
	"log/slog"
	"maps"

	"github.com/spotter-dev/spotter/policy/kube"
)

// A faultLog reports what could not be understood of objects, each fault once.
type faultLog struct {
	log      *slog.Logger
	reported map[string]bool
}

// warn reports once something that is not understood.
func (l *faultLog) warn(of, what string) {
	text := of + ": " + what
	if l.reported[text] {
		return
	}
	if len(l.reported) > 10_000 {
		clear(l.reported)
	}
	l.reported[text] = true
	l.log.Warn("part of the cluster cannot be interpreted", "object", of, "problem", what)
}

// annotations returns the annotations of a workload and of its pods; those of the
// pods count when both have one.
func (l *faultLog) annotations(of string, workload, pod map[string]string) *kube.Annotations {
	all := map[string]string{}
	maps.Copy(all, workload)
	maps.Copy(all, relevant(pod))
	return &kube.Annotations{Values: all, Fail: func(key, format string, args ...any) {
		l.warn(of, key+": "+fmt.Sprintf(format, args...))
	}}
}
