package recorded

import "time"

// The bounds of what one recorded pod may request.
const (
	cpuMost    = 1_000_000 // thousandths of a core
	memoryMost = 1 << 30   // MiB
	gpuMost    = 1024
)

// openbClasses says how much an interruption of a pod of a quality of service
// hurts. Those that serve requests become services, the others tasks.
var openbClasses = map[string]struct {
	class  class
	serves bool
}{
	"LS":         {classHigh, true},
	"Guaranteed": {classHigh, false},
	"Burstable":  {classNormal, false},
	"BE":         {classLow, false},
}

// An openbCount counts what was seen in the pod lists.
type openbCount struct {
	shared, never, none, wrong, chosen int
}

func readOpenB(files []*input, _ *Options) (*recording, error) {
	r := &recording{
		about:   "the pods of a GPU cluster of Alibaba (openb), each with its requests, creation and deletion",
		licence: "the recording is for study only: keep this file to yourself as well",
	}
	var n openbCount
	for _, in := range files {
		t, err := openTable(in, FormatOpenB)
		if err != nil {
			return nil, err
		}
		for t.next() {
			r.openbPod(t, &n)
		}
		if t.err != nil {
			return nil, t.err
		}
	}
	r.assume("Pods of quality LS are services: one Deployment for each shape, with as many replicas as pods of it were there. The others are Jobs.")
	r.assume("LS and Guaranteed pods have the priority class high, Burstable normal, BE low, which decides what an interruption costs.")
	r.assume("Jobs save nothing: a pod that is lost starts over.")
	if n.shared > 0 {
		r.assume("A pod asks for whole devices: one that shared a device (gpu_milli below 1000, as %d of them) gets it alone, since Kubernetes knows no part of a device.", n.shared)
	}
	if n.chosen > 0 {
		r.assume("Any device will do: the models that pods asked for (gpu_spec, set by %d of them) are not looked at.",
			n.chosen)
	}
	r.leave(n.never, "pods that were never scheduled, so that nobody knows how long they would have run")
	r.leave(n.wrong, "pods whose times contradict each other")
	r.leave(n.none, "pods that were deleted in the second in which they began")
	return r, nil
}

func (r *recording) openbPod(t *table, n *openbCount) {
	s := shape{cpu: t.integer("cpu_milli", cpuMost), memory: t.integer("memory_mib", memoryMost),
		gpu: t.integer("num_gpu", gpuMost)}
	class, known := openbClasses[t.text("qos")]
	if !known {
		t.fail("qos", "%q is not LS, BE, Burstable or Guaranteed", t.text("qos"))
	}
	created := t.seconds("creation_time")
	if t.text("scheduled_time") == "" || t.text("deletion_time") == "" {
		n.never++
		return
	}
	began, ended := t.seconds("scheduled_time"), t.seconds("deletion_time")
	switch {
	case t.err != nil:
		return
	case began < created || ended < began:
		n.wrong++
		return
	case ended == began:
		n.none++
		return
	}
	if i, ok := t.column["gpu_milli"]; ok && s.gpu == 1 && t.row[i] != "" && t.integer("gpu_milli", 1000) < 1000 {
		n.shared++
	}
	if i, ok := t.column["gpu_spec"]; ok && t.row[i] != "" {
		n.chosen++
	}
	r.begin, r.end = min(r.begin, created), max(r.end, ended)
	if class.serves {
		r.services = append(r.services, service{shape: s, class: class.class, startup: openbStartup,
			changes: []change{{created, 1}, {ended, 0}}})
		return
	}
	r.tasks = append(r.tasks, task{shape: s, class: class.class, at: created, work: ended - began, count: 1})
}

// openbStartup is how long a service of a GPU cluster loads before it serves;
// it is modelled.
const openbStartup = time.Minute
