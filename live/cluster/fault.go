package cluster

import (
	"fmt"
	"log/slog"
	"maps"

	"github.com/spotter-dev/spotter/policy/kube"
)

// A faultLog logs problems with the interpretation of objects, each of them once.
type faultLog struct {
	log      *slog.Logger
	reported map[string]bool
}

// warn logs a problem with the object of, unless it was already logged.
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

// annotations returns the combined annotations of a workload and of its pods. If both have an
// annotation, that of the pods takes precedence.
func (l *faultLog) annotations(of string, workload, pod map[string]string) *kube.Annotations {
	all := map[string]string{}
	maps.Copy(all, workload)
	maps.Copy(all, relevant(pod))
	return &kube.Annotations{Values: all, Fail: func(key, format string, args ...any) {
		l.warn(of, key+": "+fmt.Sprintf(format, args...))
	}}
}
