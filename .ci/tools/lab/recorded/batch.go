package recorded

import "time"

func readBatch(files []*input, _ *Options) (*recording, error) {
	r := &recording{
		about: "batch tasks of a cluster of Alibaba (2017), each a number of equal instances with their mean running time",
	}
	jobs, running := 0, time.Duration(0)
	for _, in := range files {
		t, err := openTable(in, FormatBatch)
		if err != nil {
			return nil, err
		}
		for t.next() {
			k := task{
				shape: shape{
					cpu:    int64(float64(t.number("cpu", 0, cpuMost/1000)*1000) + 0.5),
					memory: int64(float64(t.number("memory", 0, 1)*machineMemory) + 0.5),
				},
				class: classLow, at: t.seconds("submit_time"), work: t.seconds("duration"), count: int(t.integer("instances_num",
					tasksMost)),
			}
			if t.err != nil {
				break
			}
			if k.work <= 0 || k.count == 0 {
				jobs++
				continue
			}
			running += k.work
			r.end = max(r.end, k.at+k.work)
			r.tasks = append(r.tasks, k)
		}
		if t.err != nil {
			return nil, t.err
		}
	}
	if len(r.tasks) > 0 {
		r.begin = r.tasks[0].at
	}
	for i := range r.tasks {
		r.begin = min(r.begin, r.tasks[i].at)
	}
	r.assume("cpu is in cores. memory is a share of one machine, whose size nobody published: 1.0 is taken as %d GiB, 4 GiB for each of its 64 cores.", machineMemory>>10)
	r.assume("Every instance is a Job of its own, released when its task was submitted: which task waits for which is not recorded. It runs for the mean of its task.")
	r.assume("All have the priority class low. Jobs save nothing: a pod that is lost starts over.")
	r.leave(jobs, "tasks without instances or running time")
	return r, nil
}

const (
	// machineMemory is what a memory of 1.0 is taken for, in MiB.
	machineMemory = 256 << 10

	// tasksMost is the most instances of one recorded task.
	tasksMost = 10_000_000
)
